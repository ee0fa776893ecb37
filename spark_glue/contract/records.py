"""Records that tasks return to the driver: blobs of results, and a report per shard or task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import pyarrow as pa

from gpu_windows.checkpointing.state_commit import ShardState, StagedFile
from gpu_windows.operators.base import Timers
from gpu_windows.operators.counters import Counters
from gpu_windows.spark_glue.contract.meter import Measures
from gpu_windows.spark_glue.contract.progress import from_json, to_json
from gpu_windows.vocabulary.watermarks import CombinedWatermark

#: The kind of the report of a shard, in addition to those of `output_kinds`.
REPORT = -1
SCHEMA = pa.schema([("shard", pa.int64()), ("kind", pa.int32()), ("blob", pa.binary())])


def to_records(task: int, results: Sequence[tuple[int, bytes]], report: bytes) -> pa.RecordBatch:
    """Return the rows of a shard or task: results, each with its kind, then the report."""
    kinds, blobs = [*(kind for kind, _ in results), REPORT], [blob for _, blob in results]
    return pa.record_batch([[task] * len(kinds), kinds, [*blobs, report]], schema=SCHEMA)


@dataclass(frozen=True)
class ShardReport:
    """Report of a shard after a micro-batch.

    Parameters
    ----------
    state : ShardState
    combined : CombinedWatermark
        Of the inputs, after it: the same in all shards.
    counters : Counters
    measures : Measures
    next_times : (int or None, int or None)
        Watermark and processing time of the next timer, in ticks.
    staged_file : StagedFile, optional
        The file of its results, where they are not among the rows that the task returns.
    """

    state: ShardState
    combined: CombinedWatermark
    counters: Counters
    measures: Measures
    next_times: Timers
    staged_file: StagedFile | None = None

    @property
    def as_bytes(self) -> bytes:
        """The report as JSON; `from_bytes` reads it."""
        return json.dumps({**asdict(self), "combined": to_json(self.combined)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a report."""
        found = json.loads(data)
        event, processing = found["next_times"]
        return cls(
            state=ShardState(found["state"]["newest"], tuple(found["state"]["files"])),
            combined=from_json(found["combined"]),
            counters=_read_counters(found["counters"]),
            measures=Measures(**found["measures"]),
            next_times=(event, processing),
            staged_file=_read_staged_file(found["staged_file"]),
        )


@dataclass(frozen=True)
class SelectReport:
    """Report of a task that selected rows in a micro-batch.

    Parameters
    ----------
    watermarks : mapping of int to int
        Numbers of inputs to the greatest watermarks that its rows reported, in ticks.
    counters : Counters
    seconds : float
        In the operator.
    staged_file : StagedFile, optional
        The file of its results, where they are not among the rows that the task returns.
    """

    watermarks: Mapping[int, int]
    counters: Counters
    seconds: float
    staged_file: StagedFile | None = None

    @property
    def as_bytes(self) -> bytes:
        """The report as JSON; `from_bytes` reads it."""
        watermarks = [*self.watermarks.items()]
        return json.dumps({**asdict(self), "watermarks": watermarks}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a report."""
        found = json.loads(data)
        return cls(
            watermarks=dict(found["watermarks"]),
            counters=_read_counters(found["counters"]),
            seconds=found["seconds"],
            staged_file=_read_staged_file(found["staged_file"]),
        )


def _read_counters(found: dict[str, Any]) -> Counters:
    return Counters(**{**found, "user": tuple(map(tuple, found["user"]))})


def _read_staged_file(found: dict[str, Any] | None) -> StagedFile | None:
    if found is None:
        return None
    return StagedFile(found["name"], tuple(map(tuple, found["sizes"])))
