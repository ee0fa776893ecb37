"""A driver of Spark's without Spark: what dies between two of its steps, and what it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gpu_windows.checkpointing.commit_log import KEPT, CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.shard_log import ShardLog
from gpu_windows.checkpointing.staged_file import read_staged_file, write_staged_file
from gpu_windows.checkpointing.state_commit import ShardState, StagedFile, StageState, StateCommit
from gpu_windows.spark_glue.micro_batches.engine import Engine

FIRST = StateCommit(
    sequence=0, lineage="a" * 32, facts="", stages=(StageState("", (ShardState(),)),)
)
#: Operations of `CheckpointFiles` that a driver may die before or after.
OPERATIONS = ("create", "write", "read", "delete")


class Rows:
    """The rows of a micro-batch: a number."""

    sparkSession = None  # noqa: N815 - as Spark calls it

    def __init__(self, value: int) -> None:
        self.value = value


class Job:
    """Adds the numbers up: a shard, whose result is the sum."""

    def __init__(self, log: CommitLog) -> None:
        self.log = log
        self.times: list[int] = []
        self.gives = True

    def run(
        self, rows: Rows, last: StateCommit, number: int, digest: str, planned_ms: int
    ) -> StateCommit:
        self.times.append(planned_ms)
        sequence = last.sequence + 1
        store = ShardLog(self.log.files, last.stages[0].shards[0].newest)
        total = int(store.read("sum", 0) or b"0") + rows.value
        store.write("sum", 0, str(total).encode())
        store.write("row", number, b"x")
        if number:
            store.remove("row", number - 1)
        newest = store.finish(self.log.state_file(sequence, 0, 0, uuid4().hex))
        staged = (self.stage(sequence, total),) if self.gives else ()
        return StateCommit(
            sequence=sequence,
            lineage=last.lineage,
            facts=last.facts,
            number=number,
            digest=digest,
            planned_ms=planned_ms,
            stages=(StageState("", (ShardState(newest, tuple(store.directory.sizes)),)),),
            results=staged,
            parent=last.identity,
        )

    def stage(self, sequence: int, total: int) -> StagedFile:
        name = self.log.results_file(sequence, uuid4().hex)
        sizes = write_staged_file(self.log.files, name, [(0, str(total).encode())])
        return StagedFile(name, tuple(sizes.items()))


class Reader:
    """Reads staged results as they are."""

    kinds = {"result": 0}  # noqa: RUF012

    def table(self, staged: Any, name: str) -> None:
        """Return no table: `output` has them."""

    def output(self, staged: Any, name: str, files: int | None) -> list[bytes]:
        del files
        kind = self.kinds[name]
        return [b for s in staged.staged for b in read_staged_file(staged.files, s.name, kind)]


class Writer:
    """Keeps results by number, and all that it was ever given."""

    def __init__(self) -> None:
        self.results: dict[int, list[bytes]] = {}
        self.given: list[tuple[int, list[bytes]]] = []

    def write(self, batch: Any) -> None:
        found = batch.read("result", None)
        self.results[batch.number] = found
        self.given.append((batch.number, found))


class Driver:
    """What Spark does: it notes a micro-batch, runs it, notes that it has run.

    Each micro-batch reads a file, of which the log of its source has an entry.
    """

    def __init__(self, root: Path, writer: Any, keep: int = KEPT) -> None:
        self.root, self.writer = root, writer
        self.log = CommitLog(CheckpointFiles(str(root / "gpu_windows")))
        if self.log.last() is None:
            self.log.add(FIRST)
        if not (root / "metadata").exists():
            (root / "metadata").write_text(json.dumps({"id": str(uuid4())}))
        (root / "offsets").mkdir(exist_ok=True)
        (root / "commits").mkdir(exist_ok=True)
        self.job = Job(self.log)
        engine: Any = Engine
        self.engine = engine(self.job, Reader(), writer, CheckpointFiles(str(root)), keep=keep)

    def plan(self, number: int, at_ms: int) -> None:
        path = self.root / "offsets" / str(number)
        if path.exists():
            return
        log = self.root / "sources" / "0"
        log.mkdir(parents=True, exist_ok=True)
        entry = {"path": f"s3a://bucket/{number}", "timestamp": 1, "batchId": number}
        (log / str(number)).write_text(f"v1\n{json.dumps(entry)}")
        offset = json.dumps({"logOffset": number})
        path.write_text(f"v1\n{json.dumps({'batchTimestampMs': at_ms})}\n{offset}")

    def run_to(self, end: int) -> None:
        done = len(list((self.root / "commits").iterdir()))
        for number in range(done, end):
            self.plan(number, 1_000 * (number + 1))
            self.engine(Rows(number + 1), number)
            (self.root / "commits" / str(number)).write_text("v1")


class DeathError(Exception):
    """Of a driver."""


def dying(
    patched: pytest.MonkeyPatch, writer: Writer, at: int, *, is_before: bool
) -> Callable[[], str | None]:
    """Let a driver die at an operation, by number; return what tells which that was."""
    count, died = [0], list[str]()

    def around(whole: Callable[..., Any], step: Callable[..., str]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            number, count[0] = count[0], count[0] + 1
            if number == at:
                died.append(step(*arguments))
                if not is_before:
                    whole(*arguments)
                raise DeathError
            return whole(*arguments)

        return run

    for name in OPERATIONS:
        whole = getattr(CheckpointFiles, name)
        patched.setattr(
            CheckpointFiles,
            name,
            around(whole, lambda _, file, *__, name=name: f"{name} {file.partition('/')[0]}"),
        )
    patched.setattr(writer, "write", around(writer.write, lambda _: "sink"))
    return lambda: died[0] if died else None
