"""The data of the benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.data import DAY, DISORDER, FILES, SCHEMA, START, DataSet, default_root


def ticks(table: pa.Table) -> Any:
    return table["ts"].cast(pa.int64()).to_numpy()


@pytest.mark.parametrize("rows", [0, 7, 8_003])
@pytest.mark.parametrize("shuffled", [False, True])
def test_data_has_its_rows_keys_and_types(root: Path, rows: int, shuffled: bool) -> None:
    folder = DataSet(rows, 13, shuffled=shuffled).ensure(root)
    assert len(list(folder.iterdir())) == FILES
    table = pq.read_table(folder)
    assert table.schema.equals(SCHEMA)
    assert len(table) == rows
    assert all(column.null_count == 0 for column in table.columns)
    assert set(table["key"].to_pylist()) <= set(range(13))
    if rows > 1_000:
        assert len(set(table["key"].to_pylist())) == 13
        assert ticks(table).min() >= START
        assert ticks(table).max() < START + DAY
        assert np.ptp(ticks(table)) > 0.99 * DAY


def test_rows_are_in_time_order_within_the_bound() -> None:
    parts = [ticks(DataSet(400_000, 10).part(index)) for index in range(FILES)]
    for index, part in enumerate(parts):
        assert part.min() >= START + index * DAY // FILES
        assert part.max() < START + (index + 1) * DAY // FILES
    rows = np.concatenate(parts)
    behind = np.maximum.accumulate(rows) - rows
    assert DISORDER // 2 < behind.max() < DISORDER


def test_shuffled_rows_are_in_no_order() -> None:
    part = ticks(DataSet(80_000, 10, shuffled=True).part(3))
    assert np.ptp(part) > 0.99 * DAY
    assert np.mean(np.diff(part) < 0) == pytest.approx(0.5, abs=0.05)


def test_data_is_made_once_and_the_same(root: Path, tmp_path: Path) -> None:
    data_set = DataSet(5_000, 5)
    folder = data_set.ensure(root)
    made = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert data_set.ensure(root) == folder
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == made
    again = data_set.ensure(tmp_path)
    assert pq.read_table(again).equals(pq.read_table(folder))


def test_other_parameters_have_another_folder() -> None:
    sets = [DataSet(10, 2), DataSet(11, 2), DataSet(10, 3), DataSet(10, 2, shuffled=True)]
    assert len({data_set.folder_name for data_set in sets}) == len(sets)


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="no space left"):
        DataSet(10, 2).ensure(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parameters", [(-1, 1), (1, 0)])
def test_impossible_data_is_refused(parameters: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must not be negative, keys must be positive"):
        DataSet(*parameters)


def test_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "gpu_windows" / "benchmarks"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_root() == Path.home() / ".cache" / "gpu_windows" / "benchmarks"
