"""Watermarks of inputs in a micro-batch, which every packing task reports to every shard.

A shard sees only its own rows, but its watermark depends on all rows. So each packing task sends
every shard a message with the watermark of each input that it read. A message has 16 bytes, and 12
more for each further input: 200 tasks and 200 shards make 40,000 messages, 640 kB. When a shard has
read its rows it has all messages, so all shards reach the same watermark in the same micro-batch.
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
from gpu_windows.spark_glue.contract.future_rows import are_rejected
from gpu_windows.spark_glue.contract.watermarks import CARRIED_WATERMARK, INPUT, IS_MARKER
from gpu_windows.vocabulary.watermarks import StageWatermarks

#: First bytes of a message, which no Arrow IPC stream has; an entry: an input and its watermark.
_MAGIC, _ENTRY = b"mark", struct.Struct("<iq")
_OWN = (INPUT, CARRIED_WATERMARK, IS_MARKER)


class ReportedWatermarks:
    """The greatest watermark that each input has reported in a micro-batch.

    Parameters
    ----------
    watermarks : mapping of int to int
        Known before any row: number of an input to its watermark, in ticks.
    """

    def __init__(self, watermarks: Mapping[int, int] | None = None) -> None:
        self.watermarks: dict[int, int] = dict(watermarks or {})

    def collect(self, query: Query, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Add the watermarks of tables; yield their rows without markers and internal columns."""
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
        numbers: NDArray[np.int64] = np.zeros(len(rows), np.int64)
        if INPUT in rows.column_names:
            numbers = to_numeric(rows.column(INPUT)).values
        for number, watermarks in enumerate(query.watermarks.inputs):
            if isinstance(watermarks, StageWatermarks) or not watermarks.moves:
                continue  # the driver knows it
            is_own = numbers == number
            if watermarks.column is not None:
                self._add_greatest(number, to_numeric(rows.column(CARRIED_WATERMARK)), is_own)
            elif (is_own & counts).any():
                self.add(number, watermarks.watermark_of(times.values[is_own & counts]))

    def _add_greatest(self, number: int, carried: NumericColumn, is_own: NDArray[np.bool_]) -> None:
        found = carried.values[is_own & carried.valid if len(carried.valid) else is_own]
        if len(found):
            self.add(number, int(found.max()))

    def add(self, number: int, watermark: int) -> None:
        """Raise the watermark of an input, by its number."""
        self.watermarks[number] = max(watermark, self.watermarks.get(number, watermark))

    def add_bytes(self, message: bytes) -> None:
        """Add the watermarks of a task's message."""
        for number, watermark in _ENTRY.iter_unpack(message[len(_MAGIC) :]):
            self.add(number, watermark)

    @property
    def as_bytes(self) -> bytes:
        """The watermarks as a message, which `add_bytes` reads."""
        return _MAGIC + b"".join(_ENTRY.pack(*entry) for entry in self.watermarks.items())


def holds_watermarks(message: bytes | pa.Buffer) -> bool:
    """Whether a message holds watermarks, not rows."""
    return bytes(message[: len(_MAGIC)]) == _MAGIC
