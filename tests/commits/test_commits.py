"""What stands beside results: which micro-batches are complete, and what followers make of it."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructType

from gpu_windows import errors
from gpu_windows.commits.path_log import NOTHING, PathLog
from gpu_windows.commits.records import Commit, Owner, Part, blocks_from
from gpu_windows.spark_glue.files.commit_source import CommitReader


def record(folder: Path, commit: Commit) -> None:
    made = folder / commit.folder
    made.mkdir(parents=True)
    (made / "_SUCCESS").touch()
    (made / "part-0.txt").write_text(commit.text)


def test_a_log_gives_what_is_new(tmp_path: Path) -> None:
    log = PathLog(tmp_path.as_uri())
    with pytest.raises(errors.OutputError, match="must hold what write_stream wrote"):
        log.last()
    (tmp_path / "owners" / "00000000").mkdir(parents=True)
    assert (log.last(), list(log.between(NOTHING))) == (NOTHING, [])
    positions = [(0, 0), (0, 7), (0, 999), (0, 1000), (0, 123_456), (1, 0), (1, 3_001)]
    commits = [Commit(g, n, 5, {"result": Part(f"{g}-{n}", 5)}) for g, n in positions]
    for commit in commits:
        record(tmp_path, commit)
    (tmp_path / Commit(1, 3_002, 0, {}).folder).mkdir()  # its writer has not come so far
    (tmp_path / Commit(2, 0, 0, {}).folder).mkdir(parents=True)
    assert list(log.between(NOTHING)) == commits
    assert log.last() == (1, 3_001)
    for index, position in enumerate(positions):
        assert list(log.between(position)) == commits[index + 1 :]
        assert list(log.between(NOTHING, position)) == commits[: index + 1]
    assert list(log.between((0, 500), (0, 1000))) == commits[2:4]


def test_of_two_texts_of_a_micro_batch_one_counts(tmp_path: Path) -> None:
    """Two drivers in the same one, of which one was taken for dead."""
    for attempt in "ba":
        commit = Commit(0, 0, 5, {"result": Part(f"result/{attempt}", 5)})
        folder = tmp_path / commit.folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"part-{attempt}.txt").write_text(commit.text)
    (commit,) = PathLog(tmp_path.as_uri()).between(NOTHING)
    assert commit.outputs["result"].folder == "result/a"


def follower(path: Path, **options: str) -> CommitReader:
    schema = StructType().add("k", LongType())
    of_tasks = {"tasks": "2", "task_bytes": str(128 << 20)}
    return CommitReader(schema, {"uri": path.as_uri(), "output": "result", **of_tasks, **options})


@pytest.mark.parametrize(
    ("tasks", "task_bytes", "expected"), [(2, 128 << 20, 3), (2, 1 << 30, 2), (2, 1, 90)]
)
def test_a_task_reads_several_small_files(
    tmp_path: Path, tasks: int, task_bytes: int, expected: int
) -> None:
    """As one of Spark's own readers does; each row is read once, by micro-batch within a task."""
    (tmp_path / "owners" / "00000000").mkdir(parents=True)
    for number in range(30):
        part = Part(f"result/{number}", 6)
        for file in range(3):
            (tmp_path / part.folder).mkdir(parents=True, exist_ok=True)
            rows = pa.table({"k": pa.array([number * 10 + file] * 2)})
            pq.write_table(rows, tmp_path / part.folder / f"part-{file}.parquet")
        record(tmp_path, Commit(0, number, 5, {"result": part}))
    reader = follower(tmp_path, tasks=str(tasks), task_bytes=str(task_bytes))
    found = reader.partitions(reader.initialOffset(), reader.latestOffset())
    assert len(found) == expected
    read = [pa.Table.from_batches(reader.read(each))["k"].to_pylist() for each in found]
    assert all([k // 10 for k in of] == sorted(k // 10 for k in of) for of in read)
    every = [number * 10 + file for number in range(30) for file in range(3)]
    assert sorted(k for of in read for k in of) == sorted(every * 2)


@pytest.mark.parametrize("options", [{}, {"max_micro_batches": "2"}])
def test_a_follower_never_goes_back(tmp_path: Path, options: dict[str, str]) -> None:
    """An offset that went back would have rows twice, or lose those of another path."""
    out = tmp_path / "out"
    (out / "owners" / "00000000").mkdir(parents=True)
    for number in range(3):
        record(out, Commit(0, number, 5, {}))
    reader = follower(out, **options)
    assert reader.latestOffset(reader.initialOffset())["micro_batch"] == (1 if options else 2)
    at = reader.latestOffset({"generation": 0, "micro_batch": 1})
    assert at == reader.latestOffset(at) == {"generation": 0, "micro_batch": 2}
    with pytest.raises(errors.OutputError, match="less than was read"):
        reader.latestOffset({"generation": 0, "micro_batch": 50})
    out.rename(tmp_path / "away")
    with pytest.raises(errors.OutputError, match="must hold what write_stream wrote"):
        reader.latestOffset(at)


def test_a_follower_of_an_older_spark_reads_all(tmp_path: Path) -> None:
    (tmp_path / "owners" / "00000000").mkdir(parents=True)
    record(tmp_path, Commit(0, 7, 5, {}))
    reader = follower(tmp_path, max_micro_batches="1")
    record(tmp_path, Commit(0, 9, 5, {}))
    assert reader.latestOffset() == {"generation": 0, "micro_batch": 9}


@pytest.mark.parametrize("text", ["{", "3", '{"format": 1}', '{"format": 1, "outputs": 3}'])
def test_texts_that_are_none_are_told(text: str) -> None:
    for kind in (Commit, Owner):
        with pytest.raises(errors.OutputError, match="must be those that write_stream wrote"):
            kind.from_text(text)


def test_texts_are_read_as_they_were_written() -> None:
    commit = Commit(3, 17, 5, {"late": Part("late/x", 2)})
    assert Commit.from_text(commit.text) == commit
    owner = Owner(0, "abc", {"result": "{}"})
    assert Owner.from_text(owner.text) == owner
    assert owner.next_folder == Owner(1, "def", {}).folder


@pytest.mark.parametrize("number", [0, 999, 1_000, 17_650, 999_999, 1_999_000, 99_999_999_999])
def test_a_pattern_of_blocks_names_later_ones_only(number: int) -> None:
    pattern = blocks_from(2, number).rpartition("/")[2].strip("{}").replace("?", ".")
    names = re.compile("|".join(pattern.split(",")))
    own = number // 1_000
    for block in (0, own - 1, own, own + 1, own + 9, own + 10, own + 12_345, 99_999_999):
        if 0 <= block <= 99_999_999:
            assert bool(names.fullmatch(f"{block:08}")) is (block >= own), block


def test_another_file_system_is_told() -> None:
    with pytest.raises(errors.OutputError, match=r"file system of Arrow.*got ftp://x/y"):
        PathLog("ftp://x/y").last()
