"""The tables of a statement: streams by name, and the names of their columns in the text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.expressions.columns import ColumnNames
from gpu_windows.expressions.sql_text import errors_at, sql_error, to_spark_sql
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.syntax.statement import (
    Item,
    conjunction,
    conjuncts,
    is_processing_time,
    is_star,
)
from gpu_windows.sql.syntax.value_types import apply_type_rules, value_type

#: Columns that a window function adds.
WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
#: Those that make a window.
WINDOW_BOUNDS = WINDOW_COLUMNS[:2]
_PROCESSING_TIME = (
    "PROCTIME() is for lookups, FOR SYSTEM_TIME AS OF it, and the time of windows, OVER and "
    "ROW_NUMBER of streams alone, because a result would depend on when it is computed"
)
_NO_TIME_COLUMN = (
    "the subquery does not select its time: that is window_time of windows, the rows' time of "
    "OVER, the later of both times of an interval join, and the outer side's of an outer join"
)


@dataclass(frozen=True)
class Window:
    """Windows to which rows are assigned.

    Parameters
    ----------
    assigner : ApiCall of WindowAssigner
    partition_by : tuple of str, optional
        The keys of sessions, if PARTITION BY names them.
    columns : mapping of str to str, optional
        Names in the text to `WINDOW_COLUMNS`; default: the same names.
    start : str, optional
        The column of the rows that holds the start of their windows, if ``assigner`` has windows
        with the same ends, but other starts: those of results of HOP and CUMULATE.
    """

    assigner: ApiCall
    partition_by: tuple[str, ...] | None = None
    columns: Mapping[str, str] | None = None
    start: str | None = None

    def over(self, stream: ApiCall, keys: Sequence[str]) -> ApiCall:
        """Return the rows of a stream in these windows, by keys if there are any."""
        if not keys:
            return stream.call("window_all", self.assigner)
        return stream.call("key_by", *keys).call("window", self.assigner)


@dataclass(frozen=True)
class Input:
    """A table of FROM.

    Parameters
    ----------
    alias : str
        The name that may qualify its columns.
    stream : ApiCall of TimedStream
    window : Window, optional
        Of a window function around it.
    columns : mapping of str to str, optional
        Names in the text to columns of the stream; default: the same names.
    is_results : bool
        Whether the rows are results of a subquery.
    result_windows : Window, optional
        The windows of these results, if rows can be grouped by them again.
    window_conditions : tuple of sqlglot.exp.Expr
        Conditions on `WINDOW_COLUMNS` of results, for those who read rows in windows.
    processing_times : mapping of str to int
        Names in the text of columns that are ``PROCTIME()``, which rows do not have, in order, and
        their positions among all columns.
    time_advice : str
        What to write so that the rows have an event time.
    delays : mapping of str to (int, int)
        Other times of a row, and the ticks, at least and at most, by which its event time follows.
    """

    alias: str
    stream: ApiCall
    window: Window | None = None
    columns: Mapping[str, str] | None = None
    is_results: bool = False
    result_windows: Window | None = None
    window_conditions: tuple[exp.Expr, ...] = ()
    processing_times: Mapping[str, int] = field(default_factory=dict)
    time_advice: str = "gw.stream(...).event_time(column, watermarks)"
    delays: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def timed_stream(self) -> TimedStream:
        """The stream of its rows."""
        stream = self.stream.value
        assert isinstance(stream, TimedStream)
        return stream

    @property
    def display_zone(self) -> str | None:
        """The zone in which event times are shown; None if they have none."""
        stream = self.timed_stream
        return None if stream.time == NO_TIME else stream.source.display_zone(stream.time)

    @property
    def is_streaming(self) -> bool:
        """Whether its rows arrive over time, without an end."""
        return self.timed_stream.source.is_streaming

    def is_in_time(self, order: Sequence[exp.Ordered]) -> bool:
        """Whether ORDER BY is by the ascending event time of rows without windows."""
        first, *more = order
        if more or first.args.get("desc") or self.window is not None or self.time == NO_TIME:
            return False
        column, is_default = first.this, bool(first.args.get("nulls_first"))
        return is_default and isinstance(column, exp.Column) and self.column(column) == self.time

    @property
    def without_rows(self) -> Input:
        """The same table without rows, so that nothing is computed."""
        stream = self.timed_stream
        without = replace(stream, source=stream.source.without_rows())
        return replace(self, stream=replace(self.stream, value=without))

    @property
    def names(self) -> ColumnNames:
        """The names of its columns in the text."""
        return ColumnNames(tuple(self.columns_by_name))

    @property
    def columns_by_name(self) -> dict[str, str]:
        """The columns of the stream by their names in the text, in order."""
        if self.columns is not None:
            return dict(self.columns)
        return {name: name for name in self.timed_stream.source.user_columns}

    @property
    def time_names(self) -> tuple[str, ...]:
        """The names of the event time in the text."""
        return tuple(name for name, column in self.columns_by_name.items() if column == self.time)

    @property
    def in_result_windows(self) -> Input:
        """The same table; results without a window function, in their own windows."""
        return self if self.window is not None else replace(self, window=self.result_windows)

    @property
    def time(self) -> str:
        """The event time column, or `NO_TIME`."""
        return self.timed_stream.time

    def owns(self, column: exp.Column) -> bool:
        """Whether a node names a column of this table or of its windows."""
        if column.table:
            return self._has_alias(column)
        return self.names.has(column) or self.window_column(column) is not None

    def _has_alias(self, column: exp.Column) -> bool:
        """Whether a column is written without a table, or with this one."""
        return not column.table or column.table.lower() == self.alias.lower()

    def window_column(self, node: exp.Expr) -> str | None:
        """Return which of `WINDOW_COLUMNS` a node names; None for other nodes."""
        if self.window is None or not isinstance(node, exp.Column) or not self._has_alias(node):
            return None
        name = node.name.lower()
        if self.window.columns is not None:
            columns = {each.lower(): column for each, column in self.window.columns.items()}
            return columns.get(name)
        return None if name not in WINDOW_COLUMNS or self.names.has(node) else name

    def window_bound(self, node: exp.Expr) -> str | None:
        """Return the same as `window_column`, and ``window_start`` for `Window.start`, a column."""
        found = self.window_column(node)
        start = None if self.window is None else self.window.start
        if found is not None or start is None or not isinstance(node, exp.Column):
            return found
        is_start = self.owns(node) and self.column(node) == start
        return WINDOW_COLUMNS[0] if is_start else None

    @property
    def window_names(self) -> tuple[str, ...]:
        """The names of `WINDOW_COLUMNS` in the text."""
        if self.window is None:
            return ()
        return WINDOW_COLUMNS if self.window.columns is None else tuple(self.window.columns)

    def is_processing_time(self, node: exp.Expr) -> bool:
        """Whether a node is ``PROCTIME()``, or a column of this table that is."""
        if not isinstance(node, exp.Column):
            return is_processing_time(node)
        return self._has_alias(node) and node.name.lower() in map(str.lower, self.processing_times)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all columns in the text, those of `window_names` last."""
        names = self.names.names
        return (*names, *(name for name in self.window_names if name not in names))

    def field(self, column: exp.Column) -> exp.Dot | None:
        """Return the field of a ROW, ``owner.address.city``; None for a column."""
        parts = [part.copy() for part in column.parts]
        if len(parts) > 1 and parts[0].name.lower() == self.alias.lower():
            parts = parts[1:]
        first, *fields = exp.column(parts[0]), *parts[1:]
        if not fields or not self.names.has(first):
            return None
        found: exp.Expr = first
        for each in fields:
            found = exp.Dot(this=found, expression=each)
        assert isinstance(found, exp.Dot)
        found.meta.update(column.meta)
        return found

    def with_fields(self, node: exp.Expr) -> exp.Expr:
        """Return an expression in which fields of a ROW are no columns of a table."""
        return map_columns(node, lambda column: self.field(column) or column)

    def column(self, column: exp.Column) -> str:
        """Return the stream's column that a node names.

        Raises
        ------
        SqlError
            If no column has the name.
        """
        if not self._has_alias(column):
            raise sql_error(column, f"there is no such table here; there is {self.alias}")
        if len(column.parts) > 2:
            raise sql_error(column, "a column takes one qualifier, its table")
        if self.is_processing_time(column):
            raise sql_error(column, _PROCESSING_TIME)
        return self.columns_by_name[self.names.resolve(column)]

    def is_star(self, node: exp.Expr) -> bool:
        """Whether a node is ``*``, or ``t.*`` of this table; `SqlError` for another table's."""
        return is_star(node, self.alias)

    def column_result(self, column: exp.Column) -> exp.Column:
        """Return the result that has the column which a node names; see `column`."""
        return result_column(self.display_name(self.column(column)))

    def display_name(self, column: str) -> str:
        """Return what results call a column of the stream."""
        return self.timed_stream.source.display_name(column)

    def expand_star(
        self, items: Iterable[Item], names: Sequence[str] | None = None
    ) -> tuple[Item, ...]:
        """Return a list of SELECT with ``*`` and ``t.*`` expanded, by default to `all_names`."""
        return expand_star(items, self.alias, self.all_names if names is None else names)

    def spark_text(self, node: exp.Expr) -> str:
        """Return an expression as Spark SQL over the columns of the stream."""

        def resolve(each: exp.Column) -> exp.Expr:
            field = self.field(each)
            if field is not None:
                return map_columns(field, resolve)
            if self.window_column(each) is not None and not self.names.has(each):
                rule = (
                    "columns of windows are allowed in results, GROUP BY, PARTITION BY, and in "
                    "conditions without columns of rows"
                )
                raise sql_error(each, rule)
            return result_column(self.column(each))

        check_scalar(node)
        return to_spark_sql(apply_type_rules(map_columns(node, resolve), self.type_of))

    def type_of(self, column: exp.Column) -> str | None:
        """Return the type of a column of the stream; None if it is not known."""
        schema = self.timed_stream.source.schema
        at = schema.get_field_index(column.name)
        return None if at < 0 else value_type(schema.field(at).type)

    def where(self, condition: exp.Expr | None) -> Input:
        """Return it with the rows for which a condition is true.

        Parts of it on columns of windows alone become `window_conditions`.
        """
        parts = conjuncts(condition)
        of_windows = [each for each in parts if self._is_of_windows(each)]
        rows = conjunction([each for each in parts if each not in of_windows])
        conditions = (*self.window_conditions, *map(self._over_windows, of_windows))
        table = replace(self, window_conditions=conditions)
        if rows is None or condition is None:
            return table
        with errors_at(condition):
            return replace(table, stream=self.stream.call("where", self.spark_text(rows)))

    def _is_of_windows(self, condition: exp.Expr) -> bool:
        columns = [self.window_column(each) for each in condition.find_all(exp.Column)]
        return bool(columns) and None not in columns

    def has_window_columns(self, node: exp.Expr) -> bool:
        """Whether an expression names a column of windows."""
        columns = node.find_all(exp.Column)
        return any(self.window_column(column) is not None for column in columns)

    def _over_windows(self, condition: exp.Expr) -> exp.Expr:
        """Return a condition on columns of windows as one on `WINDOW_COLUMNS` of results."""

        def resolve(column: exp.Column) -> exp.Expr:
            bound = self.window_column(column)
            assert bound is not None, "the condition is on columns of windows alone"
            return window_bound(bound)

        check_scalar(condition)
        return map_columns(condition, resolve)


