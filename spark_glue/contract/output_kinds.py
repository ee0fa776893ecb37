"""Numbers of the kinds of output rows: results, late rows, side outputs."""

from __future__ import annotations

import pyarrow as pa

from gpu_windows.commits import records
from gpu_windows.commits.records import side_name
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.plan import Plan

#: Side outputs have the kinds from `SIDES` on.
RESULT, LATE, SIDES = 0, 1, 2
#: Kinds of earlier stages: those of the first begin at `_STRIDE`, of the second at twice that.
_STRIDE = 1 << 16


def kinds_of(plan: Plan) -> dict[str, int]:
    """Return the names of a query's outputs to the kinds of their rows."""
    sides = map(side_name, plan.query.side_outputs)
    return {
        records.RESULT: RESULT,
        records.LATE: LATE,
        **{n: i for i, n in enumerate(sides, SIDES)},
    }


def first_kind(stage: int) -> int:
    """Return the first kind of an earlier stage, by its number from 0; its others follow."""
    return (stage + 1) * _STRIDE


def late_schema(plan: Plan) -> pa.Schema:
    """Return the Arrow schema of late rows: input columns, time in ticks, the reason."""
    crossed = plan.query.in_ticks(plan.input_columns)
    return crossed.append(pa.field(REASON, pa.string()))
