"""The plan: what the planner decided, frozen and picklable; and what builds and checks it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Generic, TypeAlias, TypeGuard, TypeVar

import pyarrow as pa

from gpu_windows.aggregates.partials import Partial
from gpu_windows.column_types.logical import is_sortable
from gpu_windows.errors import ColumnTypeError, UnsupportedQueryError
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.planning.own_columns import NO_KEY, NO_TIME, SPREAD
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
#: Reason of a plan whose rows cross to Python.
SLOW_CROSSING = (
    "rows cross to Python slowly with these settings of Spark, see gpu_windows.configure"
)
#: Reason of a plan whose query asks for the reference engine.
REFERENCE = "row at a time, in Python: the reference engine was asked for"
_PAIRS = "each pair goes to the function, in Python"

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
CPU_ONLY = (
    Strategy.BUFFER, Strategy.PROCESS, Strategy.TOP, Strategy.MATCH, Strategy.SELECT,
    Strategy.ROW_AT_A_TIME,
)  # fmt: skip
#: Strategies whose operators scan all state of the keys of a call, so larger calls pay off.
_SCANNING = (
    Strategy.BUFFER, Strategy.INTERVAL_JOIN, Strategy.TEMPORAL_JOIN, Strategy.OVER, Strategy.TOP,
    Strategy.MATCH,
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
        return self.strategy not in CPU_ONLY

    @cached_property
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


def explain(plan: Plan) -> str:
    """Describe a plan: what is computed, how, on which device and why."""
    device = "cpu: no kernel of a device runs it"
    if plan.calls_kernels:
        device = f"{plan.query.options.device}, chosen where the work is done"
    lines = [
        *(f"{name:<10}{text}" for name, text in plan.query.describe().items()),
        f"strategy  {plan.strategy.value}",
        *(f"          - {reason}" for reason in plan.reasons),
        f"device    {device}",
        *(f"warning   {warning}" for warning in plan.warnings),
    ]
    return "\n".join(lines)


def is_plan_of(plan: Plan, kind: type[Q]) -> TypeGuard[QueryPlan[Q]]:
    """Whether a plan is one of a kind of query, such as `OverQuery`."""
    return isinstance(plan.query, kind)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where and how a query is to be executed. Parameters: see `gpu_windows.planning.planner`."""

    bounded: bool
    spark: bool
    crosses_quickly: bool
    reads_in_task: bool

    @property
    def is_spark_stream(self) -> bool:
        """Whether it is a stream in Spark."""
        return self.spark and not self.bounded


def check_partials_option(query: Query, why: str, execution: Execution) -> None:
    """Refuse Spark's partials for a strategy without slices; ``why``: the reason for it."""
    if execution.spark and query.options.partials == "spark":
        rule = f"partials='spark' is not possible, it needs windows of slices: {why}"
        raise UnsupportedQueryError(rule)


def check_no_reference(query: Query, subject: str) -> None:
    """Refuse the reference engine for a kind of query that it does not evaluate.

    ``subject``: what to call that kind in the message.
    """
    if query.options.engine == "reference":
        rule = (
            f"engine='reference' is not possible: the reference engine does not evaluate {subject}"
        )
        raise UnsupportedQueryError(rule)


def check_options(query: Query, subject: str) -> None:
    """Refuse options about devices and partials for a kind of query that uses neither.

    ``subject``: what to call that kind in the message.
    """
    options = query.options
    refused = {
        "device": (options.device == "cuda", "no kernel of a device runs"),
        "partials": (options.partials == "spark", "no partials are made for"),
    }
    for name, (is_refused, why) in refused.items():
        if is_refused:
            rule = f"{name}={getattr(options, name)!r} is not possible: {why} {subject}"
            raise UnsupportedQueryError(rule)


def check_watermarks_move(query: Query, consequence: str, execution: Execution) -> None:
    """Refuse a stream without watermarks where results wait for them."""
    if execution.is_spark_stream and not query.watermarks.moves:
        rule = f"without watermarks {consequence}"
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())


def build_plan(
    query: Q,
    strategy: Strategy,
    reasons: Sequence[str],
    execution: Execution,
    *,
    crosses: bool = True,
) -> QueryPlan[Q]:
    """Return the plan of a query by a strategy.

    ``reasons``: for the strategy; those for its execution are added. ``crosses``: whether rows go
    to Python on Spark.
    """
    reasons = [*reasons, *(() if query.pair_process is None else (_PAIRS,))]
    order: tuple[str, ...] = (ARRIVAL,)
    warnings: tuple[str, ...] = ()
    if execution.spark:
        if crosses and not (execution.crosses_quickly or execution.reads_in_task):
            reasons.append(SLOW_CROSSING)
        order = _choose_order(query, bounded=execution.bounded)
        warnings = _warn_of_order(query, order, bounded=execution.bounded)
    return QueryPlan(
        query=query,
        strategy=strategy,
        order=order,
        reasons=tuple(reasons),
        warnings=warnings,
        bounded=execution.bounded,
        batches_per_call=BATCHES_PER_SCAN if strategy in _SCANNING else 1,
    )


def _choose_order(query: Query, *, bounded: bool) -> tuple[str, ...]:
    """Return the columns that give the order of arrival on Spark."""
    if not (query.is_always_ordered or query.order_dependent(bounded=bounded)):
        return ()
    for name in query.arrival_order:
        if not _is_sortable(query, name):
            rule = "arrival_order takes numbers, times, strings and binary"
            raise ColumnTypeError(rule, value=str(query.schema.field(name).type), column=name)
    first = (SIDE,) if query.broadcasts else ()  # false: the rows that go everywhere
    if query.arrival_order:
        return (*first, *query.arrival_order)
    used = [name for name in query.order_columns if _is_sortable(query, name)]
    if used and not query.has_time:
        return tuple(dict.fromkeys([*first, *used]))
    return tuple(dict.fromkeys([*first, query.time, *used]))


def _is_sortable(query: Query, name: str) -> bool:
    return is_sortable(query.schema.field(name).type)


def _warn_of_order(query: Query, order: tuple[str, ...], *, bounded: bool) -> tuple[str, ...]:
    """Return a warning if results depend on an order that the user did not name."""
    parts = query.order_dependent(bounded=bounded)
    if not parts or query.arrival_order or not order:
        return ()
    depend = "depends" if len(parts) == 1 else "depend"
    if order == (NO_TIME,):
        order = ("no column",)
    return (
        f"{', '.join(parts)} {depend} on the order of arrival, which a shuffle loses: rows are "
        f"ordered by {', '.join(order)}; name the columns of the "
        "true order with arrival_order",
    )
