"""What files a folder has, which partitions, and what is refused as Spark would not read it so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import ScanError
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.listing import scan_folders
from tests.scans.trial import read_rows


def _write(*paths: Path, rows: Any = None) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"v": [1, 2]}) if rows is None else rows, path)


def _read(*paths: Path) -> pa.Table:
    rows = ScannedRows((ScannedPart(scan_folders([*map(str, paths)])),))
    return read_rows(rows, rows.schema.names, 1 << 30)


def test_hidden_files_are_none_of_a_folder(tmp_path: Path) -> None:
    hidden = ("_x", ".x", "x._COPYING_", "_temporary/0/x", ".h/x", "x=1/_x")
    _write(tmp_path / "x.parquet", *(tmp_path / name for name in hidden))
    assert _read(tmp_path).to_pydict() == {"v": [1, 2]}


def test_files_without_bytes_or_row_groups_have_no_rows(tmp_path: Path) -> None:
    _write(tmp_path / "b.parquet")
    (tmp_path / "a.parquet").touch()
    with pq.ParquetWriter(tmp_path / "c.parquet", pa.schema([("v", pa.int64())])):
        pass  # no row group
    assert len(_read(tmp_path)) == 2


def test_names_are_read_as_they_are(tmp_path: Path) -> None:
    names = ["a b", "c%20d", "e+f", "g#h", "ü é", "q?r", "a;b=c", "x&y", "[z]", "{w}"]
    _write(*(tmp_path / name for name in names))
    assert len(_read(tmp_path)) == 2 * len(names)
    assert len(_read(*(tmp_path / name for name in names))) == 2 * len(names)


@pytest.mark.parametrize(
    ("values", "dtype", "found"),
    [
        (["1", "02", "+3"], pa.int32(), [1, 2, 3]),
        (["1", str(1 << 40)], pa.int64(), [1, 1 << 40]),
        (["-2147483648", "2147483647"], pa.int32(), [-(1 << 31), (1 << 31) - 1]),
        (["1.5", "2", "1.0d"], pa.float64(), [1.5, 2.0, 1.0]),
        (["1.5", str(1 << 40)], pa.string(), ["1.5", str(1 << 40)]),
        (["2024-01-01"], pa.date32(), None),
        (["2024-01-01", "2024-02-30"], pa.string(), ["2024-01-01", "2024-02-30"]),
        (["2024-01-01", "5"], pa.string(), ["2024-01-01", "5"]),
        (["nan", "inf"], pa.string(), ["nan", "inf"]),
        (["a%2Fb", "%zz", "é", "%E9"], pa.string(), ["a/b", "%zz", "é", "é"]),
        (["a", "__HIVE_DEFAULT_PARTITION__"], pa.string(), ["a", None]),
        (["%5F_HIVE_DEFAULT_PARTITION__"], pa.string(), ["__HIVE_DEFAULT_PARTITION__"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int32(), [1, None]),
    ],
)
def test_partitions_have_the_type_that_spark_infers(
    tmp_path: Path, values: list[str], dtype: pa.DataType, found: list[Any] | None
) -> None:
    _write(*(tmp_path / f"x={value}" / "a.parquet" for value in values))
    rows = _read(tmp_path)
    assert rows.schema.field("x").type == dtype
    if found is not None:
        assert set(rows["x"].to_pylist()) == set(found)
        assert len(rows) == 2 * len(values)


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["sub/a"], "folders within"),
        (["a", "x=1/a"], "partitions of the same names"),
        (["x=1/a", "y=1/a"], "partitions of the same names"),
        (["x=1/a", "X=2/a"], "partitions of the same names"),
        (["x=1/a", "x=1/y=1/a"], "partitions of the same names"),
        (["x=1/X=2/a"], "names of their own"),
        (["x=/a"], "a name and a value"),
        (["x=1e5/a"], "read with a session"),
        (["x=2024-01-01 00%3A00%3A00/a"], "read with a session"),
        (["x= 1/a"], "a number in ASCII"),
        (["x=0x1p3/a"], "a number in ASCII"),
        (["x=\u0661/a"], "a number in ASCII"),
        (["_spark_metadata/0", "a"], "read by Spark"),
        ([], "exist"),
    ],
)
def test_folders_that_spark_would_read_otherwise_are_refused(
    tmp_path: Path, names: list[str], rule: str
) -> None:
    folder = tmp_path / "in"
    _write(*(folder / name for name in names))
    with pytest.raises(ScanError, match=rule):
        gw.scan(folder)


def test_partitions_are_the_innermost_folders_that_are_next_to_each_other(tmp_path: Path) -> None:
    _write(tmp_path / "v=7" / "sub" / "y=2" / "a")
    assert _read(tmp_path).to_pydict() == {"v": [1, 2], "y": [2, 2]}


def test_a_partition_stands_for_a_column_of_the_files(tmp_path: Path) -> None:
    _write(tmp_path / "V=7" / "a", rows=pa.table({"v": [1], "w": [2]}))
    assert _read(tmp_path).to_pydict() == {"V": [7], "w": [2]}


def test_links_are_followed_but_for_circles(tmp_path: Path) -> None:
    _write(tmp_path / "other" / "a", tmp_path / "in" / "x=1" / "a")
    (tmp_path / "in" / "x=2").symlink_to(tmp_path / "other")
    assert sorted(_read(tmp_path / "in")["x"].to_pylist()) == [1, 1, 2, 2]
    (tmp_path / "in" / "x=3").symlink_to(tmp_path / "in")
    with pytest.raises(ScanError, match="link"):
        _read(tmp_path / "in")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all")
def test_a_folder_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path / "x=1" / "a", tmp_path / "x=2" / "a")
    (tmp_path / "x=2").chmod(0)
    try:
        with pytest.raises(ScanError, match="may be read"):
            _read(tmp_path)
    finally:
        (tmp_path / "x=2").chmod(0o700)


@pytest.mark.parametrize("path", ["", [], [""], 7, [7], None])
def test_paths_are_texts(path: Any) -> None:
    with pytest.raises(gw.errors.QueryError):
        gw.scan(path)


@pytest.mark.parametrize(
    ("log", "how"),
    [
        ("_delta_log/00000000000000000000.json", "format('delta')"),
        ("metadata/v1.metadata.json", "format('iceberg')"),
        (".hoodie/hoodie.properties", "format('hudi')"),
    ],
)
def test_the_folder_of_a_table_is_refused(tmp_path: Path, log: str, how: str) -> None:
    _write(tmp_path / "x.parquet")
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).touch()
    with pytest.raises(ScanError, match="files that are no longer its own") as e:
        gw.scan(tmp_path)
    assert how in str(e.value)
    assert gw.scan(tmp_path / "x.parquet").schema.names == ["v"]


@pytest.mark.parametrize(
    ("name", "reader"),
    [("a.csv", "open_csv"), ("a.CSV.gz", "open_csv"), ("a.jsonl", "open_json"), ("a.orc", "orc")],
)
def test_other_formats_have_other_readers(tmp_path: Path, name: str, reader: str) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(ScanError, match=rf"gw\.stream\(.*{reader}\(path\).*\) takes this one"):
        gw.scan(tmp_path / name)


def test_a_store_that_the_driver_cannot_list_is_left_to_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from gpu_windows.spark_glue.scans import batch_scan

    def refuse(*_: Any) -> str:
        raise ScanError("no access", value="s3://bucket/x")

    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _, default=None: default))
    monkeypatch.setattr(batch_scan, "find_format", refuse)
    batch_scan.check_folder("s3://bucket/x", session)
    monkeypatch.setattr(batch_scan, "find_format", lambda *_: "delta")
    monkeypatch.setattr(batch_scan, "check_no_table", refuse)
    with pytest.raises(ScanError):
        batch_scan.check_folder("s3://bucket/x", session)
