"""A shard that a test drives micro-batch by micro-batch, and rows for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.packing import to_ipc
from gpu_windows.spark_glue.times import SparkClock
from tests.operators.joins.interval_joins import batch_of
from tests.operators.joins.rows import Row
from tests.operators.state.put_away import rows

ROWS: list[tuple[bool, Row]] = [
    (True, ("a", 1, 1)),
    (False, ("a", 1, 2)),
    (True, ("b", 11, 3)),
    (False, ("b", 11, 4)),
    (False, ("c", 11, 5)),
]


class Shard:
    """A shard's processor, with a dict in place of what Spark keeps."""

    def __init__(self, planned: Plan, kept: dict[tuple[str, int], Any]) -> None:
        processor = pytest.importorskip("gpu_windows.spark_glue.processor")
        self.kept, self.planned, self.watermark = kept, planned, 0
        self.processor = processor.WindowProcessor(planned, SparkClock(ticks_a_ms=1))
        self.processor.init(self)

    def micro_batch(self, watermark: int, *tables: pa.Table) -> int:
        """Run a micro-batch; return how many windows fired and rows met."""
        self.watermark = watermark
        blobs = pytest.importorskip("pandas").DataFrame(
            {"blob": [to_ipc(table) for table in tables]}
        )
        found = self.processor.handleInputRows(None, iter([blobs]), self)
        return sum(len(frame) for frame in found)

    # ---- what Spark gives a processor

    def getMapState(self, *_: str) -> Shard:  # noqa: N802
        return self

    def getValue(self, key: tuple[str, int]) -> Any:  # noqa: N802
        return self.kept.get(key)

    def updateValue(self, key: tuple[str, int], value: Any) -> None:  # noqa: N802
        self.kept[key] = value

    def removeKey(self, key: tuple[str, int]) -> None:  # noqa: N802
        del self.kept[key]

    def listTimers(self) -> list[int]:  # noqa: N802
        return []

    def registerTimer(self, _: int) -> None:  # noqa: N802
        pass

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802
        return 0

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.watermark


def input_of(planned: Plan) -> pa.Table:
    joins = "is_left" in planned.query.schema.names
    return batch_of(ROWS, planned) if joins else rows(1, 2, 3, 11, 12)
