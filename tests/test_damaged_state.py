"""State that is damaged, in part missing, or another query's or version's: typed errors."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from gpu_windows.errors import StateCorruptedError, StateMismatchError, StateVersionError
from gpu_windows.evictors import CountEvictor
from gpu_windows.operators import store as stores
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.store import MemoryStore, from_blob, to_blob
from gpu_windows.plan import Plan, Strategy
from gpu_windows.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.windows import EventTimeSessionWindows, TumblingEventTimeWindows
from tests.queries import query
from tests.test_interval_join import in_time
from tests.test_interval_join_in_time import batch_of
from tests.test_stored_state import rows, take
from tests.test_window_join import Row, table

ROWS: list[tuple[bool, Row]] = [
    (True, ("a", 1, 1)),
    (False, ("a", 1, 2)),
    (True, ("b", 11, 3)),
    (False, ("b", 11, 4)),
]


def plans() -> dict[str, Plan]:
    """Return a plan of every kind of state."""
    made = {
        "slices": query(TumblingEventTimeWindows(10)),
        "sessions": query(EventTimeSessionWindows(5)),
        "rows": query(TumblingEventTimeWindows(10), evictor=CountEvictor.of(2)),
        "join": in_time(table([]), table([]), (-5, 5), how="full").plan.query,
    }
    made |= {
        f"{name}, reference": replace(each, options=replace(each.options, engine="reference"))
        for name, each in made.items()
    }
    return {name: plan(each, bounded=False) for name, each in made.items()}


def saved(planned: Plan) -> MemoryStore:
    """Return what an operator has saved, and its manifest."""
    store = MemoryStore()
    manifest(planned, store)
    operator = build_operator(planned)
    operator.restore(store)
    take(operator, input_of(planned))
    operator.save()
    return store


def go_on(planned: Plan, store: MemoryStore) -> None:
    """Start again, and use all that was saved."""
    manifest(planned, store)
    operator = build_operator(planned)
    operator.restore(store)
    take(operator, input_of(planned))
    take(operator, LONG_MAX)
    operator.save()


def manifest(planned: Plan, store: MemoryStore) -> None:
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    from gpu_windows.spark_glue.manifest import Manifest

    Manifest.of(planned).check(store)


def input_of(planned: Plan) -> pa.Table:
    joins = "is_left" in planned.query.schema.names
    return batch_of(ROWS, planned) if joins else rows(1, 2, 3, 11, 12)


@pytest.mark.parametrize("name", plans())
def test_missing_state_is_a_typed_error(name: str) -> None:
    planned = plans()[name]
    by_rows = name.endswith("reference")
    assert (planned.strategy is Strategy.ROW_AT_A_TIME) == by_rows
    whole = saved(planned)
    assert len(whole.blobs) >= (2 if by_rows else 3)
    go_on(planned, MemoryStore(dict(whole.blobs)))
    for kind, bucket in whole.blobs:
        left = MemoryStore(dict(whole.blobs))
        left.remove(kind, bucket)
        with pytest.raises(StateCorruptedError, match=r"state must be whole.*, got \w+/\d+"):
            go_on(planned, left)


def test_damaged_state_is_a_typed_error() -> None:
    blob = to_blob(pa.table({"a": [1, 2, 3]}))
    assert from_blob(blob, "here").to_pylist() == [{"a": 1}, {"a": 2}, {"a": 3}]
    middle = len(blob) // 2
    flipped = blob[:middle] + bytes([blob[middle] ^ 1]) + blob[middle + 1 :]
    for bad in (
        b"",
        blob[:7],
        blob[:-1],
        blob[:middle],
        flipped,
        b"\x80pickle..........",
        blob + b"x",
    ):
        with pytest.raises(StateCorruptedError, match="slices/3"):
            from_blob(bad, "slices/3")


def test_another_version_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "VERSION", 2)
    newer = to_blob(pa.table({"a": [1]}))
    monkeypatch.undo()
    with pytest.raises(StateVersionError, match=r"head/0.*got 2"):
        from_blob(newer, "head/0")


def test_state_of_another_query_is_a_typed_error() -> None:
    manifest = pytest.importorskip("gpu_windows.spark_glue.manifest").Manifest
    made = [plan(query(TumblingEventTimeWindows(size)), bounded=False) for size in (10, 20)]
    store = MemoryStore()
    manifest.of(made[0]).check(store)
    manifest.of(made[0]).check(store)
    with pytest.raises(StateMismatchError, match=r"new checkpoint, got window was .*10.*, is .*20"):
        manifest.of(made[1]).check(store)


def test_text_that_is_none_of_ours_is_refused() -> None:
    processor = pytest.importorskip("gpu_windows.spark_glue.processor")
    blob = bytes(range(256))
    text = processor.to_text(blob)
    assert processor.from_text(text) == blob
    for damaged in (text[:-1], "?" + text[1:]):
        with pytest.raises(StateCorruptedError, match="what gpu_windows wrote"):
            processor.from_text(damaged)
