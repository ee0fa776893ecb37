"""Checkpoints of older versions are read, and go on as if this version had begun them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import gpu_windows as gw
from gpu_windows.operators import describe_state
from gpu_windows.operators.state.store import MemoryStore
from tests.checkpoints import older

KEPT = sorted(older.FOLDER.glob("*/*.arrow"))


def test_every_query_has_been_kept() -> None:
    of_release = [file for file in KEPT if file.parent.name == gw.__version__]
    assert {file.stem for file in of_release} == {*older.QUERIES}


def test_every_kind_of_table_has_been_kept() -> None:
    """One that nobody describes has no place in a store either."""
    kinds = {kind for file in KEPT for kind, _ in older.read(file).blobs}
    assert kinds == {*describe_state.KINDS, "head", "manifest", "measures"}


@pytest.mark.parametrize("file", KEPT, ids=lambda file: f"{file.parent.name}: {file.stem}")
def test_it_goes_on(file: Path) -> None:
    planned, whole = older.planned(file.stem), MemoryStore()
    older.run(planned, whole, older.BEFORE)
    found = older.run(planned, older.read(file), older.AFTER)
    assert found == older.run(planned, whole, older.AFTER)
    assert sum(map(len, found)) > 10


@pytest.mark.parametrize("name", older.QUERIES)
def test_what_is_kept_is_needed(name: str) -> None:
    """Without it the rest gives something else, so the test above would fail."""
    planned, whole = older.planned(name), MemoryStore()
    older.run(planned, whole, older.BEFORE)
    assert older.run(planned, MemoryStore(), older.AFTER) != older.run(planned, whole, older.AFTER)
