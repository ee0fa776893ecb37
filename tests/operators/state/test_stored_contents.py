"""What the tables in a store tell to those who only look."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.operators.build import build_operator, restored_operator
from gpu_windows.operators.describe_state import contents_of, first_alive, hashes_of
from gpu_windows.operators.panes.tables import windows_contents
from gpu_windows.operators.slices.operator import SlicesOperator
from gpu_windows.operators.slices.stored import StoredSlices
from gpu_windows.operators.slices.stored import contents as slices_contents
from gpu_windows.operators.state.store import MemoryStore, from_blob
from gpu_windows.options import Options
from gpu_windows.planning.plan import SLICE, Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.query.window import WindowQuery
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.examples import examples
from tests.operators.panes.queries import inputs, queries, run
from tests.operators.state.put_away import call, take
from tests.operators.state.sliced import inputs as steps_of_slices
from tests.operators.state.sliced import many_slices
from tests.query.queries import assigners, query

#: Rows, a watermark or a time.
Step = tuple[str, Any]


def told(store: MemoryStore) -> tuple[Counter[str], int]:
    """Return what windows and rows a store tells of, and how many different keys."""
    counts: Counter[str] = Counter()
    keys: set[int] = set()
    for (kind, bucket), blob in store.blobs.items():
        found = contents_of(kind, from_blob(blob, f"{kind}/{bucket}"))
        counts.update(found.counts)
        keys |= set(hashes_of(found.keys).tolist())
    return counts, len(keys)


def check(planned: Plan, steps: list[Step], names: dict[str, tuple[str, ...]]) -> None:
    """Compare what a store tells after every step with what the operator says that it holds.

    ``names``: what the store counts, to the names of `gpu_windows.operators.base.state_size`.
    """
    store = MemoryStore()
    for step in steps:
        operator = restored_operator(planned, store)
        run(operator, [step])
        operator.save()
        size = Counter(operator.state_size())
        counts, keys = told(store)
        for name, parts in names.items():
            assert counts[name] == sum(size[part] for part in parts)
        if counts["keys"]:  # the head tells them
            keys = counts["keys"]
        most = size["windows"] or size["rows"]  # they may wait for their windows
        assert min(1, most) <= keys <= most


@examples(60)
@given(queries(), inputs())
def test_machines(made: WindowQuery, steps: list[Step]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    check(planned, steps, {"windows": ("windows",), "rows": ("rows",)})


@examples(60)
@given(queries(), inputs())
def test_the_reference(made: WindowQuery, steps: list[Step]) -> None:
    planned = plan(replace(made, options=Options(engine="reference")), bounded=False)
    timers = ("event_timers", "processing_timers")
    check(planned, steps, {"windows": ("windows",), "timers": timers})


def test_slices_without_a_time() -> None:
    table = pa.table({"k": ["a", None, "a"], SLICE: [3, 3, 4], "__p0": [1, 2, 4]})
    found = slices_contents(table)
    assert (found.counts, found.start, found.end) == ({"rows": 7}, None, None)
    assert (len(hashes_of(found.keys)), len(hashes_of(found.identity))) == (2, 3)
    assert found.bucket is None


@examples(60)
@given(st.one_of(assigners(), many_slices()), steps_of_slices())
def test_slices(assigner: Any, steps: list[Any]) -> None:
    """What is told is what is alive, each key and slice once, however many blobs it is in."""
    planned, store = plan(query(assigner), bounded=False), MemoryStore()
    whole = build_operator(planned)
    assert isinstance(whole, SlicesOperator)
    for step in steps:
        call(planned, store, step)
        take(whole, step)
        entries = whole._table.entries()
        alive = first_alive(from_blob(store.blobs["head", 0], "head"))
        found = [
            contents_of(kind, from_blob(blob, kind), alive)
            for (kind, _), blob in store.blobs.items()
            if kind == "slices"
        ]
        told = {each for one in found for each in hashes_of(one.identity).tolist()}
        assert len(told) == len(entries)
        assert sum(one.counts["rows"] for one in found) == entries.states[0][0].sum()
        if len(entries):
            first, last = int(entries.slices.min()), int(entries.slices.max())
            grid = assigner.grid()
            times = rules.slice_start(first, grid), rules.slice_start(last + 1, grid)
            starts = [one.start for one in found if one.start is not None]
            ends = [one.end for one in found if one.end is not None]
            assert (min(starts), max(ends)) == times
            width = StoredSlices.width_of(grid.span)
            assert {one.bucket for one in found} == set((entries.slices // width).tolist())


@pytest.mark.parametrize(
    ("starts", "lasts", "time"),
    [([5, 3], [9, 12], (3, 13)), ([LONG_MIN], [LONG_MAX], (None, None)), ([], [], (None, None))],
)
def test_windows(starts: list[int], lasts: list[int], time: tuple[int | None, int | None]) -> None:
    held = [7] * len(starts)
    longs = {"key0": held, "number": starts, "slotstart": starts, "slotlast": lasts}
    table = pa.table({**longs, "slotheld": held}).cast(
        pa.schema([(name, pa.int64()) for name in (*longs, "slotheld")])
    )
    found = windows_contents(table)
    assert found.counts == {"windows": len(starts), "rows": sum(held)}
    assert (found.start, found.end) == time
    assert len(hashes_of(found.keys)) == min(1, len(starts))


def test_null_is_not_zero() -> None:
    columns = [pa.array([None, 0, None]), pa.array([None, None, ""])]
    assert len(hashes_of(columns)) == 3


def test_keys_are_values_not_bits() -> None:
    column = pa.chunked_array([[0.0, -0.0], [np.nan, -np.nan, None]], pa.float64())
    found = windows_contents(
        pa.table(
            {
                "key0": column,
                **{n: [0] * 5 for n in ("number", "slotstart", "slotlast", "slotheld")},
            }
        )
    )
    assert len(hashes_of(found.keys)) == 3


def test_a_kind_that_nobody_describes() -> None:
    found = contents_of("of the future", pa.table({"a": [1, 2, 3]}))
    assert (found.counts, found.keys, len(hashes_of(found.keys))) == ({"entries": 3}, (), 0)
