"""Draws aggregates over frames."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import TypeAlias

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.definitions import bind
from gpu_windows.functions.over import Over, OverColumn
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from tests.planning.queries import AGGREGATES
from tests.simulation import parts

#: Of different values; not of frames from the first row on.
ONCE: dict[str, Aggregate] = {
    "different": gw.count_distinct("text"),
    "different f": gw.count("f").distinct().filter("b"),
    "sum": gw.sum("i").distinct(),
    "mean": gw.mean("d").distinct(),
}
#: What draws a frame.
Draw: TypeAlias = Callable[[Random], gw.typing.Frame]


def over(rng: Random, schema: pa.Schema, watermarks: WatermarkStrategy) -> OverQuery:
    """Draw aggregates over frames that streams may have: of one kind, or of any."""
    kinds: list[Draw] = rng.choice(
        [[_range], [_rows], [_range, _rows, _ahead, _first_range, _first_rows]]
    )
    columns = []
    for number in range(rng.randint(1, 3)):
        among = ONCE if rng.random() < 0.2 else AGGREGATES
        aggregate = among[rng.choice([*among])]
        frame = rng.choice(kinds)(rng)
        columns.append(OverColumn(bind(f"r{number}", aggregate, schema), frame))
    if rng.random() < 0.2:
        dense = Aggregate("dense_rank", "ts")
        columns.append(OverColumn(bind("dense", dense, schema), gw.Range()))
    return OverQuery(
        schema=schema,
        time="ts",
        watermarks=watermarks,
        keys=parts.keys(rng),
        over=Over(tuple(columns), tuple(rng.sample(["i", "text", "d"], rng.randint(0, 2)))),
        arrival_order=("seq",),
    )


def _of_ticks(preceding: int | None, following: int) -> gw.Range:
    before = None if preceding is None else timedelta(microseconds=preceding)
    return gw.Range(before, timedelta(microseconds=following))


def _range(rng: Random) -> gw.typing.Frame:
    return _of_ticks(rng.choice([0, 1, 5, rng.randint(0, 60)]), 0)


def _ahead(rng: Random) -> gw.typing.Frame:
    lower = rng.randint(-10, 40)
    return _of_ticks(lower, rng.randint(-lower, 30))


def _rows(rng: Random) -> gw.typing.Frame:
    before = rng.choice([0, 1, 2, 7])
    return gw.Rows(before, -rng.randint(0, before))


def _first_range(rng: Random) -> gw.typing.Frame:
    return _of_ticks(None, rng.choice([0, 0, -1, 15]))


def _first_rows(_: Random) -> gw.typing.Frame:
    return gw.Rows(None, 0)
