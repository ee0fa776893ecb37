"""The command ``gpu-windows state``: its reports, and what it says of what it cannot read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.checkpoints.report import show_time
from gpu_windows.cli import app
from gpu_windows.operators.state import store as stores
from gpu_windows.operators.state.store import to_blob
from gpu_windows.rules import LONG_MAX
from tests.spark_glue.streams import ASSIGNERS, batches, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}
TABLE = pa.table({"a": [1, 2, 3]})


def state(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["state", *arguments], env={"COLUMNS": "160"})


def reads(path: str) -> str:
    """Return the line that says what takes its time, where stderr is no terminal."""
    return f"Spark reads all of the state in {path}\n"


def refused(spark: SparkSession, kind: type[errors.StateError], text: str, *arguments: str) -> None:
    """Check that the command refuses in one line, and `read_state` with the same error."""
    result = state(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    path, *options = arguments
    assert result.stderr.startswith(f"{reads(path)}bad input: ")
    assert result.stderr.count("\n") == 2
    named = {name.strip("-"): int(value) for name, value in zip(*[iter(options)] * 2, strict=True)}
    with pytest.raises(kind, match=text) as caught:
        gw.read_state(spark, path, **named)
    assert type(caught.value) is kind
    assert str(caught.value) in result.stderr


@pytest.fixture(scope="module")
def checkpoint(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint of a query of one micro-batch with rows, and one without."""
    folder = tmp_path_factory.mktemp("state")
    files(folder / "in", batches(1, 50))
    outputs = counted(spark, folder)
    path = str(folder / "checkpoint")
    gw.write_stream(outputs, str(folder / "out"), path, trigger=NOW).awaitTermination()
    return path


def counted(spark: SparkSession, folder: Path) -> gw.Outputs:
    source = streamed(spark, folder / "in")
    return windowed(source, ASSIGNERS["tumbling"]).options(shards=2).outputs(n=gw.count())


def run_on(frame: DataFrame, checkpoint: str) -> None:
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def kept(spark: SparkSession, folder: Path, key: str, *steps: dict[tuple[str, int], bytes]) -> str:
    """Return a checkpoint whose state is a map of blobs of ours: a micro-batch for each step."""
    from binascii import b2a_base64

    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Keeps(StatefulProcessor):  # here, so that it travels to workers by value
        def init(self, handle: Any) -> None:
            self.state = handle.getMapState("state", "kind string, bucket long", "__blob string")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            for frame in rows:
                for kind, bucket, blob in zip(frame["kind"], frame["bucket"], frame["blob"]):  # noqa: B905
                    text = b2a_base64(blob, newline=False).decode()
                    self.state.updateValue((kind, int(bucket)), (text,))
            yield from ()

        def close(self) -> None:
            pass

    names = [key, "kind", "bucket", "blob", "at"]
    at = datetime(2024, 5, 1, tzinfo=UTC)
    rows = [[(2, *where, blob, at) for where, blob in step.items()] for step in steps]
    files(folder / "in", [pa.table(list(map(list, zip(*each))), names) for each in rows])  # noqa: B905
    schema = f"{key} long, kind string, bucket long, blob binary, at timestamp"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    watched = source.parquet(str(folder / "in")).withWatermark("at", "1 hour")  # nothing is late
    written = watched.groupBy(key).transformWithStateInPandas(
        statefulProcessor=Keeps(),
        outputStructType="n long",
        outputMode="append",
        timeMode="EventTime",
    )
    run_on(written, str(folder / "checkpoint"))
    return str(folder / "checkpoint")


# ---- reports


@pytest.mark.thorough
def test_tables(spark: SparkSession, checkpoint: str) -> None:
    result = state(checkpoint, "--details")
    assert (result.exit_code, result.stderr) == (0, reads(checkpoint))
    found = gw.read_state(spark, checkpoint)
    (slices,) = (each for each in found.kinds if each.kind == "slices")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["window", "tumbling", "20", "s,", "event", "time"] in lines
    assert ["micro-batch", "1"] in lines
    assert ["watermark", show_time(found.watermark)] in lines
    (line,) = (line for line in lines if line[:2] == ["slices", "2"])  # the other tables have more
    assert line[2:4] == [str(slices.blobs), str(slices.keys)]
    assert show_time(slices.start) in line
    assert {"State", "Shards", "Buckets"} <= {line[0] for line in lines if line}
    assert {"Shards", "Buckets"}.isdisjoint(state(checkpoint).stdout.split())


@pytest.mark.thorough
def test_json(spark: SparkSession, checkpoint: str) -> None:
    found = gw.read_state(spark, checkpoint)
    result = state(checkpoint, "--json", "--details")
    told = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, reads(checkpoint))
    assert (told["checkpoint"], told["batch"]) == (checkpoint, found.batch)
    assert told["watermark"] == show_time(found.watermark)
    assert [each["size"] for each in told["kinds"]] == [each.size for each in found.kinds]
    assert [each["shard"] for each in told["shards"]] == [each.shard for each in found.shards]
    assert len(told["buckets"]) == len(found.buckets)
    assert {"shards", "buckets"}.isdisjoint(json.loads(state(checkpoint, "--json").stdout))


