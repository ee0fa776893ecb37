"""What the tables in a store tell to those who only look."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject

from gpu_windows.operators.build import restored_operator
from gpu_windows.operators.describe_state import contents_of, key_hashes
from gpu_windows.operators.panes.tables import windows_contents
from gpu_windows.operators.slices.stored import contents as slices_contents
from gpu_windows.operators.state.store import MemoryStore, from_blob
from gpu_windows.options import Options
from gpu_windows.planning.plan import SLICE, Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.query.window import WindowQuery
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.examples import examples
from tests.operators.panes.queries import inputs, queries, run

#: Rows, a watermark or a time.
Step = tuple[str, Any]


def told(store: MemoryStore) -> tuple[Counter[str], int]:
    """Return what windows and rows a store tells of, and how many different keys."""
    counts: Counter[str] = Counter()
    keys: set[int] = set()
    for (kind, bucket), blob in store.blobs.items():
        found = contents_of(kind, from_blob(blob, f"{kind}/{bucket}"))
        counts.update(found.counts)
        keys |= set(key_hashes(found).tolist())
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
    held = ("windows", "event_timers", "processing_timers", "trigger_state", "firings")
    check(planned, steps, {name: (name,) for name in held})


def test_slices_without_a_time() -> None:
    table = pa.table({"k": ["a", None, "a"], SLICE: [3, 3, 4], "__p0": [1, 2, 4]})
    found = slices_contents(table)
    assert (found.counts, found.start, found.end) == ({"slices": 3, "rows": 7}, None, None)
    assert len(key_hashes(found)) == 2


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
    assert len(key_hashes(found)) == min(1, len(starts))


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
    assert len(key_hashes(found)) == 3


def test_a_kind_that_nobody_describes() -> None:
    found = contents_of("of the future", pa.table({"a": [1, 2, 3]}))
    assert (found.counts, found.keys, len(key_hashes(found))) == ({"entries": 3}, (), 0)
