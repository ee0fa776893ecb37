"""Commits of micro-batches: which state and which results belong to which rows.

A reader of state needs the newest file of each shard alone, which names all live runs
(`gpu_windows.operators.state.manifest`). A commit names the other files so that no sweep deletes
them. Metrics are in it so that `gpu_windows.watch` and listeners read them where the query is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self
from uuid import uuid4

from gpu_windows.errors import StateCorruptedError, StateVersionError

#: Version of the format.
FORMAT = 1


@dataclass(frozen=True)
class ShardState:
    """The state of a shard after a micro-batch.

    Parameters
    ----------
    newest : str, optional
        Name of its newest state file; None: it has no state.
    files : tuple of str
        Names of all its live state files, the newest one among them.
    """

    newest: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class StagedFile:
    """A file of staged results.

    Parameters
    ----------
    name : str
    sizes : tuple of (int, int)
        Kinds of rows, and the bytes of the blobs of each.
    """

    name: str
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StageState:
    """A stage of a query after a micro-batch; most queries have one.

    Parameters
    ----------
    name : str
        Of an earlier stage; empty for the last one, which is the query's own.
    shards : tuple of ShardState
    watermarks : mapping
        Those of its inputs, as JSON; empty before the first micro-batch.
    watermark : int, optional
        The watermark of its shards, in ticks; None before the first one. It may be ahead of the
        inputs', where the clock advances event time. Its key in JSON is ``reached``.
    """

    name: str
    shards: tuple[ShardState, ...]
    watermarks: Mapping[str, Any] = field(default_factory=dict)
    watermark: int | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        """The stage as JSON; `from_json` reads it."""
        found = asdict(self)
        return {**found, "reached": found.pop("watermark")}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read what `as_json` returned."""
        shards = tuple(map(_shard, found["shards"]))
        return cls(found["name"], shards, found["watermarks"], found["reached"])


@dataclass(frozen=True, kw_only=True)
class StateCommit:
    """A micro-batch that is complete: its state and its results are all there, or none of them.

    Parameters
    ----------
    sequence : int
        Of the commits of a checkpoint, from 0 on. Commit 0 is that of the first start.
    lineage : str
        Identifies these commits; a copy of the checkpoint and a rollback have another one.
    facts : str
        The manifest of the query, as JSON: another query may not resume.
    number : int
        Spark's number of the micro-batch, -1 in commit 0.
    digest : str
        SHA-256 of Spark's record of the micro-batch (``offsets/NUMBER``), which is equal only for
        the same rows.
    planned_ms : int
        When Spark planned it, in milliseconds since 1970.
    stages : tuple of StageState
        In their order: the query's own is the last one.
    results : tuple of StagedFile
        Of all stages.
    rows : int
        Number of input rows.
    metrics : tuple of mapping
        Of the latest micro-batches, the oldest first: see
        `gpu_windows.monitoring.progress.BatchMetrics`.
    next_call_ms : int, optional
        When the clock makes something due without rows, in milliseconds since 1970; None: nothing
        is due.
    was_delivered : bool
        Whether the sink has its results from an earlier commit. So it is the commit of a rollback
        or a copy, which is complete once the results are marked as delivered.
    identity, parent : str
        32 hex digits of this commit, and of the previous one; empty in commit 0.
    """

    sequence: int
    lineage: str
    facts: str
    number: int = -1
    digest: str = ""
    planned_ms: int = 0
    stages: tuple[StageState, ...] = ()
    results: tuple[StagedFile, ...] = ()
    rows: int = 0
    metrics: tuple[Mapping[str, Any], ...] = ()
    next_call_ms: int | None = None
    was_delivered: bool = False
    identity: str = field(default_factory=lambda: uuid4().hex)
    parent: str = ""

    @property
    def files(self) -> frozenset[str]:
        """Names of all files that the commit needs."""
        shards = (shard for stage in self.stages for shard in stage.shards)
        state = (file for shard in shards for file in shard.files)
        return frozenset((*state, *(each.name for each in self.results)))

    def begin_lineage(self, *, sequence: int, parent: str = "") -> Self:
        """Return a commit of the same state that begins another lineage: results were delivered."""
        identity, lineage = uuid4().hex, uuid4().hex
        return replace(
            self,
            sequence=sequence,
            lineage=lineage,
            was_delivered=True,
            identity=identity,
            parent=parent,
        )

    @property
    def as_bytes(self) -> bytes:
        """The commit as JSON; `from_bytes` reads it."""
        stages = [each.as_json for each in self.stages]
        return json.dumps(
            {"format": FORMAT, **asdict(self), "stages": stages}, sort_keys=True
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> Self:
        """Read a commit; ``name`` names its file in errors.

        Raises
        ------
        StateCorruptedError
            If it is not what was written.
        StateVersionError
            If it has another format.
        """
        rule = "a commit of a checkpoint must be what gpu_windows wrote"
        try:
            found = json.loads(data)
            version = found.pop("format")
            if version != FORMAT:
                other = f"commits of format {FORMAT} can be read: {name} is of another gpu_windows"
                raise StateVersionError(other, value=version)
            stages = tuple(map(StageState.from_json, found.pop("stages")))
            metrics = tuple(found.pop("metrics"))
            results = tuple(
                StagedFile(each["name"], tuple((kind, size) for kind, size in each["sizes"]))
                for each in found.pop("results")
            )
            return cls(**found, stages=stages, results=results, metrics=metrics)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateCorruptedError(rule, value=name) from error


def _shard(found: Mapping[str, Any]) -> ShardState:
    return ShardState(found["newest"], tuple(found["files"]))
