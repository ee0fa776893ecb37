"""What a path holds is read whole, or it is said what is gone: in batch and as a stream."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructType

import gpu_windows as gw
from gpu_windows.commits.records import Commit, Owner, Part, part_folder
from gpu_windows.errors import OutputError, QueryError
from tests.lanes import quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = StructType().add("v", LongType())
#: Damages a folder of two files of two rows each, the second micro-batch of three.
Damage = Callable[[Path], object]


def put(path: Path, folder: str, text: str) -> None:
    (path / folder).mkdir(parents=True)
    (path / folder / "part-0.txt").write_text(text)


def write(path: Path, *, generations: int = 1) -> list[Path]:
    """Three micro-batches a generation, as `write_stream` writes them; return their folders."""
    folders = []
    for generation in range(generations):
        owner = Owner(generation, "q", {"result": SCHEMA.json(), "late": SCHEMA.json()})
        put(path, owner.folder, owner.text)
        for number in range(3):
            folder = part_folder("result", generation, number, "0a1b2c3d")
            (path / folder).mkdir(parents=True)
            for file in range(2):
                values = [10 * number + 2 * file, 10 * number + 2 * file + 1]
                pq.write_table(pa.table({"v": values}), path / folder / f"part-{file}.parquet")
            commit = Commit(generation, number, 4, {"result": Part(folder, 4)})
            put(path, commit.folder, commit.text)
            folders.append(path / folder)
    return folders


def first_of(folder: Path) -> Path:
    return folder / "part-0.parquet"


def remove_files(folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()


def truncate(folder: Path) -> None:
    file = first_of(folder)
    file.write_bytes(file.read_bytes()[:-20])


DAMAGES: dict[str, Damage] = {
    "a file is gone": lambda folder: first_of(folder).unlink(),
    "a folder is gone": shutil.rmtree,
    "all files are gone": remove_files,
    "a file is empty": lambda folder: first_of(folder).write_bytes(b""),
    "a file is truncated": truncate,
    "a file has fewer rows": lambda folder: pq.write_table(pa.table({"v": [1]}), first_of(folder)),
}


def batch(spark: SparkSession, path: Path, **options: Any) -> list[int]:
    return sorted(row.v for row in gw.read_output(spark, path, **options).collect())


def stream(spark: SparkSession, path: Path, **options: Any) -> list[int]:
    rows = gw.read_output_stream(spark, path, **options)
    target, state = f"{path}-followed", f"{path}-state"
    writer = rows.writeStream.option("checkpointLocation", state).trigger(availableNow=True)
    writer.format("parquet").start(target).awaitTermination()
    return sorted(row.v for row in spark.read.schema(SCHEMA).parquet(target).collect())


READERS = pytest.mark.parametrize("read", quick([batch, stream], batch))


@pytest.mark.parametrize(
    ("read", "damage"),
    [
        *(pytest.param(batch, damage, id=name) for name, damage in DAMAGES.items()),
        *(
            pytest.param(stream, damage, id=f"{name}, as a stream", marks=pytest.mark.thorough)
            for name, damage in DAMAGES.items()
        ),
    ],
)
def test_what_is_gone_is_said_or_skipped(
    spark: SparkSession, tmp_path: Path, read: Callable[..., list[int]], damage: Damage
) -> None:
    path = tmp_path / "out {a} [b]"
    folders = write(path)
    damage(folders[1])
    said = "micro-batch 1 has written 4 rows of the output result.*0000000001-0a1b2c3d"
    with pytest.raises(Exception, match=said) as error:
        read(spark, path)
    assert "OutputError" in f"{error.type.__name__}: {error.value}"
    found = read(spark, path, missing="skip")
    whole = {0, 1, 2, 3, 20, 21, 22, 23}
    assert whole <= set(found)
    assert len(found) < 12


@READERS
def test_all_is_read_where_nothing_is_gone(
    spark: SparkSession, tmp_path: Path, read: Callable[..., list[int]]
) -> None:
    """Files that no micro-batch has committed count for nobody, nor do copies of folders."""
    (folder, *_) = write(tmp_path / "out")
    shutil.copytree(folder, folder.with_name("00000000-000000000000-0a1b2c3d copy"))
    torn = folder.with_name("00000000-000000000003-ffffffff")
    torn.mkdir()
    (torn / "part-0.parquet").write_bytes(b"PAR1")
    (folder / "README.txt").write_text("not of ours")
    (folder / "Thumbs.db").write_bytes(b"")
    assert read(spark, tmp_path / "out") == [*range(4), *range(10, 14), *range(20, 24)]


def test_a_copied_file_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (folder, *_) = write(tmp_path)
    shutil.copy(first_of(folder), folder / "part-0 copy.parquet")
    for missing in ("raise", "skip"):
        with pytest.raises(OutputError, match=r"has written 4 rows .* have 6 now"):
            batch(spark, tmp_path, missing=missing)


def test_an_output_without_any_folder_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path)
    shutil.rmtree(tmp_path / "result")
    with pytest.raises(OutputError, match=r"micro-batch 0 .*: no file"):
        batch(spark, tmp_path)
    assert batch(spark, tmp_path, missing="skip") == []
    assert gw.read_output(spark, tmp_path, "late").count() == 0


@pytest.mark.parametrize("read", [gw.read_output, gw.read_output_stream])
def test_the_text_of_a_query_may_not_be_gone(
    spark: SparkSession, tmp_path: Path, read: Any
) -> None:
    write(tmp_path, generations=2)
    shutil.rmtree(tmp_path / Owner(0, "q", {}).folder)
    with pytest.raises(OutputError, match="no generation 0"):
        read(spark, tmp_path)
    read(spark, tmp_path, missing="skip")
    with pytest.raises(QueryError, match='missing is "raise" or "skip", got \'ignore\''):
        read(spark, tmp_path, missing="ignore")


def test_the_number_of_a_micro_batch_is_read(spark: SparkSession, tmp_path: Path) -> None:
    folders = write(tmp_path)
    first_of(folders[1]).unlink()
    found = gw.read_output(spark, tmp_path, micro_batch="n", missing="skip").collect()
    assert sorted(map(tuple, found))[4:7] == [(12, 1), (13, 1), (20, 2)]
