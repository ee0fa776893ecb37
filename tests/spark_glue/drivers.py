"""A driver of Spark's without Spark: what dies between two of its steps, and what it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from gpu_windows.checkpointing.commit_log import MIN_COMMITS, CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpointing.staged_file import read_staged_file, write_staged_file
from gpu_windows.checkpointing.state_commit import ShardState, StagedFile, StageState, StateCommit
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.whole_table import WholeTable
from gpu_windows.spark_glue.streams.engine import Engine

FIRST = StateCommit(
    sequence=0, lineage="a" * 32, facts="", stages=(StageState("", (ShardState(),)),)
)
#: Operations of files that a driver may die before or after.
OPERATIONS: dict[type[CheckpointFiles], tuple[str, ...]] = {
    LocalFiles: ("create", "write", "read", "delete"),
    ObjectFiles: ("create", "write", "read", "delete", "delete_all"),
}
CREATE: dict[type[CheckpointFiles], Callable[..., bool]] = {
    kind: kind.create for kind in OPERATIONS
}


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
        log = StateLog(self.log.files, last.stages[0].shards[0].newest)
        total = log.all_numbers("job").get("sum", 0) + rows.value
        log.set_numbers("job", {"sum": total})
        WholeTable(log, "row", KeyColumns.NONE).save(pa.table({"number": [number]}))
        newest = log.finish(self.log.state_file(sequence, 0, 0, uuid4().hex))
        staged = (self.stage(sequence, total),) if self.gives else ()
        return StateCommit(
            sequence=sequence,
            lineage=last.lineage,
            facts=last.facts,
            number=number,
            digest=digest,
            planned_ms=planned_ms,
            stages=(StageState("", (ShardState(newest, log.live_files),)),),
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
        return [
            b for s in staged.staged_files for b in read_staged_file(staged.files, s.name, kind)
        ]


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

    def __init__(self, root: Path | CheckpointFiles, writer: Any, keep: int = MIN_COMMITS) -> None:
        self.files, self.writer = files_of(root), writer
        self.log = CommitLog(self.files.below("gpu_windows"))
        if self.log.last() is None:
            self.log.add(FIRST)
        if not self.files.exists("metadata"):
            self.note("metadata", json.dumps({"id": str(uuid4())}))
        self.job = Job(self.log)
        engine: Any = Engine
        self.engine = engine(self.job, Reader(), writer, self.files, keep=keep)

    def plan(self, number: int, at_ms: int) -> None:
        if self.files.exists(f"offsets/{number}"):
            return
        entry = {"path": f"s3a://bucket/{number}", "timestamp": 1, "batchId": number}
        self.note(f"sources/0/{number}", f"v1\n{json.dumps(entry)}")
        offset = json.dumps({"logOffset": number})
        head = json.dumps({"batchTimestampMs": at_ms})
        self.note(f"offsets/{number}", f"v1\n{head}\n{offset}")

    def note(self, name: str, text: str) -> None:
        """Write a file of Spark's: it does not die of what `dying` does to ours."""
        CREATE[type(self.files)](self.files, name, text.encode())

    def run_to(self, end: int) -> None:
        done = len(self.files.names("commits"))
        for number in range(done, end):
            self.plan(number, 1_000 * (number + 1))
            self.engine(Rows(number + 1), number)
            self.note(f"commits/{number}", "v1")


def files_of(root: Path | CheckpointFiles) -> CheckpointFiles:
    """Return the files of a checkpoint; of a folder, those on its disk."""
    return LocalFiles(str(root)) if isinstance(root, Path) else root


class DeathError(Exception):
    """Of a driver."""


def dying(
    patched: pytest.MonkeyPatch, files: CheckpointFiles, writer: Writer, at: int, *, is_before: bool
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

    def step(name: str) -> Callable[..., str]:
        def describe(_: Any, given: str | list[str], *__: Any) -> str:
            every = [given] if isinstance(given, str) else given
            folders = sorted({file.partition("/")[0] for file in every})
            return " ".join([name.removesuffix("_all"), *folders])

        return describe

    kind = type(files)
    for name in OPERATIONS[kind]:
        patched.setattr(kind, name, around(getattr(kind, name), step(name)))
    patched.setattr(writer, "write", around(writer.write, lambda _: "give sink"))
    return lambda: died[0] if died else None
