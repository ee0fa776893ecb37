"""A query that is killed and started again has each row in PostgreSQL once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.driver import POSTGRES, POSTGRES_URL
from tests.chaos.harness import Death, fresh, is_planned_alike, prepare, run_with_death, undisturbed
from tests.sinks.postgres_server import ask, running_server

#: How often a driver is killed.
KILLS = 5


def rows_of(url: str, table: str) -> list[tuple[Any, ...]]:
    return sorted(ask(url, f"SELECT * FROM {table}"), key=repr)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_a_killed_query_has_the_same_rows_in_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows whose late firings replace earlier ones, and late rows, which are appended."""
    prepare(tmp_path / "whole", 4, 300)
    with running_server() as url:
        monkeypatch.setenv(POSTGRES_URL, url)
        seconds = undisturbed(POSTGRES, tmp_path / "whole")
        wanted = {kind: rows_of(url, f"whole{kind}") for kind in ("", "_late")}
        assert all(wanted.values())
        rng = random.Random(11)
        deaths: list[Death] = []
        while len(deaths) < KILLS:  # Spark may take two files at once after a death
            name = f"killed_{rng.randrange(10**9)}"
            folder = fresh(tmp_path / name, tmp_path / "whole")
            death = run_with_death(POSTGRES, folder, "driver", 0.9 * seconds, rng)
            assert death is not None
            if not is_planned_alike(folder, tmp_path / "whole"):
                continue
            deaths.append(death)
            assert {kind: rows_of(url, f"{name}{kind}") for kind in wanted} == wanted
        (commits,) = ask(url, f"SELECT count(*) FROM gpu_windows_commits WHERE target = '{name}'")
        assert commits == (1,)
