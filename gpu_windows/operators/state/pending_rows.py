"""Rows that are buffered until the watermark passes them, numbered in order of arrival."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.schemas import NOTHING

#: Column of the number of a row, in order of arrival.
NUMBER = "__number"


class PendingRows(RowBuffer):
    """Rows that are buffered until the watermark passes them.

    Parameters
    ----------
    log : StateLog
    name : str
    time : str
        The column of their times, int64.
    next_number : int
        The number of the next row.
    lacking : pyarrow.Schema
        See `RowBuffer`.

    Attributes
    ----------
    next_number : int
    """

    def __init__(
        self,
        log: StateLog,
        name: str,
        *,
        time: str,
        next_number: int,
        lacking: pa.Schema = NOTHING,
    ) -> None:
        super().__init__(log, name, BufferSpec(time, no_prefix, in_order=True), lacking)
        self.next_number = next_number

    def number(self, rows: pa.Table) -> pa.Table:
        """Return new rows with the column `NUMBER`."""
        first, self.next_number = self.next_number, self.next_number + len(rows)
        return rows.append_column(NUMBER, pa.array(np.arange(first, self.next_number)))
