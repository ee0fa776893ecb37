"""Tables of CREATE TABLE over their rows: checked columns, computed columns, event time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.datastream.stream import Stream
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.errors import QueryError, SqlError
from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.expressions.types import flink_name
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.sql.scripts.definitions import Column, TableDefinition
from gpu_windows.sql.scripts.lexer import Excerpt
from gpu_windows.sql.scripts.options import read_duration
from gpu_windows.sql.syntax.parse import parse_statement
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.vocabulary.options import show_ticks, ticks
from gpu_windows.vocabulary.watermarks import WatermarkStrategy

#: Flink's SQL has the watermark ``max ts - delay``, and its DataStream API is a millisecond behind.
_MILLISECOND = 1_000
_BLANKS = re.compile(r" {6}")
TWO_TIMESTAMPS = "TIMESTAMP has no zone (Spark: TIMESTAMP_NTZ), TIMESTAMP_LTZ is an instant"
_NONE = (
    "a watermark is a column, or a column minus an interval: WATERMARK FOR ts AS ts - INTERVAL "
    "'5' SECOND"
)


def open_table(
    definition: TableDefinition, rows: ApiCall, idle: str | None, *, on_arrow: bool
) -> Input:
    """Return a table with the columns of its definition.

    Parameters
    ----------
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
        rule = "the stream has an event time, which WATERMARK FOR would replace: leave one of both"
        raise definition.watermark.place.error(rule, given.time)
    own = {
        column.name: _find_column(definition, column, given.source.schema)
        for column in definition.columns
        if column.expression is None
    }
    stream = rows
    columns, clocks = dict[str, str](), dict[str, int]()
    for position, column in enumerate(definition.columns):
        if column.expression is None:
            columns[column.name] = own[column.name]
        elif re.sub(r"\s", "", column.expression.text).upper() == "PROCTIME()":
            clocks[column.name] = position
        else:
            node = parse_expression(column.expression, on_arrow=on_arrow)
            with errors_at(node):
                text = _as_input(definition, stream, columns).spark_text(node)
                stream = stream.call("with_columns", **{column.name: text})
            columns[column.name] = column.name
    stream = _with_event_time(definition, stream, columns, idle, on_arrow=on_arrow)
    return replace(
        _as_input(definition, stream, columns),
        processing_times=clocks,
        time_advice="in CREATE TABLE, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
    )


def _as_input(definition: TableDefinition, stream: ApiCall, columns: Mapping[str, str]) -> Input:
    untimed = stream.value
    timed = untimed._without_time if isinstance(untimed, Stream) else untimed
    return Input(definition.name, replace(stream, value=timed), columns=dict(columns))


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


def _find_column(definition: TableDefinition, column: Column, schema: pa.Schema) -> str:
    """Return the column of rows that a column of a table is."""
    found = [str(name) for name in schema.names if name.lower() == column.name.lower()]
    if len(found) != 1:
        rule = f"the rows of {definition.name} have no such column; they have "
        raise column.place.error(rule + ", ".join(schema.names), column.name)
    dtype = schema.field(found[0]).type
    if not is_same_type(dtype, column.dtype):
        rule = f"the rows of {definition.name} have {flink_name(dtype)} here, and "
        rule += f"{flink_name(column.dtype)} is declared"
        if types.is_timestamp(dtype) and types.is_timestamp(column.dtype):
            rule += f": {TWO_TIMESTAMPS}"
        raise column.place.error(rule, column.name)
    return found[0]


def is_same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types have the same values; names of zones and of elements do not matter."""
    return bool(_general_type(one) == _general_type(other))


def _general_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type that stands for all with the same values."""
    if types.is_timestamp(dtype):
        return pa.timestamp("us", None if dtype.tz is None else "UTC")
    if types.is_time(dtype):
        return pa.time64("us")
    if types.is_large_string(dtype):
        return pa.string()
    if types.is_map(dtype):
        return pa.map_(_general_type(dtype.key_type), _general_type(dtype.item_type))
    if types.is_list(dtype) or types.is_large_list(dtype):
        return pa.list_(_general_type(dtype.value_type))
    if types.is_struct(dtype):
        return pa.struct([(field.name, _general_type(field.type)) for field in dtype])
    return dtype


def _with_event_time(
    definition: TableDefinition,
    stream: ApiCall,
    columns: Mapping[str, str],
    idle: str | None,
    *,
    on_arrow: bool,
) -> ApiCall:
    watermark = definition.watermark
    if watermark is None:
        return stream
    place = watermark.place
    column = next((own for own in columns if own.lower() == watermark.column.lower()), None)
    if column is None:
        rule = f"there is no such column; there are {', '.join(columns)}"
        raise place.error(rule, watermark.column)
    dtype = stream.value.source.schema.field(columns[column]).type
    rule_of_time = definition.event_time_error(dtype)
    if rule_of_time is not None:
        raise place.error(rule_of_time, watermark.column)
    node = parse_expression(watermark.expression, on_arrow=on_arrow)
    strategy = _strategy(node, watermark.column)
    if idle is not None and ticks(read_duration(idle)):
        strategy = strategy.call("with_idleness", read_duration(idle)).on_one_line()
    try:
        return stream.call("event_time", columns[column], strategy)
    except QueryError as error:
        if isinstance(error, SqlError) and error.line is not None:
            raise
        raise place.error(error.rule, str(error.value)) from error


def _strategy(node: exp.Expr, column: str) -> ApiCall:
    """Return the watermark strategy of an expression."""
    node = node.unnest()
    if _is_column(node, column):
        return call_api(WatermarkStrategy.for_monotonous_timestamps)
    if not isinstance(node, exp.Sub) or not _is_column(node.this, column):
        raise sql_error(node, _NONE)
    with errors_at(node):
        delay = interval_ticks(node.expression)
        bound = show_ticks(delay - _MILLISECOND if delay >= _MILLISECOND else delay)
        return call_api(WatermarkStrategy.for_bounded_out_of_orderness, bound)


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() == name.lower()
