"""Which rows of frames of time are too late, row after row.

A key is one unit of work here, whose rows are in order: it is the CPU's on every back end.
"""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.argument_types import INT, INTS, OUT_BYTES, OUT_INTS
from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import rules
from gpu_windows.rules import ACCEPTED, LATE, LONG_MIN


@kernel((INTS, INTS, INTS, INT, OUT_BYTES, OUT_INTS, OUT_INTS, OUT_INTS))
def admit(
    codes: Any, ts: Any, last: Any, before: Any, status: Any, cleanup: Any, until: Any, prior: Any
) -> None:
    """Find the late rows, and until when the others are kept.

    Parameters
    ----------
    codes, ts : int64[n]
        Of keys; times.
    last : int64[keys]
        The last timer of each key that has fired; LONG_MIN if none has.
    before : int64
        How far back frames reach, in ticks.
    status : int8[n], in and out
        Rows that are not ACCEPTED are passed over; those up to the last timer become LATE.
    cleanup : int64[keys], in and out
        When each key is cleaned up; LONG_MIN: there is nothing of it.
    until : int64[n], out
        When what is there of the row's key is cleaned up.
    prior : int64[n], out
        Where the row moves that: when it was before, else what is greater than ``until``.
    """
    for i in range(codes.size):
        code = codes[i]
        if status[i] == ACCEPTED and ts[i] <= last[code]:
            status[i] = LATE
        if status[i] != ACCEPTED:
            continue
        before_row = cleanup[code]
        is_moved = before_row == LONG_MIN or before_row < rules.must_reach(ts[i], before)
        if is_moved:
            cleanup[code] = rules.cleanup_timer(ts[i], before)
        until[i] = cleanup[code]
        prior[i] = before_row if is_moved else until[i] + 1
