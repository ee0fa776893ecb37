"""What shard tasks give back to the driver: blobs of results, counters, and where the state is."""

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

#: The kind of the report of a shard, besides those of `output_kinds`.
REPORT = -1
SCHEMA = pa.schema([("shard", pa.int64()), ("kind", pa.int32()), ("blob", pa.binary())])


@dataclass(frozen=True)
class ShardReport:
    """What a shard reports after a micro-batch.

    Parameters
    ----------
    state : ShardState
    combined : CombinedWatermark
        The combined watermark of the inputs after it: the same in all shards.
    counters : Counters
    measures : Measures
    next_times : (int or None, int or None)
        Watermark and processing time at which something is due, in ticks.
    staged : StagedFile, optional
        Its results, where they are not among the rows that the task gives back.
    """

    state: ShardState
    combined: CombinedWatermark
    counters: Counters
    measures: Measures
    next_times: Timers
    staged: StagedFile | None = None

    @property
    def as_bytes(self) -> bytes:
        """What `from_bytes` reads."""
        return json.dumps({**asdict(self), "combined": to_json(self.combined)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a report."""
        found = json.loads(data)
        counters, staged = found["counters"], found["staged"]
        event, processing = found["next_times"]
        return cls(
            state=ShardState(found["state"]["newest"], tuple(found["state"]["files"])),
            combined=from_json(found["combined"]),
            counters=Counters(**{**counters, "user": tuple(map(tuple, counters["user"]))}),
            measures=Measures(**found["measures"]),
            next_times=(event, processing),
            staged=staged and StagedFile(staged["name"], tuple(map(tuple, staged["sizes"]))),
        )
