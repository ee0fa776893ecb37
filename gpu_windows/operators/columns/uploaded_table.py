"""An Arrow table of which a device has some columns, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_windows.operators.columns.numeric import TypedNumericColumn


@dataclass(frozen=True)
class UploadedTable:
    """A table with the methods that operators call; kernels take `kernel_column`.

    Parameters
    ----------
    table : pyarrow.Table
    uploaded : dict of str to TypedNumericColumn
        Columns by name, as `Backend.upload` returns them.
    """

    table: pa.Table
    uploaded: dict[str, TypedNumericColumn]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the host."""
        return self.table.column(name)

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the rows as batches of the host."""
        return self.table.to_batches()  # type: ignore[no-any-return]

    def slice(self, begin: int, length: int | None = None) -> pa.Table:
        """Return some rows, on the host: they are asked for when the device has no room."""
        return self.table.slice(begin, length)

    def filter(self, some: pa.BooleanArray) -> pa.Table:
        """Return the rows of a mask, on the host."""
        return self.table.filter(some)


def kernel_column(table: Any, name: str) -> Any:
    """Return a column of a table of any kind for kernels: the device's if that has it."""
    if isinstance(table, UploadedTable) and name in table.uploaded:
        return table.uploaded[name]
    return table.column(name)
