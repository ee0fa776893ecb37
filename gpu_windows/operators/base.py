"""Interface of operators: columnar, stateful and independent of Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeAlias, TypeVar

import pyarrow as pa

from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.state.log import StateLog

_NO_CALLS = Counters()


@dataclass(frozen=True)
class Emission:
    """The output of one operator call.

    Parameters
    ----------
    results : pyarrow.Table
        Rows of ``Plan.result_schema``, in the order in which they fired, then (in a traced
        operator) the columns of `TRACE`.
    late : pyarrow.Table
        Input rows that are in no window because they came too late (`REASON` is "late"), or
        have no usable timestamp ("null_timestamp", "out_of_range_timestamp"), or are too far ahead
        of the clock ("future_timestamp"), or have a gap that makes no session
        ("invalid_session_gap"). Rows in a gap between windows are only counted, as in Flink.
    counters : Counters
    sides : mapping of str to pyarrow.Table
        Rows of the side outputs, by tag.
    """

    results: pa.Table
    late: pa.Table = field(default_factory=lambda: pa.table({}))
    counters: Counters = field(default_factory=Counters)
    sides: Mapping[str, pa.Table] = field(default_factory=dict)

    @classmethod
    def of_results(cls, results: pa.Table, calls: Counters = _NO_CALLS) -> Self:
        """Return an emission of results that fired; ``calls``: of kernels."""
        return cls(results, counters=Counters(fired=len(results)) + calls)

    @classmethod
    def without_results(
        cls, schema: pa.Schema, batch: pa.Table, rejected: Rejected, calls: Counters = _NO_CALLS
    ) -> Self:
        """Return the emission that acknowledges a batch: its rejected rows, and counters."""
        late, counters = rejected_rows(batch, rejected), rejected.counts() + calls
        return cls(schema.empty_table(), late, counters)


class Operator(ABC):
    """Evaluates a plan for some keys.

    Runners call `process` with batches in order of arrival and `advance_watermark` between
    them. A batch has the columns ``Plan.input_columns`` (event time as int64 ticks), and
    `ARRIVAL` (int64) where the plan's order says so.
    """

    @abstractmethod
    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows, in order of arrival. Any number of them, 0 too."""

    @abstractmethod
    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the windows up to ``watermark`` (ticks) and drop expired state.

        A watermark that is not greater than the last one does nothing. LONG_MAX ends the input.
        """

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time (ticks) and fire due timers; nothing, unless overridden."""
        del time
        yield from ()

    def end_rows(self) -> Iterator[Emission]:
        """Emit the results that depend on a complete micro-batch; nothing, unless overridden.

        Called once after the rows of each micro-batch, also if it has none.
        """
        yield from ()

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind of state."""
        return {}

    def close(self) -> None:  # noqa: B027 - most hold nothing to release
        """Close user functions after the last call."""


class MergesPartials(ABC):
    """An operator that takes partials, too, which other tasks have made of rows."""

    @abstractmethod
    def merge(self, partials: pa.Table) -> None:
        """Add partials that another task made to the state."""


class TakesKeys(ABC):
    """An operator with results of given keys, whether they have rows or not."""

    @abstractmethod
    def add_keys(self, keys: pa.Table) -> None:
        """Add given keys, a column for each key column."""


#: An operator's view of its state in the log.
Stored = TypeVar("Stored")
#: Watermark and processing time, in ticks, of the next timers; None: none before the end of input.
Timers: TypeAlias = tuple[int | None, int | None]


class StatefulOperator(Operator, Generic[Stored]):
    """An operator that can save its state to a log and resume from there.

    Without a log it keeps its state in memory.
    """

    _stored: Stored | None = None

    def restore(self, log: StateLog) -> None:
        """Resume from saved state, before any other call; the operator owns ``log`` from now on.

        Raises
        ------
        StateError
            If the log has the state of another operator.
        """
        self._stored = self._restore_state(log.reopen())

    def save(self) -> None:
        """Save the state to the log; of large state, only the changes."""
        self._save(self._in_store)

    def next_timers(self) -> Timers:
        """Return the earliest watermark and processing time at which saved state has a timer."""
        return self._next_timers(self._in_store)

    @property
    def _in_store(self) -> Stored:
        assert self._stored is not None, "restore comes first"
        return self._stored

    @abstractmethod
    def _restore_state(self, log: StateLog) -> Stored:
        """Open the state in a log; see `restore`."""

    @abstractmethod
    def _save(self, stored: Stored) -> None:
        """See `save`."""

    @abstractmethod
    def _next_timers(self, stored: Stored) -> Timers:
        """See `next_timers`."""
