"""Tables of CREATE TABLE over their rows: checked columns, computed columns, event time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

import gpu_windows.vocabulary.watermarks as watermarks
from gpu_windows.datastream.stream import Stream
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.errors import QueryError, SqlError
from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.expressions.type_names import flink_name
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.sql.scripts.definitions import Column, TableDefinition
from gpu_windows.sql.scripts.lexer import Excerpt, error_at
from gpu_windows.sql.scripts.options import read_duration
from gpu_windows.sql.syntax.parse import parse_statement
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.vocabulary.options import show_ticks, ticks

#: Flink's SQL has the watermark ``max ts - delay``, and its DataStream API is a millisecond behind.
_MILLISECOND = 1_000
_BLANKS = re.compile(r" {6}")
_NONE = (
    "a watermark is a column, or a column minus an interval: WATERMARK FOR ts AS ts - INTERVAL "
    "'5' SECOND"
)


def open_table(
    script: str, definition: TableDefinition, rows: ApiCall, idle: str | None, *, on_arrow: bool
) -> Input:
    """Return a table with the columns of its definition.

    Parameters
    ----------
    script : str
        The whole text, for positions.
    definition : TableDefinition
    rows : ApiCall of Stream or TimedStream
        With at least the columns that are not computed.
    idle : str, optional
        How long rows may be missing until they do not hold the watermark.
    on_arrow : bool
        Whether expressions are computed over Arrow tables.

    Raises
    ------
    SqlError
        If rows lack a column, or have it in another type; if an expression is not covered.
    """
    given = rows.value
    if definition.watermark is not None and isinstance(given, TimedStream):
        place = definition.watermark.place
        rule = "the stream has an event time, which WATERMARK FOR would replace: leave one of both"
        raise error_at(script, place.start, rule, given.time)
    for column in definition.columns:
        _check_column(script, definition, column, given.source.schema)
    stream, columns = rows, {}
    for column in definition.columns:
        if column.expression is None:
            columns[column.name] = _name_in(given.source.schema, column.name)
        elif not _is_processing_time(column.expression):
            stream = _add_computed(definition, column, stream, columns, on_arrow=on_arrow)
            columns[column.name] = column.name
    stream = _with_event_time(script, definition, stream, columns, idle, on_arrow=on_arrow)
    if isinstance(stream.value, Stream):
        stream = replace(stream, value=stream.value._without_time)
    clocks = {
        column.name: position
        for position, column in enumerate(definition.columns)
        if column.expression is not None and _is_processing_time(column.expression)
    }
    return Input(
        definition.name,
        stream,
        columns=columns,
        processing_times=clocks,
        time_advice="in CREATE TABLE, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
    )


def parse_expression(excerpt: Excerpt, *, on_arrow: bool) -> exp.Expr:
    """Parse an expression of a script, with Flink's meaning.

    Raises
    ------
    SqlError
        With its position in the script.
    """
    text = excerpt.in_place
    place = _BLANKS.search(text, 0, excerpt.start)
    assert place is not None, "an expression follows a keyword"
    text = f"{text[: place.start()]}SELECT{text[place.end() :]}"
    tree = parse_statement(text, on_arrow=on_arrow)
    items = tree.expressions if isinstance(tree, exp.Select) else ()
    if len(items) != 1 or isinstance(items[0], exp.Alias | exp.Star):
        raise sql_error(tree, "one expression is expected here")
    found = items[0]
    assert isinstance(found, exp.Expr)
    return found


def _check_column(
    script: str, definition: TableDefinition, column: Column, schema: pa.Schema
) -> None:
    if column.dtype is None:
        return
    found = [name for name in schema.names if name.lower() == column.name.lower()]
    if len(found) != 1:
        rule = f"the rows of {definition.name} have no such column; they have "
        raise error_at(script, column.place.start, rule + ", ".join(schema.names), column.name)
    dtype = schema.field(found[0]).type
    if not is_same_type(dtype, column.dtype):
        rule = f"the rows of {definition.name} have {flink_name(dtype)} here, and "
        rule += f"{flink_name(column.dtype)} is declared"
        if pa.types.is_timestamp(dtype) and pa.types.is_timestamp(column.dtype):
            rule += ": TIMESTAMP has no zone (Spark: TIMESTAMP_NTZ), TIMESTAMP_LTZ is an instant"
        raise error_at(script, column.place.start, rule, column.name)


def is_same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types have the same values; names of zones and of elements do not matter."""
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return (one.tz is None) == (other.tz is None)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return is_same_type(one.key_type, other.key_type) and is_same_type(
            one.item_type, other.item_type
        )
    if _is_list(one) and _is_list(other):
        return is_same_type(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return [f.name for f in one] == [f.name for f in other] and all(
            is_same_type(a.type, b.type) for a, b in zip(one, other, strict=True)
        )
    texts, times = (pa.types.is_string, pa.types.is_large_string), (pa.types.is_time,)
    alike = any(is_(one) for is_ in texts) and any(is_(other) for is_ in texts)
    return alike or one == other or all(is_(each) for is_ in times for each in (one, other))


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))


