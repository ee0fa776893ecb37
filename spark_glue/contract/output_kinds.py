"""Kinds of output rows: results, late rows, side outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.commits import records
from gpu_windows.commits.records import side_name
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.own_columns import NO_KEY, OWN, REASON, SPREAD
from gpu_windows.planning.plan import Plan

#: Side outputs have the kinds from `SIDES` on.
RESULT, LATE, SIDES = 0, 1, 2
#: Kinds of earlier stages: those of the first begin at `_STRIDE`, of the second at twice that.
_STRIDE = 1 << 16


@dataclass(frozen=True)
class OutputKind:
    """A kind of output rows, as operators give them.

    Parameters
    ----------
    number : int
    schema : pyarrow.Schema
    times : mapping of str to pyarrow.DataType
        Columns of ticks, and what they become.
    own : tuple of str
        Internal columns, which users do not see.
    """

    number: int
    schema: pa.Schema
    times: Mapping[str, pa.DataType]
    own: tuple[str, ...]


def kinds_of(plan: Plan) -> dict[str, OutputKind]:
    """Return the names of a query's outputs to the kinds of their rows."""
    query = plan.query
    late = query.in_ticks(plan.input_columns).append(pa.field(REASON, pa.string()))
    result_own = (NO_KEY, SPREAD, *MARKS)
    found = {
        records.RESULT: OutputKind(RESULT, plan.result_schema, query.window_types, result_own),
        records.LATE: OutputKind(LATE, late, {query.time: query.time_type}, OWN),
    }
    for number, (tag, schema) in enumerate(query.side_outputs.items(), SIDES):
        found[side_name(tag)] = OutputKind(number, schema, {}, (NO_KEY,))
    return found


def first_kind(stage: int) -> int:
    """Return the first kind of an earlier stage, by its number from 0; its others follow."""
    return (stage + 1) * _STRIDE
