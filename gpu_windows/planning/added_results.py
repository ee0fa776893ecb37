"""Results added to a query with state: they begin empty, as the state has nothing of them.

An added aggregate covers the rows since the start that added it. So it shares no partial with those
that cover earlier rows, too: its partials carry the number of that start, and cover no row of what
was stored before it. Rows stored before lack the columns that only added results read, which are
null in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from gpu_windows.errors import QueryError, StateMismatchError
from gpu_windows.planning.facts import Fact, describe_changes, facts_of
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import find_partials
from gpu_windows.planning.plan import Plan, Strategy, is_plan_of
from gpu_windows.planning.planner import plan as plan_query

_OTHER_STATE = (
    "a result may be added, and begin empty, if the state of rows stays the same: start the "
    "changed query on a new checkpoint"
)
_NOT_REMOVABLE = (
    "aggregates of windows and of OVER and columns of joins may begin empty, if kernels "
    "make them and nothing else needs them: start the changed query on a new checkpoint"
)

#: Names of added results to the numbers of the starts since which they have rows: 1 and more.
Since = Mapping[str, int]


def record_added(since: Since, names: Collection[str]) -> Since:
    """Return the added results with those that another start adds."""
    number = 1 + max(since.values(), default=0)
    return {**since, **dict.fromkeys(names, number)}


def with_rows_since(plan: Plan, since: Since) -> Plan:
    """Return the plan with its added results, which have rows since a start.

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
    query = plan.query.with_rows_since(since)
    changed = replace(plan, query=query, lacking=query.in_ticks(lacking))
    if is_plan_of(changed, WindowQuery) and changed.partials:
        return replace(changed, partials=find_partials(changed.query))
    return changed


def find_added(results: Sequence[Sequence[Fact]], plan: Plan) -> list[str]:
    """Return the names of results that a query has, and had not when state was written.

    ``results``: of the facts of that, names with types.
    """
    earlier = {name for name, _ in results}
    return [name for name in plan.result_schema.names if name not in earlier]


def facts_without(plan: Plan, names: Collection[str]) -> dict[str, Fact]:
    """Return the facts of a plan without some results, which those of the state must equal.

    Raises
    ------
    StateMismatchError
        If the query is nothing without them, or stores its rows otherwise because of them.
    """
    earlier = _without(plan, names)
    differences = list(_differences(earlier, plan))
    if differences:
        value = "; ".join(differences)
        raise StateMismatchError(_OTHER_STATE, value=value, column=", ".join(names))
    return facts_of(earlier)


def _without(plan: Plan, names: Collection[str]) -> Plan:
    column = ", ".join(names)
    try:
        query = plan.query.without(names)
        if query is None or plan.strategy is Strategy.ROW_AT_A_TIME:
            raise StateMismatchError(_NOT_REMOVABLE, value=plan.strategy.value, column=column)
        return plan_query(query, bounded=plan.bounded, spark=True)
    except QueryError as error:
        raise StateMismatchError(_NOT_REMOVABLE, value=error, column=column) from error


def _differences(before: Plan, after: Plan) -> Iterator[str]:
    """Yield how the state of two plans differs, other than in results that are added."""
    shapes = _shape_of(before), _shape_of(after)
    if before.query.order_dependent(bounded=before.bounded):
        for shape, plan in zip(shapes, (before, after), strict=True):
            shape["order of arrival"] = [*plan.order]
    yield from describe_changes(*shapes)


def _shape_of(plan: Plan) -> dict[str, Fact]:
    """Return the facts of a plan about how and when rows are stored, whatever the results are."""
    shape: dict[str, Fact] = {"strategy": plan.strategy.value}
    if is_plan_of(plan, WindowQuery):
        shape |= {
            "slices": None if plan.grid is None else [*plan.grid],
            "whole rows": plan.query.why_rows is not None,
            "rows buffered until the end": plan.query.buffers_until_end,
        }
    if is_plan_of(plan, OverQuery):
        over = plan.query.over
        shape |= {"lateness": over.lateness.value, "rows to come": over.ticks_after}
    return shape
