"""Files are read as they are declared, exactly, or refused; splits have each row group once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import ScanError
from gpu_windows.runners.row_changes import AddColumns, FilterRows
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.files import list_files
from gpu_windows.scans.listing import scan_folders
from gpu_windows.scans.parquet import ParquetFile
from gpu_windows.scans.splits import Split, fill_bins, split_files
from tests.scans.trial import read_rows


def _scanned(path: Path) -> ScannedRows:
    return ScannedRows((ScannedPart(scan_folders([str(path)])),))


def _read(path: Path, size: int = 1 << 30) -> pa.Table:
    rows = _scanned(path)
    return read_rows(rows, rows.schema.names, size)


def _two(path: Path, first: pa.Array, second: pa.Array, name: str = "v") -> None:
    pq.write_table(pa.table({"v": first}), path / "a.parquet")
    pq.write_table(pa.table({name: second}), path / "b.parquet")


@pytest.mark.parametrize("size", [1, 97, 1000, 1 << 30])
def test_splits_have_each_row_once(tmp_path: Path, size: int) -> None:
    pq.write_table(pa.table({"v": range(1000)}), tmp_path / "a", row_group_size=37)
    assert sorted(_read(tmp_path, size)["v"].to_pylist()) == [*range(1000)]


def test_bins_have_each_split_once(tmp_path: Path) -> None:
    for number in range(20):
        pq.write_table(pa.table({"v": range(number + 1)}), tmp_path / str(number))
    scan = scan_folders([str(tmp_path)])
    splits = [(part, split) for part in (0, 1) for split in split_files(scan.files, 100)]
    bins = fill_bins(splits, 1 << 24)
    assert sorted(map(repr, splits)) == sorted(repr(each) for of in bins for each in of)
    assert len(bins) > 2
    assert fill_bins([], 7) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1], pa.int64()), pa.array([-2, None], pa.int8())),
        (pa.array([1], pa.int64()), pa.array([(1 << 32) - 1], pa.uint32())),
        (pa.array([1], pa.int16()), pa.array([7], pa.int64())),
        (pa.array([1.5]), pa.array([0.1, None], pa.float32())),
        (pa.array([Decimal(1)], pa.decimal128(18, 3)), pa.array([Decimal(2)], pa.decimal128(9, 2))),
        (pa.array(["a"]), pa.array(["b", None]).dictionary_encode()),
        (pa.array(["a"]), pa.array(["b"], pa.large_string())),
        (pa.array([[1]], pa.list_(pa.int64())), pa.array([[2, None]], pa.list_(pa.int32()))),
        (pa.array([{"a": 1, "b": "x"}]), pa.array([{"b": "y"}])),
        (pa.array([5], pa.timestamp("us", "UTC")), pa.array([7], pa.timestamp("ms", "UTC"))),
        (pa.array([5]), pa.nulls(2)),
    ],
)
def test_other_types_are_read_exactly(tmp_path: Path, first: pa.Array, second: pa.Array) -> None:
    _two(tmp_path, first, second)
    found = _read(tmp_path)["v"]
    assert found.type == first.type
    wanted = pa.concat_arrays([first, _declared(second, first.type)])
    assert found.to_pylist() == wanted.to_pylist()


def _declared(values: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_struct(dtype):
        return pa.array(values.to_pylist(), dtype)
    return values.cast(dtype)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1], pa.int8()), pa.array([1000])),
        (pa.array([1.5], pa.float32()), pa.array([0.1])),
        (pa.array([1]), pa.array([1.0])),
        (pa.array([1.0]), pa.array([1])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array([1], pa.date32()), pa.array([1], pa.int32())),
        (pa.array([Decimal(1)], pa.decimal128(9, 0)), pa.array([Decimal("1.5")])),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("us"))),
        (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC"))),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("ns", "UTC"))),
        (pa.array([{"a": 1.5}], pa.struct([("a", pa.float32())])), pa.array([{"a": 0.1}])),
        (pa.array([{"a": 1}]), pa.array([{"A": 1}])),
        (
            pa.array([[1]], pa.list_(pa.timestamp("us", "UTC"))),
            pa.array([[1]], pa.list_(pa.timestamp("us"))),
        ),
    ],
)
def test_what_could_not_be_read_exactly_is_refused(
    tmp_path: Path, first: pa.Array, second: pa.Array
) -> None:
    _two(tmp_path, first, second)
    with pytest.raises(ScanError, match=r"declares.*b\.parquet.*column 'v'"):
        _read(tmp_path)


def test_columns_are_found_by_any_case_and_null_if_missing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "B": ["x"]}), tmp_path / "1")
    pq.write_table(pa.table({"b": ["y"], "A": [2]}), tmp_path / "2")
    pq.write_table(pa.table({"other": [0, 0]}), tmp_path / "3")
    assert _read(tmp_path).to_pydict() == {
        "a": [1, 2, None, None],
        "B": ["x", "y", None, None],
    }


@pytest.mark.parametrize("names", [["v", "V"], ["v", "v"]])
def test_columns_that_differ_by_case_alone_are_refused(tmp_path: Path, names: list[str]) -> None:
    pq.write_table(pa.table([[1], [2]], names=names), tmp_path / "b")
    with pytest.raises(ScanError, match="upper and lower case"):
        gw.scan(tmp_path)
    pq.write_table(pa.table({"v": [1]}), tmp_path / "a")
    with pytest.raises(ScanError, match="upper and lower case"):
        _read(tmp_path)


def test_int96_are_instants_within_others_too(tmp_path: Path) -> None:
    dtype = pa.timestamp("us", "UTC")
    rows = pa.table({"at": pa.array([5], dtype), "all": pa.array([[7]], pa.list_(dtype))})
    pq.write_table(rows, tmp_path / "a", use_deprecated_int96_timestamps=True)
    found = _read(tmp_path)
    assert [found.schema.field(n).type for n in ("at", "all")] == [dtype, pa.list_(dtype)]
    assert found.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("needed", ["x", "fresh"])
def test_rows_are_counted_where_no_column_of_the_files_is_needed(
    tmp_path: Path, needed: str
) -> None:
    (tmp_path / "x=1").mkdir()
    pq.write_table(pa.table({"v": range(1000)}), tmp_path / "x=1" / "a", row_group_size=300)
    rows = _scanned(tmp_path).then(AddColumns({"fresh": "1"}))
    assert read_rows(rows, [needed], 1 << 30).to_pydict() == {needed: [1] * 1000}


def test_statistics_leave_row_groups_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": range(100)}), tmp_path / "a", row_group_size=10)
    scan = scan_folders([str(tmp_path)])
    split = Split(scan.files[0], 0, scan.files[0].length)
    part = ScannedPart(scan, (FilterRows("v BETWEEN 35 AND 41"),))
    assert part._pruning is not None
    batches = ParquetFile(split).batches([scan.schema.field("v")], part._pruning, threads=False)
    assert sum(rows for rows, _ in batches) == 20


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([AddColumns({"v": "v - 100"}), FilterRows("v < 0")], 100),
        ([AddColumns({"w": "v + 1"}), FilterRows("w = 1")], 1),
        ([FilterRows("V >= 95")], 5),
        ([FilterRows("z <> 0 AND v / z > 1")], 0),
        ([FilterRows("NOT (z = 0 AND v < 95)")], 5),
        ([FilterRows("f > 1")], 1),
        ([FilterRows("f = 0")], 99),
        ([FilterRows("t = 'a' OR t IS NULL")], 100),
        ([FilterRows("v IN (3, NULL)"), FilterRows("v <> 3")], 0),
    ],
)
def test_conditions_are_of_what_columns_are_by_then(
    tmp_path: Path, changes: list[Any], expected: int
) -> None:
    floats = [float("nan"), *[-0.0] * 99]
    columns = {"v": range(100), "z": [0] * 100, "f": floats, "t": ["a", None] * 50}
    pq.write_table(pa.table(columns), tmp_path / "a", row_group_size=10)
    rows = _scanned(tmp_path)
    for change in changes:
        rows = rows.then(change)
    assert len(read_rows(rows, ["t"], 1 << 30)) == expected


def test_conditions_on_columns_that_a_file_has_not_or_of_another_type(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "a")
    pq.write_table(pa.table({"V": pa.array([1, 2], pa.int16())}), tmp_path / "b")
    pq.write_table(pa.table({"w": [7]}), tmp_path / "c")
    for condition, rows in (("v = 2", 2), ("v IS NULL", 1), ("NOT v = 2", 2)):
        assert len(read_rows(_scanned(tmp_path).then(FilterRows(condition)), ["v"], 9)) == rows


def _replace(path: Path) -> None:
    """Write as many other bytes within the same millisecond or so."""
    content = path.read_bytes()
    pq.write_table(pa.table({"v": [9, 8, 7]}), path)
    assert len(path.read_bytes()) == len(content)


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (_replace, "has changed"),
        (os.utime, "has changed"),
        (Path.unlink, "is there"),
        (_make_folder, "is there|has changed"),
        (lambda path: os.truncate(path, 60), "has changed"),
        (lambda path: path.write_bytes(b""), "has changed"),
    ],
)
def test_a_file_that_is_no_longer_what_was_listed_is_an_error(
    tmp_path: Path, change: Callable[[Path], Any], rule: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": [1, 2, 3]}), path)
    scan = _scanned(tmp_path)
    change(path)
    with pytest.raises(ScanError, match=rule) as raised:
        read_rows(scan, ["v"], 1 << 30)
    assert "a.parquet" in str(raised.value)


def test_damaged_files_are_errors_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": range(100_000)}), path)
    content = bytearray(path.read_bytes())
    for place in range(100, 5_000):
        content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ScanError, match=r"a\.parquet"):
        _read(tmp_path)
    for other in (b"no Parquet at all", bytes(content[:-9])):
        path.write_bytes(other)
        with pytest.raises(ScanError, match=r"a\.parquet"):
            gw.scan(tmp_path)


def test_a_large_row_group_is_read_in_parts(tmp_path: Path) -> None:
    """Texts of 10 kB: as many rows as usual would be more than a gigabyte."""
    texts = pa.array([bytes(10_000)] * 20_000)
    pq.write_table(pa.table({"t": texts}), tmp_path / "a", compression="zstd", use_dictionary=False)
    scan = scan_folders([str(tmp_path)])
    whole = Split(scan.files[0], 0, scan.files[0].length)
    sizes = [batch.nbytes for batch in scan.read(whole, ["t"])]
    assert max(sizes) < 70 << 20
    assert sum(sizes) > len(texts) * 10_000


@pytest.mark.thorough
def test_no_row_group_is_held_whole(tmp_path: Path) -> None:
    """One of 120 MB, of which two of eight columns are read, in a process of its own."""
    rows = 2_000_000
    columns = {f"c{n}": pa.array(range(n, rows + n)) for n in range(8)}
    pq.write_table(
        pa.table(columns), tmp_path / "a", rows, use_dictionary=False, compression="none"
    )
    program = (
        "import sys, pyarrow\n"
        "from gpu_windows.scans.listing import scan_folders\n"
        "from gpu_windows.scans.splits import Split\n"
        "scan = scan_folders(sys.argv[1:])\n"
        "whole = Split(scan.files[0], 0, scan.files[0].length)\n"
        "print(sum(batch.num_rows for batch in scan.read(whole, ['c1', 'c6'])))\n"
        "print(pyarrow.default_memory_pool().max_memory())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found, most = map(int, run.stdout.split())
    assert found == rows
    assert 0 < most < 24 << 20


def test_files_that_are_gone_when_they_are_listed(tmp_path: Path) -> None:
    with pytest.raises(ScanError, match="is there"):
        list_files([str(tmp_path / "none")], lambda path: ())


def test_nulls_of_a_missing_column_are_of_its_type(tmp_path: Path) -> None:
    _two(tmp_path, pa.array(["a"]), pa.array([1]), name="w")
    found = _read(tmp_path)
    assert found["v"].type == pa.string()
    assert pc.sum(found["v"].is_null()).as_py() == 1
