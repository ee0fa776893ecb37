"""Records that shard tasks return to the driver: blobs of results, and a report per shard."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

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
        counters, staged_file = found["counters"], found["staged_file"]
        event, processing = found["next_times"]
        return cls(
            state=ShardState(found["state"]["newest"], tuple(found["state"]["files"])),
            combined=from_json(found["combined"]),
            counters=Counters(**{**counters, "user": tuple(map(tuple, counters["user"]))}),
            measures=Measures(**found["measures"]),
            next_times=(event, processing),
            staged_file=staged_file
            and StagedFile(staged_file["name"], tuple(map(tuple, staged_file["sizes"]))),
        )
