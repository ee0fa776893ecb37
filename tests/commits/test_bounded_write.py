"""Writes of bounded queries: all of one or nothing, whatever dies, and whoever else writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpu_windows import errors
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.commits import parquet_files
from gpu_windows.commits.bounded_write import BoundedWrite
from gpu_windows.commits.marker_files import MARKER
from gpu_windows.commits.parquet_files import ParquetEncoding, gather_row_groups, write_parquet_file
from gpu_windows.commits.records import Commit, Owner, Part
from gpu_windows.commits.spark_schema import spark_schema
from gpu_windows.commits.write_target import Mode, WriteTarget, WrittenFile

ROWS = pa.table({"x": pa.array([1, 2, None], pa.int64())})
TEXT_OF_ROWS = spark_schema(ROWS.schema)


def begin(path: Path, mode: Mode = "error") -> BoundedWrite:
    return BoundedWrite.begin(LocalFiles(str(path)), TEXT_OF_ROWS, mode)


def write_file(write: BoundedWrite, rows: pa.Table = ROWS) -> list[WrittenFile]:
    found = write_parquet_file(write.part, 0, [rows], rows.schema, ParquetEncoding())
    return [] if found is None else [found]


def commit_of(path: Path, generation: int) -> Commit:
    return Commit.from_text((path / Commit(generation, 0, 0, {}).folder / MARKER).read_text())


def generations(path: Path, folder: str) -> list[int]:
    return sorted(int(each.name[:8]) for each in (path / folder).iterdir())


def test_a_write_names_its_files_last(tmp_path: Path) -> None:
    write = begin(tmp_path / "out")
    written = write_file(write)
    assert not (tmp_path / "out/commits").exists()
    (file,) = write.commit(written)
    part = commit_of(tmp_path / "out", 0).outputs["result"]
    assert part == Part(write.folder, 3, {written[0].name: 3})
    assert pq.read_table(file).equals(ROWS)
    assert Path(file).stat().st_size == written[0].bytes


def test_files_of_attempts_that_failed_do_not_count(tmp_path: Path) -> None:
    write = begin(tmp_path)
    failed, ended = write_file(write), write_file(write)
    assert failed[0].name != ended[0].name
    (file,) = write.commit(ended)
    assert [each.name for each in (tmp_path / write.folder).iterdir()] == [Path(file).name]
    write_file(write)  # of an attempt that has outlived the write
    part = commit_of(tmp_path, 0).outputs["result"]
    rows = {each.name: 3 for each in (tmp_path / write.folder).iterdir()}
    assert len(rows) == 2
    assert part.choose_files(rows) == {Path(file).name: 3}
    assert Part("x", 6).choose_files(rows) == rows


def test_the_write_before_stays_until_the_next_one(tmp_path: Path) -> None:
    for number in range(4):
        write = begin(tmp_path, "overwrite")
        write.commit(write_file(write))
        kept = [n for n in (number - 1, number) if n >= 0]
        for folder in ("owners", "commits", "result"):
            assert generations(tmp_path, folder) == kept


def test_what_a_dead_driver_leaves_is_swept_by_the_next_write(tmp_path: Path) -> None:
    dead = begin(tmp_path)
    write_file(dead)
    write = begin(tmp_path)  # nothing is visible, so nothing is in the way
    write.commit(write_file(write))
    assert generations(tmp_path, "result") == [1]
    dead = begin(tmp_path, "overwrite")
    write_file(dead)
    last = begin(tmp_path, "overwrite")
    last.commit(write_file(last))
    assert generations(tmp_path, "result") == [1, 3]
    assert generations(tmp_path, "owners") == [1, 3]


def test_of_two_writes_the_one_that_began_last_counts(tmp_path: Path) -> None:
    first = begin(tmp_path)
    second = begin(tmp_path)
    with pytest.raises(errors.OutputError, match="another write to the path has started since"):
        first.commit(write_file(first))
    second.commit(write_file(second))
    assert generations(tmp_path, "commits") == [1]


def test_a_write_that_ends_meanwhile_is_not_replaced_by_mistake(tmp_path: Path) -> None:
    """The first one was committed between the look of the second one and its own commit."""
    first, second = begin(tmp_path), begin(tmp_path)
    text = Commit(0, 0, 0, {"result": Part(first.folder, 0, {})}).text
    LocalFiles(str(tmp_path)).create(f"{Commit(0, 0, 0, {}).folder}/{MARKER}", text.encode())
    with pytest.raises(errors.OutputError, match="the path holds results"):
        second.commit(write_file(second))


def test_a_path_that_holds_results_or_other_things(tmp_path: Path) -> None:
    write = begin(tmp_path / "out")
    write.commit(write_file(write))
    with pytest.raises(errors.OutputError, match='replace them by mode="overwrite"'):
        begin(tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/_SUCCESS").touch()
    begin(tmp_path / "mine")  # hidden files are nobody's results
    (tmp_path / "other").mkdir()
    (tmp_path / "other/data.csv").touch()
    (tmp_path / "file").touch()
    stream = Owner(0, "a" * 32, {"result": TEXT_OF_ROWS})
    LocalFiles(str(tmp_path / "stream")).create(f"{stream.folder}/{MARKER}", stream.text.encode())
    modes: tuple[Mode, ...] = ("error", "overwrite")
    for name, rule in (
        ("other", "files that write_parquet has not written: .*data.csv"),
        ("file", "cannot be used"),
        ("stream", "belongs to a streaming query"),
    ):
        for mode in modes:
            with pytest.raises(errors.OutputError, match=rule.replace(": ", ".*")):
                begin(tmp_path / name, mode)
    assert [each.name for each in (tmp_path / "other").iterdir()] == ["data.csv"]


def test_a_file_that_the_driver_does_not_find(tmp_path: Path) -> None:
    write = begin(tmp_path / "out")
    with pytest.raises(errors.OutputError, match="does not find a file that a task has written"):
        write.commit([WrittenFile("part-00000-a.parquet", 1, 1)])
    moved = BoundedWrite(LocalFiles(str(tmp_path / "else")), Owner(0, "", {}, True), "error")
    with pytest.raises(
        errors.OutputError, match="a task does not find the driver's record at the path"
    ):
        moved.check_reached()
    write.check_reached()


def test_a_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    write = begin(tmp_path)
    write_file(write)
    assert (tmp_path / write.folder).exists()
    with pytest.raises(ZeroDivisionError), write.delete_on_error():
        raise ZeroDivisionError
    assert not (tmp_path / write.folder).exists()


@dataclass(frozen=True)
class LosingFiles(LocalFiles):
    """Creates the text that a write counts, and answers that it has failed."""

    def create(self, name: str, data: bytes) -> bool:
        created = super().create(name, data)
        if name.startswith("commits/"):
            raise TimeoutError("no answer")
        return created


def test_files_that_may_count_are_not_deleted(tmp_path: Path) -> None:
    write = BoundedWrite.begin(LosingFiles(str(tmp_path)), TEXT_OF_ROWS, "error")
    written = write_file(write)
    with (
        pytest.raises(
            errors.OutputError, match=r"unknown whether the write was committed.*no answer"
        ),
        write.delete_on_error(),
    ):
        write.commit(written)
    part = commit_of(tmp_path, 0).outputs["result"]
    assert pq.read_table(tmp_path / part.folder / written[0].name).equals(ROWS)


def test_an_error_of_the_rows_is_not_one_of_the_disk(tmp_path: Path) -> None:
    def tables() -> object:
        yield ROWS
        raise FileNotFoundError("of a function")

    with pytest.raises(FileNotFoundError, match="of a function"):
        write_parquet_file(
            LocalFiles(str(tmp_path)),
            0,
            tables(),  # type: ignore[arg-type]
            ROWS.schema,
            ParquetEncoding(),
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("hdfs://name/out", "a path of results must be on a disk .*HDFS"),
        ("dbfs:/out", "a path of results must be on a disk"),
        ("s3://bucket", "names a folder in a bucket"),
    ],
)
def test_stores_that_are_not_taken(path: str, rule: str) -> None:
    with pytest.raises(errors.OutputError, match=rule):
        WriteTarget(path).open()


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"path": ""}, "a path is a str"),
        ({"path": 3}, "a path is a str"),
        ({"path": "x", "mode": "append"}, "run a streaming query"),
        ({"path": "x", "compression": "zip"}, "compression is one of none, .*zstd"),
        ({"path": "x", "compression": 3}, "compression is one of"),
    ],
)
def test_mistakes(given: dict[str, object], rule: str) -> None:
    with pytest.raises(errors.QueryError, match=rule):
        WriteTarget(**given)  # type: ignore[arg-type]


def test_row_groups_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "_GROUP_ROWS", 4)
    sizes = [3, 0, 1, 1, 9, 2]
    tables = [pa.table({"x": pa.array(range(size), pa.int64())}) for size in sizes]
    found = list(gather_row_groups(tables))
    assert [len(each) for each in found] == [4, 1, 4, 4, 3]
    assert pa.concat_tables(found).equals(pa.concat_tables(tables))
    monkeypatch.setattr(parquet_files, "_GROUP_BYTES", 16)
    assert [len(each) for each in gather_row_groups(tables[:4])] == [3, 2]
    assert list(gather_row_groups([tables[1]])) == []


def test_no_row_makes_no_file(tmp_path: Path) -> None:
    write = begin(tmp_path)
    assert write_file(write, ROWS.slice(0, 0)) == []
    assert write.commit([]) == ()
    assert commit_of(tmp_path, 0).rows == 0


@pytest.mark.parametrize(
    "dtype", [pa.timestamp("ns"), pa.timestamp("s"), pa.duration("us"), pa.time64("us"), pa.null()]
)
def test_types_that_spark_would_read_as_others(dtype: pa.DataType) -> None:
    for column in (dtype, pa.list_(dtype), pa.struct([("a", dtype)])):
        with pytest.raises(errors.ColumnTypeError, match="cast it"):
            spark_schema(pa.schema([("x", column)]))
