"""What a commit of a micro-batch says: which state, which results, and of which rows.

A reader of state needs the newest file of each shard alone, which names all live runs
(`gpu_windows.operators.state.manifest`). A commit names the other files so that no sweep deletes
them. Metrics are in it so that `gpu_windows.watch` and listeners read them where the query is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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
        How far each of its inputs is, as JSON has it; empty before the first micro-batch.
    reached : int, optional
        The watermark that its shards have reached, in ticks; None while there is none. It may be
        ahead of the inputs', where event time has gone on by the clock.
    """

    name: str
    shards: tuple[ShardState, ...]
    watermarks: Mapping[str, Any] = field(default_factory=dict)
    reached: int | None = None


@dataclass(frozen=True, kw_only=True)
class StateCommit:
    """A micro-batch that is complete: its state and its results are all there, or none of them.

    Parameters
    ----------
    sequence : int
        Of the commits of a checkpoint, from 0 on. Commit 0 is that of the first start.
    lineage : str
        Tells these commits from those of another checkpoint, or of one that went back.
    facts : str
        What the query is, as JSON: another query may not resume.
    number : int
        Spark's number of the micro-batch, -1 in commit 0.
    digest : str
        SHA-256 of Spark's record of the micro-batch (``offsets/NUMBER``): of the same one only if
        it has the same rows.
    planned_ms : int
        When Spark planned it, in milliseconds since 1970.
    stages : tuple of StageState
        In their order: the query's own is the last one.
    results : tuple of StagedFile
        Of all stages.
    rows : int
        How many rows it took in.
    metrics : tuple of mapping
        What the latest micro-batches did and cost, the oldest first: see
        `gpu_windows.monitoring.progress.BatchMetrics`.
    next_call_ms : int, optional
        When something is due by the clock, in milliseconds since 1970, though no rows come; None:
        nothing is.
    was_delivered : bool
        Whether the sink has had its results under an earlier commit: it is one of a roll-back or a
        copy, which has ended once the results are marked as delivered.
    identity, parent : str
        32 hex digits of this commit, and of the one before; none before commit 0.
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

    @property
    def as_bytes(self) -> bytes:
        """What `from_bytes` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True).encode()

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
            stages = tuple(
                StageState(**{**each, "shards": tuple(map(_shard, each["shards"]))})
                for each in found.pop("stages")
            )
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
