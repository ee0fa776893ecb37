"""Measures the cost of a shard in a micro-batch: time in its operator and size of its state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.state.log import StateLog

#: Kinds of entries that are parts of windows and not counted: windows that no call has read would
#: be missing.
_OF_WINDOWS = {"timers", "trigger_state"}
_NS_A_MS = 1_000_000


@dataclass(frozen=True)
class Measures:
    """Measurements of a shard in a micro-batch, in addition to its `Counters`.

    Parameters
    ----------
    kernel_ms : float
        Milliseconds in the operator: kernels and what prepares them.
    state_ms : float
        Milliseconds in reading and writing state.
    state_rows : int
        Entries of state that the shard holds afterwards: slices, windows, stored rows.
    state_bytes : int
        Bytes of state that it holds afterwards, in files.
    """

    kernel_ms: float
    state_ms: float
    state_rows: int
    state_bytes: int

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all measurements."""
        return tuple(field.name for field in fields(cls))


class Meter:
    """Measures the time of an operator, without the time it waits for files and for Spark.

    Parameters
    ----------
    log : StateLog
        Of the shard.
    """

    def __init__(self, log: StateLog) -> None:
        self._log = log
        self._in_operator = self._in_spark = 0  # nanoseconds

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure a block as the operator's time, without its time in files and in Spark."""
        began = time.perf_counter_ns() - self._elsewhere
        yield
        self._in_operator += time.perf_counter_ns() - self._elsewhere - began

    @property
    def _elsewhere(self) -> int:
        return self._log.waited_ns + self._in_spark

    def read_tables(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables that Spark sends; the time that it takes is not the operator's."""
        while True:
            began = time.perf_counter_ns()
            table = next(tables, None)
            self._in_spark += time.perf_counter_ns() - began
            if table is None:
                return
            yield table

    def measure(self, emissions: Iterator[Emission]) -> Iterator[Emission]:
        """Yield the emissions of an operator; the time that it takes is the operator's."""
        while True:
            with self.working():
                emission = next(emissions, None)
            if emission is None:
                return
            yield emission

    def finish(self, operator: Operator, name: str) -> Measures:
        """Write the state that an operator has saved; return the measurements.

        Parameters
        ----------
        operator : Operator
        name : str
            For the state file: see `StateLog.finish`.
        """
        counts = operator.state_size().items()
        rows = sum(count for kind, count in counts if kind not in _OF_WINDOWS)
        self._log.finish(name)
        times = (self._in_operator / _NS_A_MS, self._log.waited_ns / _NS_A_MS)
        return Measures(*times, rows, self._log.live_size)
