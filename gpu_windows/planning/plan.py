"""The plan: what the planner decided, frozen and picklable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeAlias, TypeGuard, TypeVar

import pyarrow as pa

from gpu_windows.aggregates.partials import Partial
from gpu_windows.planning.own_columns import NO_KEY, SPREAD
from gpu_windows.planning.query import Query
from gpu_windows.rules import Grid

#: Rows that are gathered for a call, where the query does not say: on a CPU, and on a device, where
#: a call costs some dozen launches and transfers however few its rows are.
BATCH_ROWS, DEVICE_ROWS = 1 << 17, 1 << 23
#: Batches in a call of an operator that scans all state of the keys of the call.
BATCHES_PER_SCAN = 8
#: Name of the column that carries the order of arrival inside the package.
ARRIVAL = "__arrival"
#: Name of the column that carries the number of a slice in tables of partials; for sessions, the
#: first tick.
SLICE = "__slice"
#: Name of the column that carries the end of a session in tables of partials.
END = "__end"

Q = TypeVar("Q", bound=Query)
Q_co = TypeVar("Q_co", bound=Query, covariant=True)


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
    SELECT = "select"
    ROW_AT_A_TIME = "row at a time"


class PartialsBy(Enum):
    """Who makes the partials of slices on Spark batch."""

    KERNELS = "kernels"
    SPARK = "spark"


#: Strategies without a kernel for a device.
_CPU_ONLY = (
    Strategy.BUFFER, Strategy.PROCESS, Strategy.TOP, Strategy.MATCH, Strategy.SELECT,
    Strategy.ROW_AT_A_TIME,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class QueryPlan(Generic[Q_co]):
    """A query with the decisions of the planner, by the type of the query.

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
    batches_per_call : int
        Batches of ``options.batch_rows`` in a call on a CPU.
    grid : Grid, optional
        The slices of windows; None for strategies without.
    partials : tuple of Partial
        Distinct partials that rows become, `ROWS` first; empty where they become none.
    partials_by : PartialsBy
    makes_partials : bool
        Whether rows become partials before a shuffle; else rows are shuffled, in order.
    lacking : pyarrow.Schema
        Columns, times as ticks, that rows in state may lack because results of them were added
        later: see `gpu_windows.planning.added_results`.
    """

    query: Q_co
    strategy: Strategy
    order: tuple[str, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    bounded: bool = False
    batches_per_call: int = 1
    grid: Grid | None = None
    partials: tuple[Partial, ...] = ()
    partials_by: PartialsBy = PartialsBy.KERNELS
    makes_partials: bool = False
    lacking: pa.Schema = field(default_factory=lambda: pa.schema([]))

    def lacking_of(self, names: Iterable[str]) -> pa.Schema:
        """Return those of some columns that rows in state may lack."""
        some = {*names}
        return pa.schema([each for each in self.lacking if each.name in some])

    def call_rows(self, *, on_device: bool = False) -> int:
        """Return how many rows are gathered for a call of the operator.

        More at once where a call scans all state of its keys, or goes to a device.
        """
        asked = self.query.options.batch_rows
        if on_device and asked is None:
            return DEVICE_ROWS
        rows = BATCH_ROWS if asked is None else asked
        return rows * self.batches_per_call

    @property
    def calls_kernels(self) -> bool:
        """Whether kernels run it that a device has, too."""
        return self.strategy not in _CPU_ONLY

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


#: A plan of a query of any kind.
Plan: TypeAlias = QueryPlan[Query]


def is_plan_of(plan: Plan, kind: type[Q]) -> TypeGuard[QueryPlan[Q]]:
    """Whether a plan is one of a kind of query, such as `OverQuery`."""
    return isinstance(plan.query, kind)
