"""Runs: sorted rows of a table in one state file, in blocks of some kilobytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.block_index import BlockIndex
from gpu_windows.operators.state.frames import pack_batches
from gpu_windows.operators.state.hashes import build_filter
from gpu_windows.operators.state.schemas import conform, unify_schemas
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: Minimum number of blocks of a run that has a key filter.
_MIN_FILTERED = 16


@dataclass(frozen=True)
class Block:
    """Some rows of a run, which are read and written together.

    Parameters
    ----------
    prefix, time : int
        Of the first row: the prefix of the hash of its key, and its time.
    tables : tuple of pyarrow.Table
        Of the same columns in all blocks of a run, in whatever order.
    rows, markers : int
        Number of rows, and of markers: entries that change earlier rows, or delete keys.
    min_time, max_time : int
        Range of the times of the rows.
    keys : int64[k]
        Hashes of the keys that it contains, sorted, each once; empty if runs need no key filter.
    """

    prefix: int
    time: int
    tables: tuple[pa.Table, ...]
    rows: int
    markers: int = 0
    min_time: int = 0
    max_time: int = 0
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Run:
    """Metadata of a run in the manifest.

    Parameters
    ----------
    table : str
        Its table.
    file : str
        Its state file.
    begin, filters, index, end : int
        Offsets in the file: its blocks, its key filter, its block index, and its end.
    rows, markers : int
        See `Block`.
    min_time, max_time : int
        Range of the times of its rows.
    live_from : int
        Rows before this time have expired.
    consumed : int
        Number of rows that were consumed one by one, in addition to expired ones.
    """

    table: str
    file: str
    begin: int
    filters: int
    index: int
    end: int
    rows: int
    markers: int
    min_time: int
    max_time: int
    live_from: int
    consumed: int = 0

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return self.end - self.begin

    @property
    def live_size(self) -> int:
        """About how many of its bytes belong to rows that have not expired."""
        span = self.max_time - self.min_time + 1
        left = min(self.max_time - self.live_from + 1, span)
        return self.size * left // span


class RunWriter:
    """Writes a run: drain `parts`, then call `run`.

    Parameters
    ----------
    table, file : str
        See `Run`.
    begin : int
        Its offset in the file.
    blocks : iterable of Block
        In the order of (prefix, time).
    """

    def __init__(self, table: str, file: str, begin: int, blocks: Iterable[Block]) -> None:
        self._table, self._file, self._begin, self._blocks = table, file, begin, blocks
        self._sizes: list[int] = []
        self._prefixes: list[tuple[int, int]] = []
        self._keys: list[Ints] = []
        self._schemas: tuple[pa.Schema, ...] = ()
        self._rows = self._markers = 0
        self._min_time, self._max_time = LONG_MAX, LONG_MIN
        self._run: Run | None = None

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
        prefixes = np.array(self._prefixes, np.int64).reshape(-1, 2)
        index = BlockIndex(
            prefix=prefixes[:, 0],
            time=prefixes[:, 1],
            sizes=np.array(self._sizes, np.int64),
            schemas=self._schemas,
            filters=tuple(map(len, bits)),
        )
        frame = index.to_frame()
        yield frame
        begin = filters + sum(map(len, bits))
        self._run = Run(
            table=self._table,
            file=self._file,
            begin=self._begin,
            filters=filters,
            index=begin,
            end=begin + len(frame),
            rows=self._rows,
            markers=self._markers,
            min_time=self._min_time,
            max_time=self._max_time,
            live_from=self._min_time,
        )

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
        self._prefixes.append((block.prefix, block.time))
        self._rows += block.rows
        self._markers += block.markers
        self._min_time = min(self._min_time, block.min_time)
        self._max_time = max(self._max_time, block.max_time)
        if len(block.keys):
            self._keys.append(block.keys)

    def _filter(self) -> list[bytes]:
        if len(self._sizes) < _MIN_FILTERED or not self._keys:
            return []
        return build_filter(np.concatenate(self._keys))

    def run(self, consumed: int = 0) -> Run | None:
        """Return the written run; None if there were no blocks. ``consumed``: see `Run`."""
        return None if self._run is None else replace(self._run, consumed=consumed)
