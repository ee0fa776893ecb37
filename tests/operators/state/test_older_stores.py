"""What an older version has stored is read, and goes on as if this one had stored it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.operators.build import build_operator, restored_operator
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import Query
from gpu_windows.rules import LONG_MAX

SECOND = 1_000_000
FOLDER = Path(__file__).parents[2] / "golden" / "checkpoints"


def table(begin: int, end: int) -> pa.Table:
    """Rows of seven keys; every third one comes up to eight seconds too early or too late."""
    numbers = range(begin, end)
    return pa.table(
        {
            "k": pa.array([f"key {i * 5 % 7}" for i in numbers]),
            "ts": pa.array([(i + (i % 3) * (i * 7 % 9)) * SECOND for i in numbers], pa.int64()),
            "v": pa.array([None if i % 11 == 0 else i % 13 for i in numbers], pa.int64()),
        }
    )


def sessions() -> Query:
    source = table(0, 1).set_column(1, "ts", table(0, 1)["ts"].cast(pa.timestamp("us", "UTC")))
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(source).event_time("ts", watermarks).key_by("k")
    windowed = keyed.window(gw.EventTimeSessionWindows.with_gap("9 s")).allowed_lateness("5 s")
    made = windowed.with_firing_columns().outputs(
        n=gw.count(), total=gw.sum("v"), mean=gw.mean("v"), spread=gw.stddev("v"), top=gw.max("v")
    )
    return made.plan.query


def store_of(name: str) -> MemoryStore:
    """Return what an older version left: a file a blob, of its kind and its bucket."""
    store = MemoryStore()
    for path in (FOLDER / name).iterdir():
        kind, bucket = path.stem.split("-")
        store.write(kind, int(bucket), path.read_bytes())
    return store


#: What was given when the store was made: numbers of rows, and a watermark in seconds.
BEFORE: list[tuple[int, int] | int] = [(0, 60), 30, (60, 90), 60]
AFTER: list[tuple[int, int] | int] = [(90, 120), 80, (120, 150), LONG_MAX]


def shown(row: dict[str, Any]) -> str:
    """Return a row as text; partials may have been added in another order."""
    return repr({name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()})


def given(operator: Any, steps: list[tuple[int, int] | int]) -> list[list[str]]:
    found: list[list[str]] = []
    for step in steps:
        if isinstance(step, tuple):
            emissions = operator.process(table(*step))
        else:
            at = step if step == LONG_MAX else step * SECOND
            emissions = operator.advance_watermark(at)
        found.append(
            sorted(row for each in emissions for row in map(shown, each.results.to_pylist()))
        )
    return found


@pytest.mark.parametrize("name", ["sessions of rows", "sessions of partials"])
def test_it_goes_on(name: str) -> None:
    planned = plan(sessions(), bounded=False)
    whole = build_operator(planned)
    given(whole, BEFORE)
    found = given(restored_operator(planned, store_of(name)), AFTER)
    assert found == given(whole, AFTER)
    assert all(map(len, (found[1], found[3])))


if __name__ == "__main__":  # record what this version stores, under a name
    (to,) = sys.argv[1:]
    made = MemoryStore()
    operator = restored_operator(plan(sessions(), bounded=False), made)
    given(operator, BEFORE)
    operator.save()
    (FOLDER / to).mkdir(parents=True)
    for (its, number), content in made.blobs.items():
        (FOLDER / to / f"{its}-{number}.blob").write_bytes(content)
