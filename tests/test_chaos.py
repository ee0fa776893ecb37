"""What is written by a query that is killed and started again is what it would have written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.driver import JOIN
from tests.chaos.harness import (
    Victim,
    fresh,
    prepare,
    rows_written,
    run_with_death,
    undisturbed,
)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("query", "victim"),
    [
        ("sliding", "driver"),
        (JOIN, "worker"),
        pytest.param("sliding", "worker", marks=pytest.mark.slow),
        pytest.param(JOIN, "driver", marks=pytest.mark.slow),
    ],
)
def test_a_killed_query_writes_the_same(tmp_path: Path, query: str, victim: Victim) -> None:
    prepare(tmp_path / "whole", 4, 300)
    seconds = undisturbed(query, tmp_path / "whole")
    wanted = {kind: rows_written(tmp_path / "whole", kind) for kind in ("result", "late")}
    assert all(wanted.values())
    folder = fresh(tmp_path / "killed", tmp_path / "whole")
    death = run_with_death(query, folder, victim, 0.9 * seconds, random.Random(3))
    assert death is not None
    for kind, rows in wanted.items():
        assert rows_written(folder, kind) == rows
