"""What shard tasks give back to the driver: blobs of results, counters, and where the state is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import pyarrow as pa

from gpu_windows.checkpointing.state_commit import ShardState, StagedFile
from gpu_windows.watermarks import InputProgress, Valve

#: The kind of the report of a shard, besides those of `gpu_windows.spark_glue.tagged`.
REPORT = -2
SCHEMA = pa.schema([("shard", pa.int64()), ("kind", pa.int32()), ("blob", pa.binary())])


@dataclass(frozen=True)
class ShardReport:
    """What a shard reports after a micro-batch.

    Parameters
    ----------
    state : ShardState
    watermark : Valve
        How far the inputs are after it: the same in all shards.
    measured : mapping
        Counters and measures, by name.
    next_times : (int or None, int or None)
        Watermark and processing time at which something is due, in ticks.
    staged : StagedFile, optional
        Its results, where they are not among the rows that the task gives back.
    """

    state: ShardState
    watermark: Valve
    measured: Mapping[str, Any]
    next_times: tuple[int | None, int | None]
    staged: StagedFile | None = None

    @property
    def as_bytes(self) -> bytes:
        """What `from_bytes` reads."""
        found = {
            "state": asdict(self.state),
            "watermark": to_json(self.watermark),
            "measured": dict(self.measured),
            "next_times": self.next_times,
            "staged": None if self.staged is None else asdict(self.staged),
        }
        return json.dumps(found).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a report."""
        found = json.loads(data)
        state = ShardState(found["state"]["newest"], tuple(found["state"]["files"]))
        event, processing = found["next_times"]
        watermark, staged = from_json(found["watermark"]), found["staged"]
        if staged is not None:
            staged = StagedFile(staged["name"], tuple(map(tuple, staged["sizes"])))
        return cls(state, watermark, found["measured"], (event, processing), staged)


def to_json(valve: Valve) -> dict[str, Any]:
    """Return how far the inputs are, as a commit has it."""
    return asdict(valve)


def from_json(found: Mapping[str, Any]) -> Valve:
    """Read what `to_json` returned."""
    inputs = tuple(InputProgress(**each) for each in found["inputs"])
    return Valve(**{**found, "inputs": inputs})
