"""Interval joins of two tables, and the rows of both in one batch."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.planning.plan import Plan
from tests.operators.joins.rows import Row, keyed

NEAREST = ("before", "after", "either")
BOUNDS = st.tuples(st.integers(-6, 6), st.integers(0, 8)).map(lambda b: (b[0], b[0] + b[1]))


def in_time(
    left: Any, right: Any, bounds: tuple[int, int], how: Any = "inner",
    exclusive: tuple[bool, bool] = (False, False), nearest: Any = None, late: bool = False,
    null_safe: bool = False, **options: Any,
) -> gw.typing.Outputs:  # fmt: skip
    ticks = (timedelta(microseconds=bound) for bound in bounds)
    pairs = keyed(left).interval_join(keyed(right)).between(*ticks)
    pairs = pairs.lower_bound_exclusive() if exclusive[0] else pairs
    pairs = pairs.upper_bound_exclusive() if exclusive[1] else pairs
    pairs = pairs if nearest is None else pairs.nearest(nearest)
    pairs = pairs.join_late() if late else pairs
    pairs = pairs.null_safe() if null_safe else pairs
    return pairs.options(device="cpu").with_outputs().select(["v"], ["v"], how=how, **options)


def seen(result: pa.Table) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in result.to_pylist())


def batch_of(rows: list[tuple[bool, Row]], planned: Plan) -> pa.Table:
    columns = {
        "is_left": [is_left for is_left, _ in rows],
        "k": [row[0] for _, row in rows],
        "event_time": [row[1] for _, row in rows],
        "left_v": [row[2] if is_left else None for is_left, row in rows],
        "right_v": [None if is_left else row[2] for is_left, row in rows],
        "__order_0": [*range(len(rows))],
    }
    fields = [planned.query.schema.field(name) for name in planned.input_columns]
    return pa.table([pa.array(columns[f.name], f.type) for f in fields], schema=pa.schema(fields))
