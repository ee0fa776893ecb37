"""Steps between a scan and a query, which a task applies to its batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import GpuWindowsError
from gpu_windows.runners.arrow_source import ArrowSource
from gpu_windows.runners.outputs import Source
from gpu_windows.scans.parquet import Pruning


class RowChange(ABC):
    """A step that transforms rows."""

    @abstractmethod
    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""

    def reads(self, columns: frozenset[str], schema: pa.Schema) -> frozenset[str]:
        """Return the input columns that some output columns need; here, the same ones.

        Parameters
        ----------
        columns : frozenset of str
            Output columns.
        schema : pyarrow.Schema
            Of the input.
        """
        del schema
        return columns

    def narrow(self, columns: frozenset[str]) -> RowChange:
        """Return the change restricted to what these output columns need."""
        del columns
        return self


@dataclass(frozen=True)
class _OneColumn(RowChange):
    """A step that adds or converts a column, and has no effect where nothing needs it."""

    name: str

    def narrow(self, columns: frozenset[str]) -> RowChange:
        """Return this change, or one without effect."""
        return self if self.name in columns else AddColumns({})


@dataclass(frozen=True)
class FilterRows(RowChange):
    """Keep the rows for which a condition in SQL is true."""

    condition: str

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        return source.filter_rows(self.condition)

    def reads(self, columns: frozenset[str], schema: pa.Schema) -> frozenset[str]:
        """Return the input columns that some output columns need."""
        return columns | columns_of_texts([self.condition], schema)

    def prunes(self, schema: pa.Schema) -> Pruning | None:
        """Return the condition by which row groups can be skipped, or None.

        Conditions on floats cannot be used: NaN is greater than all numbers, and statistics of row
        groups do not count it.
        """
        from gpu_windows.expressions.arrow import build_expression

        fields = [schema.field(name) for name in columns_of_texts([self.condition], schema)]
        if any(types.is_floating(field.type) for field in fields):
            return None
        try:
            condition = build_expression(self.condition, schema).expression
        except GpuWindowsError:
            return None  # Arrow computes it by functions over rows, not by an expression
        return None if condition is None else Pruning(condition, tuple(fields))


@dataclass(frozen=True)
class AddColumns(RowChange):
    """Add columns, or replace those of the same names, by expressions in SQL."""

    texts: Mapping[str, str]

    @property
    def names_in_lower_case(self) -> frozenset[str]:
        """Names of the columns, as Spark tells them apart."""
        return frozenset(name.lower() for name in self.texts)

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        return source.add_columns(self.texts)

    def reads(self, columns: frozenset[str], schema: pa.Schema) -> frozenset[str]:
        """Return the input columns that some output columns need."""
        texts = [text for name, text in self.texts.items() if name in columns]
        return (columns - self.texts.keys()) | columns_of_texts(texts, schema)

    def narrow(self, columns: frozenset[str]) -> RowChange:
        """Return the change with the expressions of these columns alone."""
        return AddColumns({name: text for name, text in self.texts.items() if name in columns})


@dataclass(frozen=True)
class AddConstant(_OneColumn):
    """Add an internal column that has one value."""

    value: pa.Scalar

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        return source.add_constant(self.name, self.value)

    def reads(self, columns: frozenset[str], schema: pa.Schema) -> frozenset[str]:
        """Return the input columns that some output columns need."""
        return columns - {self.name}


@dataclass(frozen=True)
class AddLastTicks(_OneColumn):
    """Add the last ticks before the times of a column."""

    column: str

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        return source.add_last_ticks(self.column, self.name)

    def reads(self, columns: frozenset[str], schema: pa.Schema) -> frozenset[str]:
        """Return the input columns that some output columns need."""
        return (columns - {self.name}) | ({self.column} if self.name in columns else frozenset())


@dataclass(frozen=True)
class ConvertTime(_OneColumn):
    """Convert a column to times in microseconds; finer times are refused."""

    role: str

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        return source.convert_time(self.name, self.role)


@dataclass(frozen=True)
class ConvertLocalTime(_OneColumn):
    """Convert a column of times without a zone to instants.

    Parameters
    ----------
    name, zone : str
        See `gpu_windows.runners.outputs.Source.convert_local_time`.
    display_zone : str
        The zone of the resulting type, in which instants are displayed.
    """

    zone: str
    display_zone: str

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        rows = source.convert_local_time(self.name, self.zone)
        return rows if self.display_zone == self.zone else self._with_display_zone(rows)

    def _with_display_zone(self, rows: Source) -> Source:
        assert isinstance(rows, ArrowSource)
        at = rows.schema.get_field_index(self.name)
        field = rows.schema.field(at)
        dtype = pa.timestamp(field.type.unit, self.display_zone)
        schema = rows.schema.set(at, field.with_type(dtype))
        return rows.map_rows(lambda table: table.cast(schema))


@dataclass(frozen=True)
class ProjectRows(RowChange):
    """Give rows the columns of a union or of a join.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows that it makes.
    columns : mapping of str to str
        Names behind it to names before it; a column without one is null.
    constants : mapping of str to pyarrow.Scalar
        Columns that have one value.
    """

    schema: pa.Schema
    columns: Mapping[str, str]
    constants: Mapping[str, pa.Scalar]

    def apply(self, source: ArrowSource) -> Source:
        """Return the transformed rows."""
        return source.map_rows(self._project)

    def reads(self, columns: frozenset[str], schema: pa.Schema) -> frozenset[str]:
        """Return the input columns that some output columns need."""
        return frozenset(own for name, own in self.columns.items() if name in columns)

    def _project(self, rows: pa.Table) -> pa.Table:
        columns = [self._column(field, rows) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _column(self, field: pa.Field, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        if field.name in self.constants:
            return pa.repeat(self.constants[field.name].cast(field.type), rows.num_rows)
        own = self.columns.get(field.name)
        if own is None or own not in rows.schema.names:  # one that nothing needs
            return pa.nulls(rows.num_rows, field.type)
        return rows.column(own).cast(field.type)


def columns_of_texts(texts: Iterable[str], schema: pa.Schema) -> frozenset[str]:
    """Return the columns that expressions in SQL name."""
    return frozenset().union(*(_columns_of_text(text, tuple(schema.names)) for text in texts))


@lru_cache(1_000)  # a task asks for each of its files
def _columns_of_text(text: str, columns: tuple[str, ...]) -> frozenset[str]:
    from sqlglot import exp

    from gpu_windows.expressions.columns import ColumnNames
    from gpu_windows.expressions.sql_text import parse_expression

    names = ColumnNames(columns)
    return frozenset(names.resolve(each) for each in parse_expression(text).find_all(exp.Column))
