"""Rows that are read from files where they are used: by the local runner, or by a task."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_

import pyarrow as pa
from pyarrow import types

from gpu_windows.runners.arrow_source import ArrowSource
from gpu_windows.runners.outputs import Source
from gpu_windows.runners.row_changes import AddColumns, FilterRows, ProjectRows, RowChange
from gpu_windows.runners.row_stream import RowStream
from gpu_windows.scans.parquet import Pruning
from gpu_windows.scans.scan import FileScan
from gpu_windows.scans.splits import Split


@dataclass(frozen=True)
class ScannedPart:
    """The rows of one scan, and the changes applied to them.

    Parameters
    ----------
    scan : FileScan
    changes : tuple of RowChange
    """

    scan: FileScan
    changes: tuple[RowChange, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the changed rows."""
        return self._schemas[-1]

    @cached_property
    def _schemas(self) -> list[pa.Schema]:
        """The schema before each change, and after the last one."""
        source: Source = ArrowSource(self.scan.schema.empty_table(), as_declared=True)
        schemas = [source.schema]
        for change in self.changes:
            assert isinstance(source, ArrowSource)
            source = change.apply(source)
            schemas.append(source.schema)
        return schemas

    def columns_read(self, columns: Collection[str]) -> frozenset[str]:
        """Return the columns of files that some columns of the changed rows need."""
        return self._narrow(columns)[0]

    def read(
        self, split: Split, columns: Collection[str], *, threads: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows of a split, with at least these columns."""
        needed, changes = self._narrow(columns)

        def batches() -> Iterator[pa.RecordBatch]:
            return self.scan.read(split, needed, self._pruning, threads=threads)

        rows: Source = ArrowSource(RowStream(self.scan.select_schema(needed), batches, ()))
        for change in changes:
            assert isinstance(rows, ArrowSource)
            rows = change.apply(rows)
        assert isinstance(rows, ArrowSource)
        yield from rows.batches()

    def _narrow(self, columns: Collection[str]) -> tuple[frozenset[str], list[RowChange]]:
        """Return the columns of files to read, and the changes restricted to what is needed."""
        needed, changes = frozenset(columns), []
        for change, schema in zip(reversed(self.changes), self._schemas[-2::-1], strict=True):
            changes.append(change.narrow(needed))
            needed = change.reads(needed, schema)
        return needed or frozenset([self._cheapest_column]), changes[::-1]

    @property
    def _cheapest_column(self) -> str:
        """The column to read for the number of rows where no other one is needed."""
        schema = self.scan.schema
        plain = [field.name for field in schema if not types.is_nested(field.type)]
        every: list[str] = [*self.scan.partitions, *plain, *schema.names]
        return every[0]

    @cached_property
    def _pruning(self) -> Pruning | None:
        """The condition by which row groups can be skipped, from filters on columns of files."""
        found, left = [], set(self.scan.schema.names) - {*self.scan.partitions}
        for change, schema in zip(self.changes, self._schemas, strict=False):
            if isinstance(change, ProjectRows):
                break
            if isinstance(change, AddColumns):
                left -= {name for name in left if name.lower() in change.names_in_lower_case}
            if isinstance(change, FilterRows):
                names = change.reads(frozenset(), schema)
                if names <= left and (pruning := change.prunes(self.scan.schema)) is not None:
                    found.append(pruning)
        if not found:
            return None
        columns = {field.name: field for each in found for field in each.columns}
        condition = reduce(and_, (each.condition for each in found))
        return Pruning(condition, tuple(columns.values()))


@dataclass(frozen=True)
class ScannedRows:
    """The union of the rows of several scans, with the same columns.

    Parameters
    ----------
    parts : tuple of ScannedPart
    """

    parts: tuple[ScannedPart, ...]

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self.parts[0].schema

    def then(self, change: RowChange) -> ScannedRows:
        """Return the rows after a change.

        Raises
        ------
        SqlError
            If Arrow does not compute it.
        """
        parts = tuple(replace(part, changes=(*part.changes, change)) for part in self.parts)
        for part in parts:
            _ = part.schema
        return ScannedRows(parts)
