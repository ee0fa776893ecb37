"""Runs: the rows of a table that one state file has, sorted, in blocks of some kilobytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.directory import Directory
from gpu_windows.operators.state.frames import pack_batches
from gpu_windows.operators.state.key_filters import build_filter
from gpu_windows.operators.state.schemas import conform, unify_schemas
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: Blocks of a run from which on it has a filter of its keys.
_MIN_FILTERED = 16


@dataclass(frozen=True)
class Block:
    """Some rows of a run, read and written together.

    Parameters
    ----------
    place, time : int
        Of the first row.
    tables : tuple of pyarrow.Table
        Of the same columns in all blocks of a run, in whatever order.
    rows, markers : int
        Number of rows, and of markers: entries that change earlier rows, or delete keys.
    least, greatest : int
        Between which the times of the rows are.
    keys : int64[k]
        Hashes of the keys that it knows, sorted, each once; none where nobody looks for keys.
    """

    place: int
    time: int
    tables: tuple[pa.Table, ...]
    rows: int
    markers: int = 0
    least: int = 0
    greatest: int = 0
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Run:
    """What a log knows of a run without reading it.

    Parameters
    ----------
    table : str
        The table that it is of.
    file : str
        The state file that has it.
    begin, filters, directory, end : int
        Offsets in the file: its blocks, the filter of its keys, its directory, and its end.
    rows, markers : int
        See `Block`.
    least, greatest : int
        Between which the times of its rows are.
    since : int
        Rows before this time have expired.
    taken : int
        How many rows were taken besides.
    """

    table: str
    file: str
    begin: int
    filters: int
    directory: int
    end: int
    rows: int
    markers: int
    least: int
    greatest: int
    since: int
    taken: int = 0

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.begin

    @property
    def live_size(self) -> int:
        """About how many of its bytes are of rows that have not expired."""
        span = self.greatest - self.least + 1
        left = min(self.greatest - self.since + 1, span)
        return self.size * left // span


class RunWriter:
    """Writes a run: drain `parts`, then ask for `run`.

    Parameters
    ----------
    table, file : str
        See `Run`.
    begin : int
        Where it is to begin in the file.
    blocks : iterable of Block
        In the order of (place, time).
    """

    def __init__(self, table: str, file: str, begin: int, blocks: Iterable[Block]) -> None:
        self._table, self._file, self._begin, self._blocks = table, file, begin, blocks
        self._sizes: list[int] = []
        self._places: list[tuple[int, int]] = []
        self._keys: list[Ints] = []
        self._schemas: tuple[pa.Schema, ...] = ()
        self._rows = self._markers = 0
        self._least, self._greatest = LONG_MAX, LONG_MIN
        self._offsets = (begin, begin, begin)

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes of the run; none if there are no blocks."""
        for block in self._blocks:
            self._add(block)
            frame = pack_batches([*map(self._as_first, block.tables, self._schemas)])
            self._sizes.append(len(frame))
            yield frame
        if not self._sizes:
            return
        filters = self._begin + sum(self._sizes)
        bits = self._filter()
        yield from bits
        places = np.array(self._places, np.int64).reshape(-1, 2)
        directory = Directory(
            place=places[:, 0],
            time=places[:, 1],
            sizes=np.array(self._sizes, np.int64),
            schemas=self._schemas,
            filters=tuple(map(len, bits)),
        )
        frame = directory.to_frame()
        yield frame
        begin = filters + sum(map(len, bits))
        self._offsets = (filters, begin, begin + len(frame))

    @staticmethod
    def _as_first(table: pa.Table, schema: pa.Schema) -> pa.Table:
        """Return a table of a block with the columns of the first block, in their order."""
        if table.schema.equals(schema):
            return table
        assert {*table.column_names} == {*schema.names}, "blocks of a run have the same columns"
        return conform(table, schema)

    def _add(self, block: Block) -> None:
        self._schemas = self._schemas or tuple(
            unify_schemas([table.schema]) for table in block.tables
        )
        self._places.append((block.place, block.time))
        self._rows += block.rows
        self._markers += block.markers
        self._least, self._greatest = (
            min(self._least, block.least),
            max(self._greatest, block.greatest),
        )
        if len(block.keys):
            self._keys.append(block.keys)

    def _filter(self) -> list[bytes]:
        if len(self._sizes) < _MIN_FILTERED or not self._keys:
            return []
        return build_filter(np.concatenate(self._keys))

    def run(self, taken: int = 0) -> Run | None:
        """Return what was written; None if there were no blocks. ``taken``: see `Run`."""
        if not self._sizes:
            return None
        return Run(
            table=self._table,
            file=self._file,
            begin=self._begin,
            filters=self._offsets[0],
            directory=self._offsets[1],
            end=self._offsets[2],
            rows=self._rows,
            markers=self._markers,
            least=self._least,
            greatest=self._greatest,
            since=self._least,
            taken=taken,
        )
