"""Which rows come too late, and until when those that do not are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.cpu.admission import admit
from gpu_windows.operators.columns.keys import KeyEncoder, present
from gpu_windows.operators.over.key_memory import KeyMemory
from gpu_windows.operators.over.stored_rows import UNTIL, StoredRows
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]
Statuses = NDArray[np.int8]

#: Columns of a clean-up: when it fires, and the one before it; LONG_MIN: it is the first.
TIMER, PRIOR = "__timer", "__prior"


@dataclass(frozen=True)
class Arrived:
    """Rows that came.

    Parameters
    ----------
    keys : pyarrow.Table
        Their key columns.
    codes, ts : int64[n]
        Of keys; times; anything where the status is not ACCEPTED.
    watermark : int
        The current one.
    """

    keys: pa.Table
    codes: Ints
    ts: Ints
    watermark: int


class Admission(ABC):
    """Tells which rows are late."""

    @abstractmethod
    def judge(self, rows: Arrived, status: Statuses) -> Ints:
        """Make the status of late rows LATE; return until when each row is kept: int64[n]."""


class UpToWatermark(Admission):
    """Rows up to the watermark are late; a row is kept for frames that reach back to it.

    Parameters
    ----------
    reach : int
        How long after its time a row is in a frame that is not given yet, in ticks.
    """

    def __init__(self, reach: int) -> None:
        self._reach = reach

    def judge(self, rows: Arrived, status: Statuses) -> Ints:
        """See `Admission.judge`."""
        status[(status == rules.ACCEPTED) & (rows.ts <= rows.watermark)] = rules.LATE
        return rows.ts + self._reach


class UpToLastRow(Admission):
    """Rows up to the last one of their key that was given are late.

    Parameters
    ----------
    memory : KeyMemory
    """

    def __init__(self, memory: KeyMemory) -> None:
        self._memory = memory

    def judge(self, rows: Arrived, status: Statuses) -> Ints:
        """See `Admission.judge`."""
        behind = np.flatnonzero((status == rules.ACCEPTED) & (rows.ts <= rows.watermark))
        if len(behind):
            last = self._memory.last_of(rows.codes[behind])
            status[behind[rows.ts[behind] <= last]] = rules.LATE
        return rows.ts


class UpToLastTimer(Admission):
    """Rows up to the last timer of their key are late, until that is cleaned up.

    So Flink does it for frames of time. Of each key the clean-ups are known that have not fired;
    each tells the one before it, so the last one that has fired is known, too.

    Parameters
    ----------
    keys : KeyEncoder
    before : int
        How far back frames reach, in ticks.
    timers : StoredRows
        The clean-ups.
    given : StoredRows
        Rows that were given.
    time : str
        The column of their times.
    """

    def __init__(
        self, keys: KeyEncoder, before: int, timers: StoredRows, given: StoredRows, time: str
    ) -> None:
        self._keys, self._before, self._time = keys, before, time
        self._timers, self._given = timers, given

    def judge(self, rows: Arrived, status: Statuses) -> Ints:
        """See `Admission.judge`."""
        count = self._keys.count
        cleanup, last = (np.full(count, LONG_MIN) for _ in range(2))
        usable = status == rules.ACCEPTED
        self._recall(present(rows.codes[usable], count), rows.watermark, cleanup, last)
        behind = usable & (rows.ts <= rows.watermark)
        if behind.any():
            self._recall_given(present(rows.codes[behind], count), rows.watermark, last)
        until, prior = (np.zeros(len(rows.ts), np.int64) for _ in range(2))
        admit(rows.codes, rows.ts, last, self._before, status, cleanup, until, prior)
        self._keep(
            rows, np.flatnonzero((status == rules.ACCEPTED) & (prior <= until)), until, prior
        )
        return until

    def _recall(self, codes: Ints, watermark: int, cleanup: Ints, last: Ints) -> None:
        """Take up the clean-ups of some keys: when each is due, and which has fired."""
        found = self._timers.find(codes, watermark)
        if found is None:
            return
        table, of_keys = found
        timer, prior = (table.column(name).to_numpy() for name in (TIMER, PRIOR))
        np.maximum.at(cleanup, of_keys, timer)
        order = np.lexsort((timer, of_keys))
        first = order[np.diff(of_keys[order], prepend=-1) != 0]
        last[of_keys[first]] = prior[first]

    def _recall_given(self, codes: Ints, watermark: int, last: Ints) -> None:
        """Take up the times of the rows that some keys were given."""
        found = self._given.find(codes, watermark)
        if found is not None:
            table, of_keys = found
            np.maximum.at(last, of_keys, table.column(self._time).to_numpy())

    def _keep(self, rows: Arrived, moving: Ints, until: Ints, prior: Ints) -> None:
        """Keep the clean-ups that rows have asked for.

        One that is past when it is asked for fires with the next watermark.
        """
        if len(moving) == 0:
            return
        timers = rows.keys.take(pa.array(moving))
        alive = until[moving]
        if rows.watermark != LONG_MIN:
            alive = np.maximum(alive, rows.watermark + 1)
        for name, column in ((UNTIL, alive), (TIMER, until[moving]), (PRIOR, prior[moving])):
            timers = timers.append_column(name, pa.array(column))
        self._timers.buffer.append(timers)
