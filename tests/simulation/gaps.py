"""Gap filling of queries that can have it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.gap_filling import GapFilling, GivenKeys
from gpu_windows.vocabulary.windows import SlicedAssigner

#: Given values of key columns; rows have some of them.
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "key": ("a", "b", "", None, "never"),
    "part": (None, 0, 1, 2, 7),
    "f": (None, float("nan"), 0.0, 0.25, -1.5),
    "d": (None, Decimal("0.000"), Decimal("1.500")),
    "b": (None, True, False),
    "day": (None, dt.date(2000, 1, 1), dt.date(1970, 1, 2)),
    "text": (None, "x", "y", "", "never"),
    "small": (None, 0, 1, -1),
}


def with_gaps(query: Query, rng: Random) -> Query:
    """Return a query that fills gaps, if it can; half of these do."""
    if not (isinstance(query, WindowQuery) and _can_be_filled(query)) or rng.random() < 0.5:
        return query
    names = [bound.name for bound in query.function.output_fields(query.schema)]
    lines = [
        bound.name
        for bound in query.function.output_fields(query.schema)
        if pa.types.is_floating(bound.type)
    ]
    carried = rng.sample(names, rng.randint(0, len(names)))
    interpolated = [name for name in lines if name not in carried and rng.random() < 0.5]
    if rng.random() < 0.6:
        until = rng.choice([1, 5, 30, 200])
        return replace(query, gaps=GapFilling(tuple(carried), tuple(interpolated), until))
    return replace(query, gaps=GapFilling(tuple(carried), given=_draw_keys(query, rng)))


def _can_be_filled(query: WindowQuery) -> bool:
    watermarks = query.watermarks
    is_plain = not (query.changed_only or query.grouping or query.allowed_lateness)
    return (
        is_plain
        and isinstance(query.assigner, SlicedAssigner)
        and query.fires_once
        and isinstance(query.function, Aggregates)
        and watermarks.moves
        and not watermarks.in_processing_time
    )


def _draw_keys(query: WindowQuery, rng: Random) -> GivenKeys:
    """Draw keys, of which some have rows, and bounds."""
    rows = {tuple(rng.choice(_VALUES[name]) for name in query.keys) for _ in range(4)}
    fields = [query.schema.field(name) for name in query.keys]
    columns = zip(*sorted(rows, key=repr), strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    start = rng.randint(-80, 80)
    end = rng.choice([None, start + rng.randint(1, 150)])
    return GivenKeys(pa.Table.from_arrays(arrays, names=[*query.keys]), start, end)
