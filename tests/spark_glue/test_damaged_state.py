"""State that is damaged, in part missing, or another query's or version's: typed errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.errors import StateCorruptedError, StateMismatchError, StateVersionError
from gpu_windows.evictors import CountEvictor
from gpu_windows.operators.state import store as stores
from gpu_windows.operators.state.store import MemoryStore, from_blob, to_blob
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.times import END_MS
from gpu_windows.windows import EventTimeSessionWindows, TumblingEventTimeWindows
from tests.operators.joins.interval_joins import in_time
from tests.operators.joins.rows import table
from tests.operators.joins.version_joins import NOTHING, Case
from tests.query.queries import query
from tests.spark_glue.shard import Shard, input_of


def plans() -> dict[str, Plan]:
    """Return a plan of every kind of state."""
    made = {
        "slices": query(TumblingEventTimeWindows(10)),
        "sessions": query(EventTimeSessionWindows(5)),
        "rows": query(TumblingEventTimeWindows(10), evictor=CountEvictor.of(2)),
        "join": in_time(table([]), table([]), (-5, 5), how="full").plan.query,
        "version join": Case().outputs(*NOTHING).plan.query,
    }
    made |= {
        f"{name}, reference": replace(each, options=replace(each.options, engine="reference"))
        for name, each in made.items()
    }
    return {
        name: plan(each, bounded=False, spark=each.order_by != ()) for name, each in made.items()
    }


@pytest.mark.parametrize("name", plans())
def test_missing_state_is_a_typed_error(name: str) -> None:
    planned = plans()[name]
    by_rows = name.endswith("reference")
    assert (planned.strategy is Strategy.ROW_AT_A_TIME) == by_rows
    whole: dict[tuple[str, int], Any] = {}
    Shard(planned, whole).micro_batch(0, input_of(planned))
    assert len(whole) >= (3 if by_rows else 4)

    def go_on(kept: dict[tuple[str, int], Any]) -> int:
        """Take rows of all keys while all is kept, for what is over is forgotten unread."""
        shard = Shard(planned, kept)
        return shard.micro_batch(0, input_of(planned)) + shard.micro_batch(END_MS)

    assert go_on(dict(whole)) > 1
    for kind, bucket in whole:
        left = {place: kept for place, kept in whole.items() if place != (kind, bucket)}
        with pytest.raises(
            StateCorruptedError, match=f"state must be whole.*, got {kind}/{bucket}"
        ):
            go_on(left)
    for one, other in combinations(whole, 2):
        left = {place: kept for place, kept in whole.items() if place not in (one, other)}
        with pytest.raises(StateCorruptedError, match=r"state must be whole.*, got"):
            go_on(left)


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
    monkeypatch.setattr(stores, "VERSION", stores.VERSION + 1)
    newer = to_blob(pa.table({"a": [1]}))
    monkeypatch.undo()
    with pytest.raises(StateVersionError, match=rf"head/0.*got {stores.VERSION + 1}"):
        from_blob(newer, "head/0")


def test_state_of_another_query_is_a_typed_error() -> None:
    manifest = pytest.importorskip("gpu_windows.spark_glue.manifest").Manifest
    made = [plan(query(TumblingEventTimeWindows(size)), bounded=False) for size in (10, 20)]
    store = MemoryStore()
    manifest.of(made[0]).check(store)
    manifest.of(made[0]).check(store)
    text = r"new checkpoint, got window.size was 10 us, is 20 us$"
    with pytest.raises(StateMismatchError, match=text):
        manifest.of(made[1]).check(store)


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ('{"window": "tumbling 10 us", "shards": "4"}', StateVersionError, "format 3 .*, got 1$"),
        ('{"format": 4, "facts": {}}', StateVersionError, "format 3 .*, got 4$"),
        ("{", StateCorruptedError, "what gpu_windows wrote"),
        ("[]", StateCorruptedError, "what gpu_windows wrote"),
    ],
)
def test_manifests_of_other_formats(text: str, kind: type[Exception], rule: str) -> None:
    planned = plan(query(TumblingEventTimeWindows(10)), bounded=False)
    kept: dict[tuple[str, int], Any] = {}
    Shard(planned, kept).micro_batch(0, input_of(planned))
    to_text = pytest.importorskip("gpu_windows.spark_glue.processor").to_text
    kept["manifest", 0] = (to_text(to_blob(pa.table({"facts": [text]}))),)
    with pytest.raises(kind, match=rule):
        Shard(planned, kept).micro_batch(END_MS)


def test_text_that_is_none_of_ours_is_refused() -> None:
    processor = pytest.importorskip("gpu_windows.spark_glue.processor")
    blob = bytes(range(256))
    text = processor.to_text(blob)
    assert processor.from_text(text) == blob
    for damaged in (text[:-1], "?" + text[1:]):
        with pytest.raises(StateCorruptedError, match="what gpu_windows wrote"):
            processor.from_text(damaged)
