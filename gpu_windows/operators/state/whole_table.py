"""A table of a log that is read and written as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.log import LogTable, StateLog
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.operators.state.schemas import concat_rows


class WholeTable(LogTable):
    """A table of a few rows, or of an operator that has all of its state in memory.

    Parameters
    ----------
    log : StateLog
    name : str
    key_columns : KeyColumns
        How key groups are identified.
    """

    def __init__(self, log: StateLog, name: str, key_columns: KeyColumns) -> None:
        super().__init__(log, name)
        self._key_columns = key_columns
        self._new: pa.Table | None = None

    def __len__(self) -> int:
        """Return the number of saved rows."""
        return sum(run.rows for run in self.runs) if self._new is None else len(self._new)

    def load(self) -> pa.Table | None:
        """Return the saved table, or None."""
        if self._new is not None or not self.runs:
            return self._new
        return self._read(self.runs)

    def _read(self, runs: Sequence[Run]) -> pa.Table:
        """Return the rows of all runs; there are several after rescaling, one per old shard."""
        blocks = (self.log.read_blocks(run, np.arange(1)) for run in runs)
        return concat_rows([table for ((table,),) in blocks])

    def save(self, table: pa.Table) -> None:
        """Replace the table."""
        for run in self.runs:
            self.log.drop(run)
        self._new = table

    @property
    def new_bytes(self) -> int:
        """Bytes in memory of an unflushed table."""
        return 0 if self._new is None or not len(self._new) else max(self._new.nbytes, 1)

    def before_finish(self) -> None:
        """Save the number of rows."""
        self.log.set_numbers(self.name, {"rows": len(self)})

    def note_written(self) -> None:
        """Drop the unflushed table, which is in a run now."""
        self._new = None

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield the unflushed table, or else the stored one."""
        del are_oldest
        table = self._new if with_new and self._new is not None else self._read(runs)
        if self.log.rescaling is not None:
            selected = self.log.rescaling.select(table, self._key_columns)
            table = table.filter(pa.array(selected))
        if len(table):
            tables = (table.replace_schema_metadata(None),)
            yield Block(prefix=0, time=0, tables=tables, rows=len(table))
