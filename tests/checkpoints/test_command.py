"""The command ``gpu-windows state``: its reports, and what it says of what it cannot read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpoints.report import show_time
from gpu_windows.cli import app
from gpu_windows.operators.state import manifest
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.rules import LONG_MAX
from tests.checkpoints.checkpoint_writer import CheckpointWriter, plan_stream, to_rows
from tests.spark_glue.stream_runs import ASSIGNERS, batches, windowed

#: A table of which this version knows nothing.
NAME = "of the future"


def append(log: StateLog) -> None:
    """Write rows of a table of which this version knows nothing."""
    buffer = RowBuffer(log, NAME, BufferSpec("time", no_prefix))
    buffer.append(pa.table({"time": [1, 2, 3]}))


def state(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["state", *arguments], env={"COLUMNS": "160"})


def check_refused(kind: type[errors.StateError], text: str, path: str, *stage: str) -> None:
    """Check that the command refuses in one line, and `read_state` with the same error."""
    named = dict(zip(("stage",), stage, strict=False))
    result = state(path, *(f"--{name}={value}" for name, value in named.items()))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("bad input: ")
    assert result.stderr.count("\n") == 1
    with pytest.raises(kind, match=text) as caught:
        gw.read_state(path, **named)
    assert type(caught.value) is kind
    assert str(caught.value) in result.stderr


def make_checkpoint(folder: Path) -> CheckpointWriter:
    """Return the checkpoint of a query in 2 shards, without a micro-batch."""
    outputs = windowed(batches(1, 1)[0], ASSIGNERS["tumbling"]).options(shards=2)
    made = plan_stream(outputs.with_outputs().aggregate(n=gw.count()))
    return CheckpointWriter(folder, made, minutes=made)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checkpoint of a query after a micro-batch."""
    writer = make_checkpoint(tmp_path_factory.mktemp("state"))
    rows = to_rows(writer.plans[""], batches(1, 50)[0])
    writer.micro_batch(rows, watermark=1_700_000_000_250_000, due_ms=1_700_000_060_000)
    return writer.path


# ---- reports


def test_tables(checkpoint: str) -> None:
    result = state(checkpoint, "--details")
    assert (result.exit_code, result.stderr) == (0, "")
    found = gw.read_state(checkpoint)
    (slices,) = (each for each in found.tables if each.table == "slices")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == [checkpoint]
    assert ["window", "tumbling", "20", "s,", "event", "time"] in lines
    assert ["micro-batch", "0"] in lines
    assert ["watermark", "2023-11-14T22:13:20.250Z"] in lines
    assert ["next", "call", "2023-11-14T22:14:20Z,", "if", "no", "rows", "come", "before"] in lines
    assert ["earlier", "stages", "minutes"] in lines
    (line,) = (line for line in lines if line[:2] == ["slices", "2"])  # the other tables have more
    assert line[2:4] == [str(slices.runs), "–"]
    assert show_time(slices.start) in line
    assert {"State", "Shards"} <= {line[0] for line in lines if line}
    of_shards = [line for line in lines if line[1:2] == ["slices"] and line[0].isdigit()]
    assert [line[0] for line in of_shards] == [str(each.shard) for each in found.shards]
    assert "Shards" not in state(checkpoint).stdout.split()


def test_json(checkpoint: str) -> None:
    found = gw.read_state(checkpoint)
    result = state(checkpoint, "--json", "--details")
    fields = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (fields["checkpoint"], fields["batch"]) == (checkpoint, 0)
    assert fields["watermark"] == "2023-11-14T22:13:20.250Z"
    assert fields["next_call"] == "2023-11-14T22:14:20Z"
    assert (fields["stages"], fields["query"]) == (["minutes"], found.query)
    assert [each["size"] for each in fields["tables"]] == [each.size for each in found.tables]
    assert [each["start"] for each in fields["tables"] if each["table"] == "slices"] == [
        show_time(each.start) for each in found.tables if each.table == "slices"
    ]
    assert [each["shard"] for each in fields["shards"]] == [0, 1]
    assert "shards" not in json.loads(state(checkpoint, "--json").stdout)


def test_a_stage(checkpoint: str) -> None:
    fields = json.loads(state(checkpoint, "--stage", "minutes", "--json").stdout)
    assert (fields["tables"], fields["watermark"], fields["batch"]) == ([], None, 0)
    assert fields["query"]["window"] == "tumbling 20 s, event time"


