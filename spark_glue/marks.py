"""Marks: what packing tasks tell all shards of how far the inputs are.

A shard knows no other one's rows, but its watermark is that of all. So a task sends every shard a
mark of some bytes: the inputs that it had rows of, and the watermark that these allow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.columns.row_status import status_of_times
from gpu_windows.query.base import Query
from gpu_windows.rules import ACCEPTED
from gpu_windows.spark_glue.guard import are_rejected

#: Name of the column that says of which input a row is, from 0, where there are several.
INPUT = "__input"

#: What a mark begins with, other than an Arrow IPC stream, and an entry: an input, its watermark.
_MAGIC, _ENTRY = b"mark", struct.Struct("<iq")


class Said:
    """The greatest watermark that each input has said in a micro-batch; nothing at first."""

    def __init__(self) -> None:
        self.watermarks: dict[int, int] = {}

    def noted(self, query: Query, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield a query's rows as they are, without `INPUT`, and note what they say."""
        for table in tables:
            rows = table.drop_columns([INPUT]) if INPUT in table.column_names else table
            if not are_rejected(table):
                self._note(query, table)
            yield rows

    def _note(self, query: Query, rows: pa.Table) -> None:
        times = to_lane(rows.column(query.time))
        counts = status_of_times(times, query.usable_ticks) == ACCEPTED
        numbers: NDArray[np.int64] | None = None
        if INPUT in rows.column_names:
            numbers = to_lane(rows.column(INPUT)).values
        for number, watermarks in enumerate(query.watermarks.inputs):
            own = counts if numbers is None else counts & (numbers == number)
            if own.any():
                self.add(number, watermarks.allowed(times.values[own]))

    def add(self, number: int, watermark: int) -> None:
        """Note a watermark of an input, by its number."""
        self.watermarks[number] = max(watermark, self.watermarks.get(number, watermark))

    def take(self, mark: bytes) -> None:
        """Note what a task has said."""
        for number, watermark in _ENTRY.iter_unpack(mark[len(_MAGIC) :]):
            self.add(number, watermark)

    @property
    def mark(self) -> bytes:
        """What has been said, for `take`."""
        return _MAGIC + b"".join(_ENTRY.pack(*entry) for entry in self.watermarks.items())


def is_mark(blob: bytes) -> bool:
    """Whether a blob that was sent is a mark."""
    return blob[: len(_MAGIC)] == _MAGIC
