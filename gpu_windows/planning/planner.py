"""The planner: chooses how a query is evaluated, or refuses it with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.kinds.interval_join import IntervalJoinQuery
from gpu_windows.planning.kinds.match import MatchQuery
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.kinds.over_frames import check_over
from gpu_windows.planning.kinds.pairs import PairsQuery
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.kinds.temporal_join import TemporalJoinQuery
from gpu_windows.planning.kinds.top import TopQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_strategy import check_bounded, check_unbounded, strategy_of
from gpu_windows.planning.order import order_of, order_warnings
from gpu_windows.planning.partials import SLOWLY, partials_by, partials_of
from gpu_windows.planning.plan import (
    ARRIVAL,
    IntervalJoinPlan,
    MatchPlan,
    OverPlan,
    PartialsBy,
    Plan,
    ProcessPlan,
    Strategy,
    TemporalJoinPlan,
    TopPlan,
    WindowPlan,
)
from gpu_windows.planning.query import Query


@dataclass(frozen=True)
class _Where:
    """Where a query runs: see `plan`."""

    bounded: bool
    spark: bool
    crosses_quickly: bool
    reads_in_task: bool = False


@overload
def plan(
    query: WindowQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> WindowPlan: ...
@overload
def plan(
    query: IntervalJoinQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> IntervalJoinPlan: ...
@overload
def plan(
    query: TemporalJoinQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> TemporalJoinPlan: ...
@overload
def plan(
    query: ProcessQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> ProcessPlan: ...
@overload
def plan(
    query: OverQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> OverPlan: ...
@overload
def plan(
    query: TopQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> TopPlan: ...
@overload
def plan(
    query: MatchQuery,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> MatchPlan: ...
@overload
def plan(
    query: Query,
    *,
    bounded: bool,
    spark: bool = ...,
    crosses_quickly: bool = ...,
    reads_in_task: bool = ...,
) -> Plan: ...
def plan(
    query: Query,
    *,
    bounded: bool,
    spark: bool = False,
    crosses_quickly: bool = False,
    reads_in_task: bool = False,
) -> Plan:
    """Plan a query.

    Parameters
    ----------
    query : Query
    bounded : bool
        Whether the whole input comes before the watermark moves, so that no row is late.
    spark : bool
        Whether it runs on Spark, where a shuffle loses the order of arrival.
    crosses_quickly : bool
        Whether Spark's settings are those with which rows cross to Python quickly.
    reads_in_task : bool
        Whether the tasks of Spark read the rows by themselves, so that none crosses.

    Returns
    -------
    WindowPlan, IntervalJoinPlan, TemporalJoinPlan, ProcessPlan, OverPlan, TopPlan or MatchPlan
        By the kind of the query.

    Raises
    ------
    UnsupportedQueryError
        With the reason.
    """
    if query.options.partials == "spark" and not bounded:
        raise UnsupportedQueryError("partials='spark' is not possible: streams are not batches")
    return _PLANNERS[type(query)](query, _Where(bounded, spark, crosses_quickly, reads_in_task))


def _plan_windows(query: WindowQuery, where: _Where) -> WindowPlan:
    bounded, spark = where.bounded, where.spark
    if bounded:
        check_bounded(query)
    strategy, grid, why = strategy_of(query, bounded=bounded)
    if strategy is not Strategy.SLICES:
        _check_slices_asked(query, why, where)
        if query.grouping is not None:
            rule = f"grouping sets are combined from slices, which these windows have not: {why}"
            raise UnsupportedQueryError(rule, value=query.function.describe())
    partials = () if strategy is Strategy.ROW_AT_A_TIME else partials_of(query)
    by, reasons = PartialsBy.KERNELS, [why]
    if strategy is Strategy.BUFFER:
        reasons.append(_kept(query))
    if spark and bounded and grid is not None and strategy is Strategy.SLICES:
        by, reason = partials_by(
            query,
            partials,
            grid,
            crosses_quickly=where.crosses_quickly,
            reads_in_task=where.reads_in_task,
        )
        reasons.append(reason)
    plan = WindowPlan(
        query=query,
        strategy=strategy,
        grid=grid,
        partials=partials,
        partials_by=by,
        **_arrival(query, reasons, where, crosses=by is PartialsBy.KERNELS),
    )
    if spark and not bounded:
        check_unbounded(query)
        more = [_LOCALLY] if plan.makes_partials else []
        if not query.has_key:
            more.append(_TOGETHER if plan.makes_partials else _ALL_TOGETHER)
        elif not query.shard_keys:
            more.append(_NO_SHARED_KEY)
        plan = replace(plan, reasons=(*plan.reasons, *more))
    return plan


def _kept(query: WindowQuery) -> str:
    """Say what is kept of the rows of a window until it fires."""
    if query.why_rows is None:
        return "a window keeps partials, not its rows"
    return f"a window keeps its rows: {query.why_rows}"


_LOCALLY = (
    "rows in time become partials before the shuffle of write_stream, where that is smaller; "
    "late rows are shipped whole"
)
_TOGETHER = "all rows have the same windows: partials of all tasks are combined in one shard"
_NO_SHARED_KEY = "no key is in all grouping sets: partials of all tasks are combined in one shard"
_ALL_TOGETHER = "all rows have the same windows, so all of them go to one shard: one task sees them"
_IN_ONE = "there is no key, so all rows go to one shard: one task finds patterns in them"
_JOINED_TOGETHER = "there is no key, so all rows go to one shard: one task joins them"
_IN_COLUMNS = (
    "interval join: the rows of both sides sorted by key and time, the partners of a row found as "
    "a range; pairs are made in chunks"
)
_IN_FRAMES = (
    "over: the rows sorted by key and time, the frame of a row found as a range, and combined from "
    "two scans of blocks that are as long as the frame, at a cost that does not depend on how long"
)
_FIRST_ROWS = (
    "top: the rows of all keys that came together sorted once, with the first ones of each until "
    "now; the others are left out, and what has changed is given when all are taken"
)
_IN_AUTOMATON = (
    "match: the rows that the watermark has reached sorted by key and time, and an automaton "
    "compiled for the CPU that takes them key by key; what is true of one row is a column before"
)
_TO_FUNCTION = "row at a time, in Python: rows and timers go to the function in order"
_BROADCAST = (
    "the broadcast rows of a micro-batch go to all shards, before its other rows; each shard keeps "
    "broadcast state of its own"
)
_TO_VECTOR_FUNCTION = "rows and timers go to the function as columns, those of many keys at once"
_NEWEST = (
    "temporal join: the left rows that the watermark has reached and the versions of their keys "
    "sorted by key and time, of each key the newest version is kept"
)
_PAIRS = "each pair goes to the function, in Python"
_BY_ROW = "row at a time, in Python: the reference engine was asked for"


def _plan_interval_join(query: IntervalJoinQuery, where: _Where) -> IntervalJoinPlan:
    strategy, why = _joined_by(query, Strategy.INTERVAL_JOIN, _IN_COLUMNS, where)
    reasons = [why] if query.has_key or not where.spark else [why, _JOINED_TOGETHER]
    plan = IntervalJoinPlan(
        query=query, strategy=strategy, **_arrival(query, reasons, where, crosses=True)
    )
    _check_moves(query, "an interval join on streams would keep all rows for ever", where)
    return plan


def _plan_temporal_join(query: TemporalJoinQuery, where: _Where) -> TemporalJoinPlan:
    strategy, why = _joined_by(query, Strategy.TEMPORAL_JOIN, _NEWEST, where)
    _check_moves(query, "a temporal join on streams would give no row", where)
    return TemporalJoinPlan(
        query=query, strategy=strategy, **_arrival(query, [why], where, crosses=True)
    )


def _joined_by(
    query: PairsQuery, strategy: Strategy, why: str, where: _Where
) -> tuple[Strategy, str]:
    """Return how pairs are found, and why so."""
    if query.options.engine == "reference":
        strategy, why = Strategy.ROW_AT_A_TIME, _BY_ROW
    _check_slices_asked(query, why, where)
    return strategy, why


def _check_moves(query: Query, what: str, where: _Where) -> None:
    """Refuse streams without watermarks, where results wait for them."""
    if where.spark and not where.bounded and not query.watermarks.moves:
        rule = f"without watermarks {what}"
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())


def _plan_process(query: ProcessQuery, where: _Where) -> ProcessPlan:
    why = _TO_VECTOR_FUNCTION if query.process.in_batches else _TO_FUNCTION
    _check_slices_asked(query, why, where)
    reasons = [why, *([_BROADCAST] if query.broadcasts else ())]
    return ProcessPlan(
        query=query,
        strategy=Strategy.PROCESS,
        **_arrival(query, reasons, where, crosses=True),
    )


def _plan_over(query: OverQuery, where: _Where) -> OverPlan:
    strategy, why = Strategy.OVER, _IN_FRAMES
    if query.options.engine == "reference":
        strategy, why = Strategy.ROW_AT_A_TIME, _BY_ROW
    _check_slices_asked(query, why, where)
    if not where.bounded:
        check_over(query, spark=where.spark)
    return OverPlan(query=query, strategy=strategy, **_arrival(query, [why], where, crosses=True))


def _plan_top(query: TopQuery, where: _Where) -> TopPlan:
    _check_nothing_asked(query, "a top of keys", reference=True)
    arrival = _arrival(query, [_FIRST_ROWS], where, crosses=True)
    return TopPlan(query=query, strategy=Strategy.TOP, **arrival)


def _plan_match(query: MatchQuery, where: _Where) -> MatchPlan:
    _check_nothing_asked(query, "a pattern")
    _check_moves(query, "a pattern on streams would never be found", where)
    strategy, why = Strategy.MATCH, _IN_AUTOMATON
    if query.options.engine == "reference":
        strategy, why = Strategy.ROW_AT_A_TIME, _BY_ROW
    reasons = [why] if query.has_key or not where.spark else [why, _IN_ONE]
    arrival = _arrival(query, reasons, where, crosses=True)
    return MatchPlan(query=query, strategy=strategy, **arrival)


def _check_nothing_asked(query: Query, what: str, *, reference: bool = False) -> None:
    """Refuse options about kernels of devices and partials, and ``reference``, if there is none."""
    options = query.options
    asked = {
        "device": (options.device == "cuda", "no kernel of a device runs"),
        "partials": (options.partials == "spark", "no partials are made for"),
        "engine": (reference and options.engine == "reference", "no reference is there of"),
    }
    for name, (is_asked, why) in asked.items():
        if is_asked:
            rule = f"{name}={getattr(options, name)!r} is not possible: {why} {what}"
            raise UnsupportedQueryError(rule)


#: What plans each kind of query; a kind that is forgotten here is a KeyError.
_PLANNERS: Mapping[type[Query], Callable[[Any, _Where], Plan]] = {
    WindowQuery: _plan_windows,
    IntervalJoinQuery: _plan_interval_join,
    TemporalJoinQuery: _plan_temporal_join,
    ProcessQuery: _plan_process,
    OverQuery: _plan_over,
    TopQuery: _plan_top,
    MatchQuery: _plan_match,
}


def _check_slices_asked(query: Query, why: str, where: _Where) -> None:
    """Refuse Spark's partials for what has none."""
    if where.spark and query.options.partials == "spark":
        rule = f"partials='spark' is not possible, for they are of slices: {why}"
        raise UnsupportedQueryError(rule)


def _arrival(query: Query, reasons: list[str], where: _Where, *, crosses: bool) -> dict[str, Any]:
    """Return the reasons and what a plan says of the order of arrival, for any kind of plan."""
    if query.pair_process is not None:
        reasons = [*reasons, _PAIRS]
    order: tuple[str, ...] = (ARRIVAL,)
    warnings: tuple[str, ...] = ()
    if where.spark:
        if crosses and not (where.crosses_quickly or where.reads_in_task):
            reasons = [*reasons, SLOWLY]
        order = order_of(query, bounded=where.bounded)
        warnings = order_warnings(query, order, bounded=where.bounded)
    return {
        "order": order,
        "reasons": tuple(reasons),
        "warnings": warnings,
        "bounded": where.bounded,
    }