def test_a_process_without_spark(checkpoint: str) -> None:
    code = "import sys; sys.modules['pyspark'] = None; from gpu_windows.cli import app; app()"
    command = [sys.executable, "-c", code, "state", checkpoint, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
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


def test_a_query_without_a_micro_batch(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path).path
    result = state(path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "No micro-batch is committed yet." in result.stdout
    assert "tumbling 20 s, event time" in result.stdout
    assert "State" not in result.stdout
    fields = json.loads(state(path, "--json").stdout)
    assert (fields["batch"], fields["watermark"], fields["next_call"]) == (None, None, None)


# ---- what cannot be read


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    kind, missing, file = errors.CheckpointError, tmp_path / "missing", tmp_path / "file"
    file.touch()
    for path in (missing, file):
        check_refused(kind, f"must be a folder: there is none, got {path}$", str(path))
    folder = tmp_path / "folder"
    (folder / "gpu_windows" / "commits").mkdir(parents=True)
    check_refused(kind, f"must be the checkpoint of .* and is not, got {folder}$", str(folder))
    check_refused(kind, "a checkpoint must be on a disk .* got hdfs://a/b$", "hdfs://a/b")


def test_checkpoints_of_others(tmp_path: Path) -> None:
    (tmp_path / "metadata").touch()
    (tmp_path / "offsets").mkdir()
    text = f"must be of a gpu_windows query: it is of another one, got {tmp_path}$"
    check_refused(errors.CheckpointError, text, str(tmp_path))


def test_a_stage_that_is_not_there(checkpoint: str) -> None:
    text = "the earlier stages of the query are minutes, got days$"
    check_refused(errors.CheckpointError, text, checkpoint, "days")


def test_a_table_of_the_future(tmp_path: Path) -> None:
    writer = make_checkpoint(tmp_path)
    writer.write_state(1, append)
    (table,) = gw.read_state(writer.path).tables
    assert (table.table, table.counts, table.keys) == (NAME, {"rows": 3}, None)
    assert NAME in state(writer.path).stdout


def test_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = make_checkpoint(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "VERSION", manifest.VERSION + 1)
        writer.write_state(1, append)
    newest = writer.last.stages[-1].shards[1].newest
    text = f"version {manifest.VERSION} can be read: {newest} .* got {manifest.VERSION + 1}$"
    check_refused(errors.StateVersionError, text, writer.path)


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    writer = make_checkpoint(tmp_path)
    for _ in range(2):
        writer.write_state(1, append)
    kind, shard = errors.StateCorruptedError, writer.last.stages[-1].shards[1]
    assert shard.newest is not None
    (older,) = {*shard.files} - {shard.newest}
    for name in (older, shard.newest):
        file = Path(writer.log.files.root, name)
        content = file.read_bytes()
        file.unlink()
        check_refused(kind, f"a state file .* must be there, got {name}$", writer.path)
        file.write_bytes(content)
    for broken in (content[:-1], content[:-30] + bytes([content[-30] ^ 1]) + content[-29:], b""):
        file.write_bytes(broken)
        check_refused(kind, f"must be as it was written.*, got {name}$", writer.path)
    file.write_bytes(content)
    assert gw.read_state(writer.path).tables[0].runs == 2


def test_a_damaged_commit(tmp_path: Path) -> None:
    writer = make_checkpoint(tmp_path)
    (name,) = writer.log.files.names("commits")
    file = Path(writer.log.files.root, name)
    fields = json.loads(file.read_bytes())
    file.write_text("{")
    check_refused(errors.StateCorruptedError, f"a commit .* got {name}$", writer.path)
    file.write_text(json.dumps({**fields, "format": 0}))
    check_refused(errors.StateVersionError, "commits of format .* got 0$", writer.path)
    for facts in ("{", "[]", "{}", '{"described": 1}'):
        file.write_text(json.dumps({**fields, "facts": facts}))
        check_refused(errors.StateCorruptedError, "the manifest .* got commit 0$", writer.path)


def test_a_disk_that_fails(checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: LocalFiles, name: str) -> bytes:
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(LocalFiles, "read", fail)
    text = "files .* must be readable: Permission denied, got commits/0*1$"
    check_refused(errors.CheckpointError, text, checkpoint)
