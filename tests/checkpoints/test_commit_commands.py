"""The commands ``gpu-windows checkpoint``: reports, and what they say of what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.cli import app
from gpu_windows.errors import CheckpointError
from tests.checkpoints.path_writer import read_sums
from tests.checkpoints.plain_query import run, sums


def checkpoint(*arguments: object, columns: int = 120) -> Result:
    texts = ["checkpoint", *map(str, arguments)]
    return CliRunner().invoke(app, texts, env={"COLUMNS": str(columns)})


def rows_of(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines() if any(map(str.isdigit, line))]


def test_commits_are_listed(tmp_path: Path) -> None:
    run(tmp_path, 2)
    state = tmp_path / "state"
    commits = gw.read_commits(state)
    assert [(each.sequence, each.batch, each.planned) for each in commits] == [
        (0, None, None), (1, 0, 1_000_000), (2, 1, 2_000_000)
    ]  # fmt: skip
    assert [(each.result_files, each.result_bytes) for each in commits] == [(0, 0), (1, 1), (1, 1)]
    assert [each.state_files for each in commits] == [0, 1, 1]
    assert [each.is_last for each in commits] == [False, False, True]
    assert all(each.is_delivered and each.can_resume for each in commits)
    result = checkpoint("list", state)
    assert (result.exit_code, result.stderr) == (0, "")
    time = "1970-01-01T00:00:02Z"
    assert rows_of(result)[0] == "0 – – 0 0: 0 bytes yes 0: 0 bytes aaaaaaaa yes".split()
    assert rows_of(result)[2] == f"→ 2 1 {time} 0 1: 1 byte yes 1: 0 bytes aaaaaaaa yes".split()
    (state / FOLDER / "delivered" / f"{2:012}").unlink()
    (state / "offsets" / "0").unlink()
    assert [(e.is_delivered, e.can_resume) for e in gw.read_commits(state)] == [
        (True, True), (True, False), (False, False)
    ]  # fmt: skip
    lines = rows_of(checkpoint("list", state))
    assert (lines[1][-1], lines[2][-1], lines[2][-6]) == ("no", "no", "no")


def test_json(tmp_path: Path) -> None:
    run(tmp_path, 1)
    result = checkpoint("list", tmp_path / "state", "--json")
    commits = [asdict(each) for each in gw.read_commits(tmp_path / "state")]
    assert commits[1]["planned"] == 1_000_000
    commits[1]["planned"] = "1970-01-01T00:00:01Z"
    assert json.loads(result.stdout) == commits


def test_commits_that_are_swept_meanwhile_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, 3)
    read = LocalFiles.read

    def sweeping(files: LocalFiles, name: str) -> bytes:
        if name.endswith("0001"):
            raise FileNotFoundError(name)
        return read(files, name)

    monkeypatch.setattr(LocalFiles, "read", sweeping)
    assert [each.sequence for each in gw.read_commits(tmp_path / "state")] == [0, 2, 3]


def test_it_goes_back_without_spark(tmp_path: Path) -> None:
    run(tmp_path, 3)
    code = "import sys; sys.modules['pyspark'] = None; from gpu_windows.cli import app; app()"
    options = ["back", tmp_path / "state", "1", "--output", tmp_path / "out"]
    command = [sys.executable, "-c", code, "checkpoint", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = "Commit 4 has the state of commit 1: a start resumes from it.\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    assert read_sums(tmp_path / "out") == sums(1)
    assert gw.read_commits(tmp_path / "state")[-1].batch == 0


def test_it_copies(tmp_path: Path) -> None:
    run(tmp_path, 3)
    result = checkpoint("copy", tmp_path / "state", 2, tmp_path / "copy")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"A query on {tmp_path / 'copy'} resumes after commit 2.\n"
    assert [each.sequence for each in gw.read_commits(tmp_path / "copy")] == [2]


def test_what_is_refused_is_said_in_a_line(tmp_path: Path) -> None:
    run(tmp_path, 3)
    for arguments, text in (
        (("list", tmp_path / "none"), "the checkpoint must be a folder"),
        (("back", tmp_path / "state", 1), "results after the commit were given to the sink"),
        (("back", tmp_path / "state", 9, "--again"), "one that is kept: 0, 1, 2, 3, got 9"),
        (("copy", tmp_path / "state", 1, tmp_path / "out"), "must be a new or empty folder"),
    ):
        result = checkpoint(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("bad input: ")
        assert text in result.stderr
        assert result.stderr.count("\n") == 1
    assert checkpoint("back", tmp_path / "state", 1, "--again").exit_code == 0


def test_a_commit_that_cannot_be_read(tmp_path: Path) -> None:
    run(tmp_path, 1)
    log = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER)))
    log.files.delete(f"commits/{1:012}")
    log.files.create(f"commits/{1:012}", b"{}")
    result = checkpoint("list", tmp_path / "state")
    assert result.exit_code == 2
    assert "a commit of a checkpoint must be what gpu_windows wrote" in result.stderr
    log.files.delete(f"commits/{1:012}")
    log.files.delete(f"commits/{0:012}")
    (tmp_path / "state" / "metadata").touch()
    with pytest.raises(CheckpointError, match="of another one"):
        gw.read_commits(tmp_path / "state")