def _name_in(schema: pa.Schema, name: str) -> str:
    return next(str(each) for each in schema.names if each.lower() == name.lower())


def _is_processing_time(expression: Excerpt) -> bool:
    return re.sub(r"\s", "", expression.text).upper() == "PROCTIME()"


def _add_computed(
    definition: TableDefinition, column: Column, stream: ApiCall, columns: Any, *, on_arrow: bool
) -> ApiCall:
    assert column.expression is not None
    node = parse_expression(column.expression, on_arrow=on_arrow)
    with errors_at(node):
        untimed = stream.value
        timed = untimed._without_time if isinstance(untimed, Stream) else untimed
        rows = Input(definition.name, replace(stream, value=timed), columns=dict(columns))
        return stream.call("with_columns", **{column.name: rows.spark_text(node)})


def _with_event_time(
    script: str,
    definition: TableDefinition,
    stream: ApiCall,
    columns: Any,
    idle: str | None,
    *,
    on_arrow: bool,
) -> ApiCall:
    watermark = definition.watermark
    if watermark is None:
        return stream
    names = {name.lower(): column for name, column in columns.items()}
    if watermark.column.lower() not in names:
        rule = f"there is no such column; there are {', '.join(columns)}"
        raise error_at(script, watermark.place.start, rule, watermark.column)
    dtype = stream.value.source.schema.field(names[watermark.column.lower()]).type
    rule_of_time = definition.event_time_error(dtype)
    if rule_of_time is not None:
        raise error_at(script, watermark.place.start, rule_of_time, watermark.column)
    node = parse_expression(watermark.expression, on_arrow=on_arrow)
    strategy = _strategy(node, watermark.column)
    if idle is not None and ticks(read_duration(idle)):
        strategy = strategy.call("with_idleness", read_duration(idle)).on_one_line()
    try:
        return stream.call("event_time", names[watermark.column.lower()], strategy)
    except QueryError as error:
        if isinstance(error, SqlError) and error.line is not None:
            raise
        place = watermark.place
        raise error_at(script, place.start, error.rule, str(error.value)) from error


def _strategy(node: exp.Expr, column: str) -> ApiCall:
    """Return the watermark strategy of an expression."""
    while isinstance(node, exp.Paren):
        node = node.this
    if _is_column(node, column):
        return call_api(
            "gw.WatermarkStrategy.for_monotonous_timestamps",
            watermarks.WatermarkStrategy.for_monotonous_timestamps,
        )
    if not isinstance(node, exp.Sub) or not _is_column(node.this, column):
        raise sql_error(node, _NONE)
    with errors_at(node):
        delay = interval_ticks(node.expression)
        bound = show_ticks(delay - _MILLISECOND if delay >= _MILLISECOND else delay)
        return call_api(
            "gw.WatermarkStrategy.for_bounded_out_of_orderness",
            watermarks.WatermarkStrategy.for_bounded_out_of_orderness,
            bound,
        )


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() == name.lower()
