"""Arrow rows as the source of a query, and its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.column_types.local_times import check_local, instants_of
from gpu_windows.column_types.logical import (
    hides_nulls,
    is_logical,
    logical_schema,
    logical_table,
)
from gpu_windows.column_types.time_units import to_microseconds, warn_of_unit
from gpu_windows.commits.write_target import WriteTarget, WrittenParquet
from gpu_windows.errors import ColumnTypeError, QueryError, UnsupportedQueryError, require_extra
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.top_n import select_top_results
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.own_columns import OWN
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import check_free, check_time, require_column
from gpu_windows.runners.arrow_rows import (
    iter_batches,
    map_tables,
    tag_rows,
    union_rows,
    with_result_time,
)
from gpu_windows.runners.arrow_selection import add_columns, apply_selections, filter_table
from gpu_windows.runners.explosion import Explosion, explode_table
from gpu_windows.runners.local import (
    LocalRun,
    emissions,
    input_of,
    run,
    with_timestamps,
    without_own,
)
from gpu_windows.runners.lookup import Lookup, look_up
from gpu_windows.runners.outputs import Input, InputSide, Outputs, Source
from gpu_windows.runners.row_stream import RowStream
from gpu_windows.runners.stages import Stage

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

#: Whether a table is planned as a whole input; `gpu_windows.testing.harness` gives it in parts.
IS_BOUNDED: ContextVar[bool] = ContextVar("is_bounded", default=True)


class ArrowSource(Source):
    """An Arrow table, or rows that can be read once.

    Parameters
    ----------
    rows : pyarrow.Table or RowStream
        Rows in order of arrival.
    as_declared : bool
        Whether columns are nullable as the table says, not as its rows are.
    """

    def __init__(self, rows: pa.Table | RowStream, *, as_declared: bool = False) -> None:
        self._rows: Any = rows
        self._as_declared = as_declared

    @property
    def _data(self) -> Any:
        """The rows, with logical types."""
        return self._rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.schema.names)}>"

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns; those of a table without nulls are not nullable."""
        schema = self._data.schema
        if self._as_declared or not isinstance(self._data, pa.Table):
            return schema
        columns = zip(schema, self._data.columns, strict=True)
        return pa.schema([f.with_nullable(bool(column.null_count)) for f, column in columns])

    def bind_column(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return the name; Arrow has no column expressions."""
        if not isinstance(column, str):
            rule = "columns of an Arrow table are given by name"
            raise ColumnTypeError(rule, value=type(column).__name__)
        require_column(self.schema, column)
        return self, column

    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with times in microseconds; what is finer is refused."""
        check_time(self.schema, column, role)
        dtype = self.schema.field(column).type
        if types.is_int64(dtype):
            # Neither rows that can be read once nor those on a device are looked at.
            if role == "event time" and isinstance(self._rows, pa.Table):
                warn_of_unit(self._rows.column(column), column)
            return self
        if dtype.unit != "ns":
            return self
        to = pa.timestamp("us", dtype.tz)
        return self._replace_column(column, to, lambda times: to_microseconds(times, column, role))

    def convert_local_time(self, column: str, zone: str) -> Source:
        """Return this source with instants, which are shown in the zone."""
        require_column(self.schema, column)
        field = self.schema.field(column)
        check_local(field)
        to = pa.timestamp(field.type.unit, zone)
        return self._replace_column(column, to, lambda times: instants_of(times, zone))

    def _replace_column(
        self, column: str, dtype: pa.DataType, make: Callable[[Any], Any]
    ) -> Source:
        """Return this source with a column replaced by what ``make`` returns for it."""
        at, field = self.schema.get_field_index(column), pa.field(column, dtype)

        def replace_column(data: pa.Table) -> pa.Table:
            return data.set_column(at, field, make(data.column(at)))

        return ArrowSource(map_tables(self._data, replace_column))

    @property
    def readers(self) -> tuple[object, ...]:
        """Readers of the rows; a table has none."""
        return () if isinstance(self._rows, pa.Table) else self._rows.readers

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        return iter_batches(self._data)

    def without_rows(self) -> Source:
        """Return the columns of this source; nothing is read."""
        if isinstance(self._rows, RowStream):
            return ArrowSource(self._data.without_rows())
        return ArrowSource(self.schema.empty_table(), as_declared=True)

    def add_constant(self, name: str, value: pa.Scalar) -> Source:
        """Return this source with a column that has one value."""
        field = pa.field(name, value.type, nullable=not value.is_valid)
        return self._append_column(field, lambda data: pa.repeat(value, data.num_rows))

    def filter_rows(self, condition: str) -> Source:
        """Return this source with the rows for which a condition is true."""
        require_extra("sqlglot", "sql", "SQL")
        return self.map_rows(lambda data: filter_table(data, condition))

    def project(self, columns: Mapping[str, str]) -> Source:
        """Return this source with some of its columns, by their new names."""
        names = {**columns, **{name: name for name in self.schema.names if name in OWN}}
        return self.map_rows(lambda data: data.select([*names.values()]).rename_columns([*names]))

    def add_columns(self, columns: Mapping[str, str]) -> Source:
        """Return this source with more columns."""
        require_extra("sqlglot", "sql", "SQL")
        return self.map_rows(lambda data: add_columns(data, columns))

    def explode(self, explosion: Explosion) -> Source:
        """Return the rows of the elements of a list or map."""
        return self.map_rows(lambda data: explode_table(data, explosion))

    def look_up(self, table: Source, lookup: Lookup) -> Source:
        """Return the rows with columns of the rows of a table that have their key."""
        if not isinstance(table, ArrowSource):
            rule = "a lookup takes two Arrow tables, or two DataFrames"
            raise UnsupportedQueryError(rule, value=type(table).__name__)
        data = table._data
        other = data if isinstance(data, pa.Table) else pa.Table.from_batches(data, data.schema)
        return self.map_rows(lambda data: look_up(data, other, lookup))

    def check_arrival(self) -> None:
        """Raise `UnsupportedQueryError` but in a test harness, where rows arrive over time."""
        if IS_BOUNDED.get():
            super().check_arrival()

    def map_rows(self, make: Callable[[pa.Table], pa.Table]) -> Source:
        """Return the rows that ``make`` returns; called per batch if rows are read once."""
        return ArrowSource(map_tables(self._data, make), as_declared=self._as_declared)

    def add_last_ticks(self, column: str, name: str) -> Source:
        """Return this source with the last microseconds before the times of a column."""
        field = self.schema.field(column).with_name(name)

        def subtract_tick(data: pa.Table) -> pa.ChunkedArray:
            ticks = data.column(column).cast(pa.int64())
            return pc.subtract(ticks, 1).cast(field.type)

        return self._append_column(field, subtract_tick)

    def _append_column(
        self, field: pa.Field, make: Callable[[pa.Table], pa.Array | pa.ChunkedArray]
    ) -> Source:
        """Return this source with one more column, which ``make`` computes."""
        check_free(self.schema, field.name)
        return self.map_rows(lambda data: data.append_column(field, make(data)))

    def union(self, inputs: Sequence[Input]) -> Source:
        """Return the rows of one table or reader after the other."""
        parts = []
        for each in inputs:
            if not isinstance(each.source, ArrowSource):
                raise QueryError("a union is of inputs of one kind", value=type(each).__name__)
            names = [inputs[0].time if n == each.time else n for n in each.source.schema.names]
            fields = zip(each.source.schema, names, strict=True)
            schema = pa.schema([f.with_name(n).with_nullable(True) for f, n in fields])
            parts.append((each.source._data, schema))
        return ArrowSource(union_rows(parts))

    def tag_sides(self, keys: Sequence[pa.Field], left: InputSide, right: InputSide) -> Source:
        """Return the rows of the left table or reader, then those of the right one.

        Those of a side that is broadcast come first.
        """
        rows = tag_rows(keys, (left, _source_of(left)._data), (right, _source_of(right)._data))
        return ArrowSource(rows, as_declared=isinstance(rows, pa.Table))

    def outputs(self, query: Query) -> Outputs:
        """Plan for the local runner."""
        return ArrowOutputs(plan(query, bounded=IS_BOUNDED.get()), self._data)


def _source_of(side: InputSide) -> ArrowSource:
    if not isinstance(side.source, ArrowSource):
        rule = "an Arrow table is joined with an Arrow table"
        raise QueryError(rule, value=type(side.source).__name__)
    return side.source


class PhysicalSource(ArrowSource):
    """Rows whose columns are converted to logical types when they are read.

    Parameters
    ----------
    rows : pyarrow.Table or RowStream
    clipped : frozenset of str
        Columns of event times, see `gpu_windows.column_types.logical.logical_table`.
    """

    def __init__(self, rows: pa.Table | RowStream, clipped: frozenset[str] = frozenset()) -> None:
        super().__init__(rows)
        self._clipped = clipped

    @cached_property
    def _data(self) -> Any:
        rows, clipped = self._rows, self._clipped
        if isinstance(rows, pa.Table):
            return logical_table(rows, clipped)
        schema = logical_schema(rows.schema)
        return rows.map(
            schema,
            lambda batch: logical_table(pa.Table.from_batches([batch]), clipped).to_batches(),
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns; those of a table without nulls are not nullable."""
        fields = ArrowSource(self._rows).schema
        nullable = [f.with_nullable(f.nullable or hides_nulls(f.type)) for f in fields]
        return logical_schema(pa.schema(nullable))

    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with times in microseconds; what is finer is refused."""
        check_time(self.schema, column, role)
        physical, logical = self._rows.schema.field(column).type, self.schema.field(column).type
        if physical == logical or not types.is_timestamp(physical):
            return super().convert_time(column, role)
        return PhysicalSource(self._rows, self._clipped | {column})


def source_of_arrow(rows: pa.Table | RowStream) -> Source:
    """Return Arrow rows as a source, whose columns have logical types."""
    return ArrowSource(rows) if is_logical(rows.schema) else PhysicalSource(rows)


class ArrowOutputs(Outputs):
    """Outputs of the local runner; the query runs once, when the first is asked for.

    Parameters
    ----------
    planned : Plan
    data : pyarrow.Table or RowStream
        Its rows.
    """

    def __init__(self, planned: Plan, data: pa.Table | RowStream) -> None:
        self.plan = planned
        self.data = data
        self._lock = RLock()  # that of a cached_property of Python 3.11 is for all objects
        self._found: LocalRun | None = None

    @property
    def _run(self) -> LocalRun:
        with self._lock:
            if self._found is None:
                self._found = self._evaluate()
            return self._found

    def _evaluate(self) -> LocalRun:
        """Run the query."""
        return run(self.plan, self.data)

    def result(self) -> Any:
        """Return the results, in order of firing."""
        return self._as_given(self._select(self._results(self._run)))

    def _as_given(self, table: pa.Table) -> Any:
        """Return a table in the form in which the rows were given."""
        return table

    def _select(self, results: pa.Table) -> pa.Table:
        return apply_selections(results, self.selections) if self.selections else results

    @property
    def schema(self) -> pa.Schema:
        """The columns of `result`."""
        return self._no_results().schema

    def _results(self, found: LocalRun) -> pa.Table:
        results, query = without_own(found.results), self.plan.query
        if query.ranking is None:
            return results
        return select_top_results(query.ranking, query.display_keys, query.window_columns, results)

    def _check_selection(self) -> None:
        """Try it on no rows."""
        self._no_results()

    def _no_results(self) -> pa.Table:
        """Return results without a row."""
        plan = self.plan
        sides = {tag: schema.empty_table() for tag, schema in plan.query.side_outputs.items()}
        nothing = with_timestamps(plan, plan.result_schema.empty_table())
        empty = LocalRun(nothing, plan.query.schema.empty_table(), Counters(), sides)
        return self._select(self._results(empty))

    def _write_parquet(self, target: WriteTarget) -> WrittenParquet:
        from gpu_windows.runners.local_writing import write_local

        return write_local(target, self._no_results().schema, self._parts())

    def _parts(self) -> Iterator[tuple[pa.Table, Counters]]:
        """Yield results as they are made, and what is counted; arranged ones come at once."""
        at_once = self.plan.query.ranking is not None or self.is_arranged
        if self._found is None and not at_once:
            for emission in self._emissions():
                table = without_own(with_timestamps(self.plan, emission.results))
                yield self._select(table), emission.counters
        else:
            yield self._select(self._results(self._run)), self._run.counters

    def _emissions(self) -> Iterator[Emission]:
        """Run the query and yield its emissions; none is stored."""
        return emissions(self.plan, input_of(self.plan, self.data), in_order=False)

    def _side(self, tag: str) -> Any:
        """Return the rows of a side output, in the order in which they were given."""
        return self._as_given(without_own(self._run.sides[tag]))

    def rows(self, stage: Stage) -> Source:
        """Return the results as rows."""
        if not IS_BOUNDED.get():
            rule = "a harness runs one query: test each query of a chain in a harness of its own"
            raise QueryError(rule, value=stage.name)
        query, times = self.plan.query, self.plan.query.results_in_time
        results = self._run.results if times.sides else self._results(self._run)
        time = query.display_name(times.name)
        selections = (each.with_columns(time) for each in self.selections)
        return source_of_arrow(apply_selections(with_result_time(results, times), selections))

    def late(self) -> Any:
        """Return no row: a bounded input is complete before a window closes."""
        return self._as_given(self._run.late)

    def rejected(self) -> Any:
        """Return the rows without a usable timestamp, and the reason."""
        return self._as_given(self._run.rejected)

    def metrics(self) -> pa.Table:
        """Return one row of counters."""
        return self._run.metrics
