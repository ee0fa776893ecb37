"""The plan: what the planner decided, frozen and picklable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa

from gpu_windows.aggregates.partials import Partial
from gpu_windows.functions.interval_join import IntervalJoinSpec
from gpu_windows.functions.over import Over
from gpu_windows.functions.patterns.match import Match
from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.functions.top_changes import TopChanges
from gpu_windows.planning.kinds.interval_join import IntervalJoinQuery
from gpu_windows.planning.kinds.match import MatchQuery
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.kinds.temporal_join import TemporalJoinQuery
from gpu_windows.planning.kinds.top import TopQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.query import NO_KEY, SPREAD, Query
from gpu_windows.rules import Grid
from gpu_windows.vocabulary.watermarks import stages_in

#: Rows that are gathered for a call, where the query does not say: on a CPU, and on a device, where
#: a call costs some dozen launches and transfers however few its rows are.
BATCH_ROWS, DEVICE_ROWS = 1 << 17, 1 << 23
#: Name of the column that carries the order of arrival inside the package.
ARRIVAL = "__arrival"
#: Name of the column that carries the number of a slice in tables of partials; for sessions, the
#: first tick.
SLICE = "__slice"
#: Name of the column that carries the end of a session in tables of partials.
END = "__end"


class Strategy(Enum):
    """How a query is evaluated."""

    SLICES = "slices"
    SESSIONS = "sessions"
    COUNTS = "counts"
    BUFFER = "buffer"
    INTERVAL_JOIN = "interval join"
    TEMPORAL_JOIN = "temporal join"
    OVER = "over"
    TOP = "top of keys"
    MATCH = "match"
    PROCESS = "process function"
    ROW_AT_A_TIME = "row at a time"


class PartialsBy(Enum):
    """Who makes the partials of slices on Spark batch."""

    KERNELS = "kernels"
    SPARK = "spark"


#: Those of which a call goes through all that is kept of some keys.
_AT_ONCE = (
    Strategy.BUFFER, Strategy.INTERVAL_JOIN, Strategy.TEMPORAL_JOIN, Strategy.OVER, Strategy.TOP,
    Strategy.MATCH,
)  # fmt: skip
#: Those that no kernel of a device runs.
_WITHOUT_KERNELS = (Strategy.PROCESS, Strategy.TOP, Strategy.MATCH, Strategy.ROW_AT_A_TIME)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A query with the decisions of the planner; a subclass for each kind of query.

    Parameters
    ----------
    query : Query
    strategy : Strategy
    order : tuple of str
        Columns that give the order of arrival; `ARRIVAL` where the input itself does.
    reasons : tuple of str
        Why this strategy, in order of importance.
    warnings : tuple of str
        What a user should know before trusting the result.
    bounded : bool
        Whether the whole input comes before the watermark moves.
    partials : tuple of Partial
        Distinct partials that rows become, `ROWS` first; empty where they become none.
    partials_by : PartialsBy
    lacking : pyarrow.Schema
        Columns, times as ticks, that rows in state may lack, for results of them began empty: see
        `gpu_windows.planning.begun`.
    """

    query: Query
    strategy: Strategy
    order: tuple[str, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    bounded: bool = False
    partials: tuple[Partial, ...] = ()
    partials_by: PartialsBy = PartialsBy.KERNELS
    lacking: pa.Schema = field(default_factory=lambda: pa.schema([]))

    def lacking_of(self, names: Iterable[str]) -> pa.Schema:
        """Return those of some columns that rows in state may lack."""
        some = {*names}
        return pa.schema([each for each in self.lacking if each.name in some])

    @property
    def makes_partials(self) -> bool:
        """Whether rows become partials before a shuffle; else rows are shuffled, in order."""
        return False

    def call_rows(self, *, on_device: bool = False) -> int:
        """Return how many rows are gathered for a call of the operator.

        More at once where a call goes through all that is kept, or goes to a device.
        """
        given = self.query.options.batch_rows
        if on_device and given is None:
            return DEVICE_ROWS
        rows = BATCH_ROWS if given is None else given
        return rows * self.batches_a_call

    @property
    def batches_a_call(self) -> int:
        """Batches of ``options.batch_rows`` in a call on a CPU."""
        return 8 if self.strategy in _AT_ONCE else 1

    @property
    def calls_kernels(self) -> bool:
        """Whether it is run by kernels that a device may run, too."""
        return self.strategy not in _WITHOUT_KERNELS

    @property
    def result_schema(self) -> pa.Schema:
        """Arrow schema of an operator's results; the bounds of windows are int64 ticks."""
        query = self.query
        return pa.schema([*query.key_fields, *query.bound_fields, *query.result_fields])

    @property
    def input_columns(self) -> tuple[str, ...]:
        """Columns that an operator needs: keys, time, arguments, order of arrival; each once."""
        query = self.query
        order = [name for name in self.order if name != ARRIVAL]
        return tuple(
            dict.fromkeys((*query.keys, query.time, *query.used_columns, *query.carried, *order))
        )

    @property
    def marker_columns(self) -> tuple[str, ...]:
        """Columns that are all null in a row that only carries a watermark."""
        query = self.query
        carrier = () if query.watermark_column == query.time else (query.watermark_column,)
        return tuple(
            n for n in self.input_columns if n not in carrier and n not in (NO_KEY, SPREAD)
        )


@dataclass(frozen=True, kw_only=True)
class WindowPlan(Plan):
    """How windows are evaluated. Other parameters: see `Plan`.

    Parameters
    ----------
    query : WindowQuery
    grid : Grid, optional
        The slices; None for strategies without.
    """

    query: WindowQuery
    grid: Grid | None = None

    @property
    def makes_partials(self) -> bool:
        """Whether rows become partials before a shuffle: slices, or bounded sessions.

        On streams, late rows do not, and processing time may go back: then rows are late of which
        nobody knows before the shuffle. Results of an earlier stage are few.
        """
        watermarks = self.query.watermarks
        unknown = watermarks.in_processing_time or stages_in(watermarks)
        if not self.bounded and unknown:
            return False
        return self.strategy in (Strategy.SLICES, Strategy.SESSIONS)


@dataclass(frozen=True, kw_only=True)
class IntervalJoinPlan(Plan):
    """How two inputs are joined in time. Other parameters: see `Plan`.

    Parameters
    ----------
    query : IntervalJoinQuery
    """

    query: IntervalJoinQuery

    @property
    def join(self) -> IntervalJoinSpec:
        """What is joined; a bounded input has no late rows that join."""
        return replace(self.query.join, joins_late=False) if self.bounded else self.query.join


@dataclass(frozen=True, kw_only=True)
class TemporalJoinPlan(Plan):
    """How rows are joined with versions. Other parameters: see `Plan`.

    Parameters
    ----------
    query : TemporalJoinQuery
    """

    query: TemporalJoinQuery

    @property
    def join(self) -> TemporalJoinSpec:
        """What is joined."""
        return self.query.join


@dataclass(frozen=True, kw_only=True)
class ProcessPlan(Plan):
    """How rows are given to a function of the user's. Other parameters: see `Plan`.

    Parameters
    ----------
    query : ProcessQuery
    """

    query: ProcessQuery

    @property
    def batches_a_call(self) -> int:
        """More where the function takes many rows at once."""
        return 8 if self.query.process.in_batches else 1


@dataclass(frozen=True, kw_only=True)
class OverPlan(Plan):
    """How aggregates over frames are evaluated. Other parameters: see `Plan`.

    Parameters
    ----------
    query : OverQuery
    """

    query: OverQuery

    @property
    def over(self) -> Over:
        """What is computed."""
        return self.query.over


@dataclass(frozen=True, kw_only=True)
class TopPlan(Plan):
    """How the first rows of keys are kept. Other parameters: see `Plan`.

    Parameters
    ----------
    query : TopQuery
    """

    query: TopQuery

    @property
    def top(self) -> TopChanges:
        """What is kept."""
        return self.query.top


@dataclass(frozen=True, kw_only=True)
class MatchPlan(Plan):
    """How patterns are found. Other parameters: see `Plan`.

    Parameters
    ----------
    query : MatchQuery
    """

    query: MatchQuery

    @property
    def match(self) -> Match:
        """What is found."""
        return self.query.match
