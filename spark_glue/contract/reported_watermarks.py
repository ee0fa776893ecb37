"""How far the inputs of a micro-batch are, as packing tasks report it to every shard.

A shard knows no other one's rows, but its watermark is that of all. So a task sends every shard a
message: the inputs that it had rows of, and the watermark that these allow. It has 16 bytes, and 12
more for each further input: 200 tasks and 200 shards make 40,000 messages, 640 kB. A shard has all
of them once it has its rows, so all shards reach the same watermark in the same micro-batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.operators.columns.numeric import NumericColumn, to_numeric
from gpu_windows.operators.columns.row_status import status_of_times
from gpu_windows.planning.query import Query
from gpu_windows.rules import ACCEPTED
from gpu_windows.spark_glue.contract.guard import are_rejected
from gpu_windows.spark_glue.contract.watermarks import CARRIED_WATERMARK, INPUT, IS_MARKER
from gpu_windows.vocabulary.watermarks import StageWatermarks

#: What a message begins with, unlike an Arrow IPC stream, and an entry: an input, its watermark.
_MAGIC, _ENTRY = b"mark", struct.Struct("<iq")
_OWN = (INPUT, CARRIED_WATERMARK, IS_MARKER)


class ReportedWatermarks:
    """The greatest watermark that each input has reported in a micro-batch.

    Parameters
    ----------
    watermarks : mapping of int to int
        What is known before any row: number of an input to its watermark, in ticks.
    """

    def __init__(self, watermarks: Mapping[int, int] | None = None) -> None:
        self.watermarks: dict[int, int] = dict(watermarks or {})

    def collect(self, query: Query, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows of a query, without markers and columns of ours; take what they report."""
        for table in tables:
            if not are_rejected(table):
                self._collect(query, table)
            if IS_MARKER in table.column_names:
                table = table.filter(pc.invert(table[IS_MARKER]))
            yield table.drop_columns([name for name in _OWN if name in table.column_names])

    def _collect(self, query: Query, rows: pa.Table) -> None:
        if query.watermarks.in_processing_time:
            return
        times = to_numeric(rows.column(query.time))
        counts = status_of_times(times, query.usable_ticks) == ACCEPTED
        numbers: NDArray[np.int64] | None = None
        if INPUT in rows.column_names:
            numbers = to_numeric(rows.column(INPUT)).values
        carried: NumericColumn | None = None
        if CARRIED_WATERMARK in rows.column_names:
            carried = to_numeric(rows.column(CARRIED_WATERMARK))
        for number, watermarks in enumerate(query.watermarks.inputs):
            if isinstance(watermarks, StageWatermarks) or not watermarks.moves:
                continue  # the driver knows it
            is_own = np.ones(len(rows), np.bool_) if numbers is None else numbers == number
            if watermarks.column is not None:
                self._add_greatest(number, carried, is_own)
            elif (is_own & counts).any():
                self.add(number, watermarks.watermark_of(times.values[is_own & counts]))

    def _add_greatest(
        self, number: int, carried: NumericColumn | None, is_own: NDArray[np.bool_]
    ) -> None:
        assert carried is not None, "where rows carry the watermark it crosses with them"
        found = carried.values[is_own & carried.valid if len(carried.valid) else is_own]
        if len(found):
            self.add(number, int(found.max()))

    def add(self, number: int, watermark: int) -> None:
        """Take the watermark of an input, by its number."""
        self.watermarks[number] = max(watermark, self.watermarks.get(number, watermark))

    def add_bytes(self, message: bytes) -> None:
        """Take what a task has reported."""
        for number, watermark in _ENTRY.iter_unpack(message[len(_MAGIC) :]):
            self.add(number, watermark)

    @property
    def as_bytes(self) -> bytes:
        """What has been reported, as a message that `add_bytes` reads."""
        return _MAGIC + b"".join(_ENTRY.pack(*entry) for entry in self.watermarks.items())


def holds_watermarks(message: bytes | pa.Buffer) -> bool:
    """Whether a message is of watermarks, not of rows."""
    return bytes(message[: len(_MAGIC)]) == _MAGIC
