"""Results of INSERT as the columns of its target: order, names and types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.types import flink_name
from gpu_windows.sql.scripts.catalog import InsertTask
from gpu_windows.sql.scripts.definitions import Column, TableDefinition
from gpu_windows.sql.scripts.row_errors import fail_where
from gpu_windows.sql.scripts.tables import is_same_type, parse_expression
from gpu_windows.sql.tables.inputs import result_column
from gpu_windows.sql.tables.results import Results

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_SQL_NAMES = {
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP_LTZ",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}


def as_target(task: InsertTask, results: Results, *, on_arrow: bool) -> Results:
    """Return results with the names and types of the columns of a task's target.

    Results that change keep their column with the kind of change beside these.

    Raises
    ------
    SqlError
        If columns differ in number, or one is of a type that Flink does not convert.
    """
    insert, target = task.insert, task.target
    if not target.columns:  # CREATE TABLE ... AS
        return results
    schema: pa.Schema = results.outputs.value.schema
    constants = {name.lower() for name in insert.partition}
    given = [each for each in _columns(task) if each.name.lower() not in constants]
    names = [name for name in results.names if name != results.change]
    if len(given) != len(names):
        columns = ", ".join(each.name for each in given)
        rule = f"the query gives {len(names)} columns, and {target.name} takes {columns}"
        raise insert.place.error(rule, ", ".join(names))
    items: dict[str, exp.Expr] = {}
    for column, name in zip(given, names, strict=True):
        items[column.name] = _convert(task, column, schema.field(name).type, result_column(name))
    items |= _constants(task, results, on_arrow=on_arrow)
    for column in target.written_columns:
        if column.name not in items:
            if not _may_be_null(target, column):
                rule = f"column {column.name} of {target.name} is NOT NULL, and gets no value"
                raise insert.place.error(rule, column.name)
            items[column.name] = exp.cast(exp.Null(), _sql_type(task, column))
    ordered = {each.name: items[each.name] for each in target.written_columns}
    return results.select(ordered, _without_nulls(target, ordered))


def _may_be_null(target: TableDefinition, column: Column) -> bool:
    keys = {name.lower() for name in target.primary_key}
    return column.is_nullable and column.name.lower() not in keys


def _without_nulls(target: TableDefinition, items: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """Return a condition that is an error for a null in a column that is NOT NULL, as in Flink."""
    branches = []
    for column in target.written_columns:
        if not _may_be_null(target, column):
            why = "is in the PRIMARY KEY" if column.is_nullable else "is NOT NULL"
            rule = (
                f"column {column.name} {why}: leave rows without a value out, WHERE ... IS NOT "
                "NULL, or give them one, COALESCE"
            )
            is_null = exp.Is(this=items[column.name].copy(), expression=exp.Null())
            branches.append(fail_where(is_null, target.name, rule))
    return exp.Case(ifs=branches, default=exp.true()) if branches else None


def _constants(task: InsertTask, results: Results, *, on_arrow: bool) -> dict[str, exp.Expr]:
    """Return the values of PARTITION, in the types of their columns."""
    columns = {each.name.lower(): each for each in task.target.written_columns}
    found = {}
    for name, text in task.insert.partition.items():
        column = columns[name.lower()]
        node = parse_expression(text, on_arrow=on_arrow)
        one: pa.Schema = results.select({column.name: node}).outputs.value.schema
        found[column.name] = _convert(task, column, one.field(column.name).type, node)
    return found


def _columns(task: InsertTask) -> list[Column]:
    """Return the columns that the query gives, in its order."""
    insert, target = task.insert, task.target
    by_name = {each.name.lower(): each for each in target.written_columns}
    names = [*insert.columns, *insert.partition]
    for index, name in enumerate(names):
        if name.lower() not in by_name:
            raise insert.place.error(f"{target.name} has no such column to write", name)
        if name.lower() in (each.lower() for each in names[:index]) and insert.columns:
            raise insert.place.error("a column is given once", name)
    return [by_name[name.lower()] for name in insert.columns or by_name]


def _convert(task: InsertTask, column: Column, dtype: pa.DataType, node: exp.Expr) -> exp.Expr:
    wanted = column.dtype
    if is_same_type(dtype, wanted):
        return node
    if types.is_null(dtype) or _is_converted(dtype, wanted):
        return exp.cast(node, _sql_type(task, column))
    rule = f"column {column.name} is {flink_name(wanted)}, and the query gives {flink_name(dtype)}"
    raise task.insert.place.error(f"{rule}: CAST it", column.name)


def _is_converted(dtype: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values are written as another type, without CAST.

    A number has an equal one, the nearest float, or is rounded to the digits of a decimal; one that
    does not fit is an error when it is written. Flink narrows no integers, but its SUM of INT is
    INT. An instant is what clocks of the session's zone show.
    """
    if types.is_timestamp(dtype) and types.is_timestamp(wanted):
        return True
    if dtype in _INTEGERS:
        is_number = wanted in _INTEGERS or types.is_decimal(wanted) or types.is_floating(wanted)
        return bool(is_number)
    if types.is_decimal(dtype):
        return bool(types.is_decimal(wanted) or types.is_floating(wanted))
    return bool(dtype == pa.float32() and wanted == pa.float64())


def _sql_type(task: InsertTask, column: Column) -> str:
    dtype = column.dtype
    if types.is_decimal(dtype):
        return flink_name(dtype)
    if dtype not in _SQL_NAMES:
        rule = f"a column of {flink_name(dtype)} needs a value from the query"
        raise task.insert.place.error(rule, column.name)
    return _SQL_NAMES[dtype]
