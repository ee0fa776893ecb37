"""Every kind of table that an operator keeps is described."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpu_windows as gw
from gpu_windows.operators import describe_state
from gpu_windows.operators.by_row import older
from gpu_windows.operators.state import row_runs, runs
from tests.checkpoints import queries
from tests.checkpoints.checkpoint_writer import CheckpointWriter
from tests.checkpoints.queries import SECOND

#: Rows of micro-batches, and the watermark after each.
MICRO_BATCHES = [(range(60), None), (range(60, 90), 30 * SECOND - 1)]
#: What a shard keeps besides its operator.
OTHERS = {"measures"}
#: What no operator of this version writes.
FORMER = {older.KIND}


def kinds_of(name: str, folder: Path) -> set[str]:
    made = queries.plan_query(name)
    checkpoint = CheckpointWriter(folder, made)
    for numbers, watermark in MICRO_BATCHES:
        checkpoint.micro_batch(queries.rows(made, numbers), watermark=watermark)
    return {each.kind for each in gw.read_state(folder).kinds}


def test_every_kind_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_BLOCK_BYTES", 6_000)  # so that there are some blocks
    monkeypatch.setattr(row_runs, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(runs, "_FILTERED", 1)  # and filters
    found = {name: kinds_of(name, tmp_path / name) for name in queries.QUERIES}
    described = describe_state.KINDS | OTHERS
    assert not {name: kinds - described for name, kinds in found.items() if kinds - described}
    assert set[str]().union(*found.values()) == described - FORMER
