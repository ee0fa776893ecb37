"""State that is damaged, in part missing, or another version's: typed errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pyarrow as pa
import pytest

from gpu_windows.errors import StateCorruptedError, StateVersionError
from gpu_windows.evictors import CountEvictor
from gpu_windows.operators.state import store as stores
from gpu_windows.operators.state.store import MemoryStore, from_blob, to_blob
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
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
    whole = MemoryStore()
    Shard(planned, whole).micro_batch(None, input_of(planned))
    assert len(whole.blobs) >= (2 if by_rows else 3)
    assert go_on(planned, whole.blobs) > 1
    for kind, bucket in whole.blobs:
        left = {place: blob for place, blob in whole.blobs.items() if place != (kind, bucket)}
        with pytest.raises(
            StateCorruptedError, match=f"state must be whole.*, got {kind}/{bucket}"
        ):
            go_on(planned, left)
    for one, other in combinations(whole.blobs, 2):
        left = {place: blob for place, blob in whole.blobs.items() if place not in (one, other)}
        with pytest.raises(StateCorruptedError, match=r"state must be whole.*, got"):
            go_on(planned, left)


def go_on(planned: Plan, blobs: dict[tuple[str, int], bytes]) -> int:
    """Take rows of all keys while all is there, for what is over is forgotten unread."""
    store = MemoryStore(dict(blobs))
    store.has_saved = True
    shard = Shard(planned, store)
    return shard.micro_batch(None, input_of(planned)) + shard.micro_batch(LONG_MAX)


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