def map_columns(node: exp.Expr, replace_column: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """Return a copy of an expression with its columns replaced."""

    def visit(each: exp.Expr) -> exp.Expr:
        return replace_column(each) if isinstance(each, exp.Column) else each

    found: exp.Expr = node.transform(visit)
    return found


def expand_star(items: Iterable[Item], table: str, names: Sequence[str]) -> tuple[Item, ...]:
    """Return a list of SELECT with ``*``, and ``t.*`` of a table, expanded to names."""
    found: list[Item] = []
    for item in items:
        if is_star(item.node, table):
            found += (Item(result_column(name), None) for name in names)
        else:
            found.append(item)
    return tuple(found)


def free_name(wanted: str, used: Iterable[str], separator: str = "_", first: int = 2) -> str:
    """Return a name that no other has in any case: the wanted one, or it with the first number."""
    others = {name.lower() for name in used}
    numbered = (f"{wanted}{separator}{number}" for number in itertools.count(first))
    return next(n for n in itertools.chain([wanted], numbered) if n.lower() not in others)


def result_column(name: str) -> exp.Column:
    """Return a result column as an expression."""
    return exp.column(exp.to_identifier(name, quoted=True))


def window_bound(column: str) -> exp.Expr:
    """Return a window's start, end or time as an expression over results."""
    if column != "window_time":
        return result_column(column)
    tick = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.Var(this="SECOND"))
    return exp.Sub(this=result_column("window_end"), expression=tick)


def check_scalar(node: exp.Expr) -> None:
    """Raise `SqlError` if an expression over one row contains an aggregate, OVER or a query."""
    for part in node.walk():
        if is_processing_time(part):
            raise sql_error(part, _PROCESSING_TIME)
    for kind, rule in (
        (exp.Query, "a query in an expression is not covered: join it"),
        (exp.Window, "OVER is allowed in the list of SELECT alone"),
        (exp.AggFunc, "an aggregate is allowed in the list of SELECT and in HAVING alone"),
    ):
        found = node.find(kind)
        if found is not None:
            raise sql_error(found, rule)


def check_timed(table: Input, node: exp.Expr, column: str | None = None) -> None:
    """Raise `SqlError` unless the table has an event time, and the column, if given, is it."""
    if table.time == NO_TIME:
        rule = f"{table.alias} needs an event time: {table.time_advice}"
        raise sql_error(node, rule)
    if column is not None and column != table.time:
        if table.columns is None:
            raise sql_error(node, f"the event time of {table.alias} is {table.time}")
        names = " or ".join(table.time_names)
        raise sql_error(
            node, f"the event time of {table.alias} is {names}" if names else _NO_TIME_COLUMN
        )