@pytest.mark.slow
def test_a_process_of_its_own(checkpoint: str) -> None:
    command = [sys.executable, "-m", "gpu_windows.cli", "state", checkpoint, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, reads(checkpoint))
    assert json.loads(run.stdout) == json.loads(state(checkpoint, "--json").stdout)


@pytest.mark.parametrize(
    ("ticks", "text"),
    [
        (None, "–"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_700_000_000_250_000, "2023-11-14T22:13:20.250Z"),
        (LONG_MAX, "294247-01-10T04:00:54.775807Z"),
    ],
)
def test_times(ticks: int | None, text: str) -> None:
    assert show_time(ticks) == text


# ---- what is not there yet


@pytest.mark.thorough
def test_a_query_without_a_micro_batch(
    spark: SparkSession, checkpoint: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    begun, stopped = str(tmp_path / "begun"), str(tmp_path / "stopped")
    counted(spark, tmp_path).manifest.check_checkpoint(spark, begun)  # type: ignore[attr-defined]
    shutil.copytree(checkpoint, stopped)
    for log in Path(stopped, "commits").iterdir():
        log.unlink()
    for path in (begun, stopped):
        found = gw.read_state(spark, path)
        assert found == gw.CheckpointState(path, gw.read_state(spark, checkpoint).query)
        assert "No micro-batch is committed yet" in state(path).stdout
        assert json.loads(state(path, "--json").stdout)["batch"] is None
        refused(spark, errors.CheckpointError, "committed yet, got 0", path, "--batch", "0")


# ---- what cannot be read


def test_what_is_no_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    kind, missing = errors.CheckpointError, tmp_path / "missing"
    refused(spark, kind, f"must be a folder: there is none, got {missing}", str(missing))
    refused(spark, kind, f"must be the checkpoint of .* it is none, got {tmp_path}", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_checkpoints_of_others(spark: SparkSession, tmp_path: Path) -> None:
    kind, text = errors.CheckpointError, "must be of a gpu_windows query: it is of another one"
    refused(spark, kind, text, kept(spark, tmp_path, "key", {("slices", 0): to_blob(TABLE)}))
    source = spark.readStream.schema("key long").parquet(str(tmp_path / "in"))
    run_on(source.dropDuplicates(["key"]), str(tmp_path / "other"))
    refused(spark, kind, text, str(tmp_path / "other"))


@pytest.mark.thorough
def test_a_micro_batch_that_is_not_there(spark: SparkSession, checkpoint: str) -> None:
    text = "the micro-batches of the checkpoint are 0 to 1, got 7"
    refused(spark, errors.CheckpointError, text, checkpoint, "--batch", "7")


@pytest.mark.thorough
def test_damaged_blobs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = to_blob(TABLE)
    with monkeypatch.context() as patched:
        patched.setattr(stores, "VERSION", stores.VERSION + 1)
        newer = to_blob(TABLE)
    where = ("of the future", 7)
    path = kept(spark, tmp_path, "__shard", {where: good}, {where: good[:-1]}, {where: newer})
    (held,) = gw.read_state(spark, path, batch=0).kinds
    assert (held.counts, held.keys, held.size) == ({"entries": 3}, None, len(good))
    text = "it is damaged, got shard 2, of the future/7"
    refused(spark, errors.StateCorruptedError, text, path, "--batch", "1")
    text = f"shard 2, of the future/7 was written by another .* got {stores.VERSION + 1}"
    refused(spark, errors.StateVersionError, text, path)


@pytest.mark.thorough
def test_what_spark_cannot_read(spark: SparkSession, checkpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    shutil.copytree(checkpoint, path)
    for file in path.glob("state/0/0/*.*"):  # of one partition
        file.unlink()
    text = r"Spark must be able to read the checkpoint: .*CANNOT_LOAD_STATE_STORE.* got /"
    refused(spark, errors.CheckpointError, text, str(path))


@pytest.mark.slow
def test_several_operators(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 50))
    some, more = (counted(spark, tmp_path).result() for _ in range(2))
    path = str(tmp_path / "checkpoint")
    run_on(some.union(more), path)
    kind = errors.CheckpointError
    refused(spark, kind, r"of several operators one must be chosen, got \[0, 1\]", path)
    refused(spark, kind, r"operators of gpu_windows are \[0, 1\], got 2", path, "--operator", "2")
    first, second = (gw.read_state(spark, path, operator=number) for number in (0, 1))
    assert first.kinds == second.kinds
    assert first.query["window"] == "tumbling 20 s, event time"
