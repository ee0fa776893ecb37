"""State that another strategy goes on from belongs to that one from then on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from gpu_windows.errors import StateMismatchError
from gpu_windows.operators.state.store import MANIFEST, MemoryStore
from gpu_windows.planning.plan import Plan, Strategy, WindowPlan
from gpu_windows.spark_glue import manifest as manifests
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.texts import files_of
from tests.checkpoints import older

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = older.FOLDER / "0.1.0 before streams counted rows" / "count.arrow"
COUNTS = older.planned("count")
BACK = "strategy was counts, is buffer$"


def former() -> Plan:
    """Return the plan that versions had which kept count windows as rows."""
    assert isinstance(COUNTS, WindowPlan)
    return replace(COUNTS, strategy=Strategy.BUFFER, grid=None)


def strategy_in(store: MemoryStore) -> str:
    table = store.load(MANIFEST, 0)
    assert table is not None
    return str(Manifest.from_table(table).facts["strategy"])


def test_the_manifest_of_a_shard_moves_with_its_state() -> None:
    store = older.read(FILE)
    assert strategy_in(store) == "buffer"
    died = MemoryStore(dict(store.blobs))
    Shard(COUNTS).begin(died, 0, 0)  # what a call writes that dies is not kept
    older.run(COUNTS, store, older.AFTER[:1])
    assert strategy_in(store) == "counts"
    blob = store.blobs[MANIFEST, 0]
    older.run(COUNTS, store, older.AFTER[1:])
    assert store.blobs[MANIFEST, 0] is blob
    with pytest.raises(StateMismatchError, match=BACK):
        Shard(former()).begin(store, 0, 0)


def test_the_measures_count_its_bytes() -> None:
    store = older.read(FILE)
    shard = Shard(COUNTS)
    for number in range(2):
        batch = shard.begin(store, number, 0)
        list(batch.emissions([]))
        measured = batch.finish().measures
        held = sum(len(blob) for (kind, _), blob in store.blobs.items() if kind != "measures")
        assert measured.state_bytes == held


def test_the_text_of_a_checkpoint_moves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, mine = str(tmp_path / "checkpoint"), Manifest.of(COUNTS)

    def texts() -> list[str]:
        return files_of(spark, f"{path}/gpu_windows")

    def told() -> str:
        found = Manifest.in_checkpoint(spark, path)
        assert found is not None
        return str(found.facts["strategy"])

    Manifest.of(former()).check_checkpoint(spark, path)
    mine.compare_checkpoint(spark, path)
    assert told() == "buffer"

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(manifests, "add_text", die)
        with pytest.raises(KeyboardInterrupt):
            mine.check_checkpoint(spark, path)
    assert told() == "buffer"
    before = texts()
    for _ in range(2):
        mine.check_checkpoint(spark, path)
        assert told() == "counts"
        assert set(before) < set(texts())
        assert len(texts()) == 2
    with pytest.raises(StateMismatchError, match=BACK):
        Manifest.of(former()).compare_checkpoint(spark, path)
