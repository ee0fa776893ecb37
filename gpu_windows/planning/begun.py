"""Results that begin empty: a query goes on from the state of the same query without them.

Such an aggregate has the rows from a start on, so it shares no partial with those that have earlier
ones, too: its partials carry the number of that start, and are of no row in what was stored before
it. Rows that were stored before lack the columns that only such results read: these are null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from gpu_windows.errors import QueryError, StateMismatchError
from gpu_windows.planning.facts import Fact, changes, facts_of
from gpu_windows.planning.partials import partials_of
from gpu_windows.planning.plan import OverPlan, Plan, Strategy, WindowPlan
from gpu_windows.planning.planner import plan as plan_query

#: What is said where an added result may not begin empty.
_RULE = (
    "a result that is added may begin empty where what is kept of rows stays the same: start the "
    "changed query on a new checkpoint"
)


#: Names of results to the numbers of the starts from which on they have rows: 1 and more.
Since = Mapping[str, int]


def add_begun(since: Since, names: Collection[str]) -> Since:
    """Return which results began later, with more of them, for which this is another start."""
    number = 1 + max(since.values(), default=0)
    return {**since, **dict.fromkeys(names, number)}


def begin(plan: Plan, since: Since) -> Plan:
    """Return a plan some of whose results have rows from a start on.

    Parameters
    ----------
    plan : Plan
    since : mapping of str to int
        See `Since`.
    """
    if not since:
        return plan
    earlier = _without(plan, since)
    lacking = [name for name in plan.input_columns if name not in earlier.input_columns]
    query = plan.query.begun(since)
    changed = replace(plan, query=query, lacking=query.in_ticks(lacking))
    if isinstance(changed, WindowPlan) and changed.partials:
        return replace(changed, partials=partials_of(changed.query))
    return changed


def find_added(results: Sequence[Sequence[Fact]], plan: Plan) -> list[str]:
    """Return the names of results that a query has, and had not when state was written.

    ``results``: of the facts of that, names with types.
    """
    known = {name for name, _ in results}
    return [name for name in plan.result_schema.names if name not in known]


def facts_without(plan: Plan, names: Collection[str]) -> dict[str, Fact]:
    """Return the facts of a plan without some results: what went before must have been that.

    Raises
    ------
    StateMismatchError
        If the query is nothing without them, or keeps other things of its rows because of them.
    """
    earlier = _without(plan, names)
    found = list(_differences(earlier, plan))
    if found:
        raise StateMismatchError(_RULE, value="; ".join(found), column=", ".join(names))
    return facts_of(earlier)


def _without(plan: Plan, names: Collection[str]) -> Plan:
    rule = (
        "aggregates of windows and of OVER and columns of joins may begin empty, where kernels "
        "make them and nothing else needs them: start a changed query on a new checkpoint"
    )
    try:
        query = plan.query.without(names)
    except QueryError as error:
        raise StateMismatchError(rule, value=error, column=", ".join(names)) from error
    if query is None or plan.strategy is Strategy.ROW_AT_A_TIME:
        raise StateMismatchError(rule, value=plan.strategy.value, column=", ".join(names))
    return plan_query(query, bounded=plan.bounded, spark=True)


def _differences(before: Plan, after: Plan) -> Iterator[str]:
    """Yield in words how the state of two plans differs, besides in results that are added."""
    shapes = _shape_of(before), _shape_of(after)
    if before.query.order_dependent(bounded=before.bounded):
        for shape, plan in zip(shapes, (before, after), strict=True):
            shape["order of arrival"] = [*plan.order]
    yield from changes(*shapes)


def _shape_of(plan: Plan) -> dict[str, Fact]:
    """Return what of a plan says what is kept of its rows, and when, whatever the results are."""
    shape: dict[str, Fact] = {"strategy": plan.strategy.value}
    if isinstance(plan, WindowPlan):
        shape |= {
            "slices": None if plan.grid is None else [*plan.grid],
            "whole rows": plan.query.why_rows is not None,
            "rows buffered until the end": plan.query.buffers_until_end,
        }
    if isinstance(plan, OverPlan):
        shape |= {"lateness": plan.over.lateness.value, "rows to come": plan.over.ticks_after}
    return shape
