"""Current types of the columns of state, by the plan."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.columns.partials import PartialColumn
from gpu_windows.operators.over.partial_columns import framed_columns
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, is_plan_of


def state_types(plan: Plan) -> dict[str, pa.DataType]:
    """Return the types of columns of the input, of keys and of partials, by name.

    Operators read state in these, whichever types an earlier start had: see `StateLog.types`.
    """
    query = plan.query
    types = {field.name: field.type for field in query.in_ticks(plan.input_columns)}
    types |= {f"key{i}": query.schema.field(name).type for i, name in enumerate(query.keys)}
    return types | {field.name: field.type for each in _columns(plan) for field in each.fields}


def _columns(plan: Plan) -> Iterable[PartialColumn]:
    if is_plan_of(plan, WindowQuery):
        return partial_columns(plan)
    if is_plan_of(plan, OverQuery):
        over = plan.query.over
        return framed_columns(plan, [p for frame in over.frames for p in over.partials(frame)])
    return ()
