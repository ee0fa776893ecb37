"""Admission of rows: which are late, and how long the others are retained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.cpu.admission import admit
from gpu_windows.operators.columns.keys import KeyEncoder, present
from gpu_windows.operators.over.expiring_rows import UNTIL, ExpiringRows
from gpu_windows.operators.over.key_state import KeyStateStore
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]
Statuses = NDArray[np.int8]

#: Columns of a clean-up: when it fires, and the time of the one before it, or LONG_MIN.
TIMER, PRIOR = "__timer", "__prior"


@dataclass(frozen=True)
class NewRows:
    """New rows of a call.

    Parameters
    ----------
    keys : pyarrow.Table
        Their key columns.
    codes, ts : int64[n]
        Key codes and times; undefined for rows whose status is not ACCEPTED.
    watermark : int
        The current one.
    """

    keys: pa.Table
    codes: Ints
    ts: Ints
    watermark: int


class Admission(ABC):
    """Rule that decides which rows are late."""

    @abstractmethod
    def judge(self, rows: NewRows, status: Statuses) -> Ints:
        """Set the status of late rows to LATE; return until when each row is retained: int64[n]."""


class UpToWatermark(Admission):
    """Rows up to the watermark are late; a row is retained for frames that reach back to it.

    Parameters
    ----------
    reach : int
        How long after its time a row may be in a frame that is not emitted yet, in ticks.
    """

    def __init__(self, reach: int) -> None:
        self._reach = reach

    def judge(self, rows: NewRows, status: Statuses) -> Ints:
        """See `Admission.judge`."""
        status[(status == rules.ACCEPTED) & (rows.ts <= rows.watermark)] = rules.LATE
        return rows.ts + self._reach


class UpToLastRow(Admission):
    """Rows up to the last emitted one of their key are late."""

    def __init__(self, key_states: KeyStateStore) -> None:
        self._key_states = key_states

    def judge(self, rows: NewRows, status: Statuses) -> Ints:
        """See `Admission.judge`."""
        behind = np.flatnonzero((status == rules.ACCEPTED) & (rows.ts <= rows.watermark))
        if len(behind):
            last = self._key_states.last_of(rows.codes[behind])
            status[behind[rows.ts[behind] <= last]] = rules.LATE
        return rows.ts


class UpToLastTimer(Admission):
    """Rows up to the last timer of their key are late, until that is cleaned up.

    Flink does so for frames of time. The store has the clean-ups of each key that have not fired.
    Each has the time of the one before it, so the last one that has fired is known too.

    Parameters
    ----------
    keys : KeyEncoder
    before : int
        How far back frames reach, in ticks.
    timers : ExpiringRows
        The clean-ups.
    emitted : ExpiringRows
        Emitted rows that frames still need.
    time : str
        The column of their times.
    """

    def __init__(
        self, keys: KeyEncoder, before: int, timers: ExpiringRows, emitted: ExpiringRows, time: str
    ) -> None:
        self._keys, self._before, self._time = keys, before, time
        self._timers, self._emitted = timers, emitted

    def judge(self, rows: NewRows, status: Statuses) -> Ints:
        """See `Admission.judge`."""
        count = self._keys.count
        cleanup, last = (np.full(count, LONG_MIN) for _ in range(2))
        usable = status == rules.ACCEPTED
        self._load_cleanups(present(rows.codes[usable], count), rows.watermark, cleanup, last)
        behind = usable & (rows.ts <= rows.watermark)
        if behind.any():
            self._load_last_times(present(rows.codes[behind], count), rows.watermark, last)
        until, prior = (np.zeros(len(rows.ts), np.int64) for _ in range(2))
        admit(rows.codes, rows.ts, last, self._before, status, cleanup, until, prior)
        self._store_cleanups(
            rows, np.flatnonzero((status == rules.ACCEPTED) & (prior <= until)), until, prior
        )
        return until

    def _load_cleanups(self, codes: Ints, watermark: int, cleanup: Ints, last: Ints) -> None:
        """Load the clean-ups of some keys: the last that is due, and the last that has fired."""
        found = self._timers.find(codes, watermark)
        if found is None:
            return
        table, of_keys = found
        timer, prior = (table.column(name).to_numpy() for name in (TIMER, PRIOR))
        np.maximum.at(cleanup, of_keys, timer)
        order = np.lexsort((timer, of_keys))
        first = order[np.diff(of_keys[order], prepend=-1) != 0]
        last[of_keys[first]] = prior[first]

    def _load_last_times(self, codes: Ints, watermark: int, last: Ints) -> None:
        """Load the times of the emitted rows of some keys."""
        found = self._emitted.find(codes, watermark)
        if found is not None:
            table, of_keys = found
            np.maximum.at(last, of_keys, table.column(self._time).to_numpy())

    def _store_cleanups(self, rows: NewRows, moving: Ints, until: Ints, prior: Ints) -> None:
        """Store the clean-ups that rows schedule.

        A clean-up that is already past fires with the next watermark.
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
