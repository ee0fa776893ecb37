"""Which columns a plan's partials have in a table of partials."""

from __future__ import annotations

from gpu_windows.aggregates.partials import Combine, Lift, Partial
from gpu_windows.operators.columns.numeric import ALL
from gpu_windows.operators.columns.partials import (
    FoldedColumn,
    MomentsColumn,
    PartialColumn,
    Rows,
    State,
)
from gpu_windows.operators.columns.picked_rows import PickedColumn
from gpu_windows.operators.columns.row_status import session_ends
from gpu_windows.operators.columns.sketches import DistinctColumn, QuantilesColumn
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import END, Strategy
from gpu_windows.vocabulary.windows import EventTimeSessionWindows

_BY_COMBINATION: dict[Combine, type[PartialColumn]] = {
    Combine.ADD: FoldedColumn,
    Combine.MIN: FoldedColumn,
    Combine.MAX: FoldedColumn,
    Combine.MOMENTS: MomentsColumn,
    Combine.DISTINCT_SKETCH: DistinctColumn,
    Combine.QUANTILES_SKETCH: QuantilesColumn,
}


def partial_columns(plan: WindowPlan) -> list[PartialColumn]:
    """Return the columns of the plan's partials, in its order."""
    return [
        PickedColumn(partial, partial.name, plan.query, plan.order)
        if partial.combine is Combine.PICK
        else column_of(partial, partial.name)
        for partial in plan.partials
    ]


def column_of(partial: Partial, name: str) -> PartialColumn:
    """Return the column of a partial that picks no row."""
    return _BY_COMBINATION[partial.combine](partial, name)


class EndColumn(FoldedColumn):
    """The end of a session: the greatest of its rows' ``ts + gap``. State: (ends,)."""

    def __init__(self, plan: WindowPlan, assigner: EventTimeSessionWindows) -> None:
        super().__init__(Partial(Combine.MAX, Lift.VALUE, plan.query.time), END)
        self._assigner = assigner

    def lift(self, rows: Rows) -> State:
        """Return the end of every row's own session; see `session_ends`."""
        ts = rows.numeric(str(self.partial.column)).values
        return session_ends(self._assigner, ts, rows.table), ALL


def table_columns(plan: WindowPlan) -> list[PartialColumn]:
    """Return the columns of a table of partials: for sessions their end comes first."""
    assigner = plan.query.assigner
    ends: list[PartialColumn] = []
    if plan.strategy is Strategy.SESSIONS and isinstance(assigner, EventTimeSessionWindows):
        ends.append(EndColumn(plan, assigner))
    return [*ends, *partial_columns(plan)]
