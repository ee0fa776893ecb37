"""The tables of a statement: streams by name, and what a text may call their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from gpu_windows.datastream.stream import Stream, TimedStream
from gpu_windows.errors import QueryError
from gpu_windows.expressions.columns import Names, names_of
from gpu_windows.expressions.places import placed, refused, written
from gpu_windows.planning.query import NO_TIME
from gpu_windows.sql.kinds import kind_of_type, with_kinds
from gpu_windows.sql.said import Said
from gpu_windows.sql.statement import is_star_of

#: Columns that a window function adds.
WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


_UNNAMED = (
    "the query within shows no time: of windows it is window_time, over frames that of rows, of a "
    "join in time the one that is never less than the other, of an outer one that of its rows"
)


@dataclass(frozen=True)
class Window:
    """Windows that rows are put into.

    Parameters
    ----------
    assigner : Said of WindowAssigner
    partition_by : tuple of str, optional
        The keys of sessions, where they are said.
    columns : mapping of str to str, optional
        What a text may call `WINDOW_COLUMNS`, to these; default: so.
    """

    assigner: Said
    partition_by: tuple[str, ...] | None = None
    columns: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Input:
    """A table of FROM.

    Parameters
    ----------
    alias : str
        What a text may put before its columns.
    stream : Said of TimedStream
    window : Window, optional
        Of a window function around it.
    columns : mapping of str to str, optional
        What a text may call columns of the stream, to these; default: so.
    is_results : bool
        Whether the rows are results of a query within.
    again : Window, optional
        The windows that these results are of, where they may be in the same ones again.
    """

    alias: str
    stream: Said
    window: Window | None = None
    columns: Mapping[str, str] | None = None
    is_results: bool = False
    again: Window | None = None

    @property
    def timed(self) -> TimedStream:
        """The rows."""
        stream = self.stream.value
        assert isinstance(stream, TimedStream)
        return stream

    @property
    def names(self) -> Names:
        """The columns of the table."""
        return names_of(self.timed.source.user_columns if self.columns is None else self.columns)

    @property
    def times(self) -> tuple[str, ...]:
        """What a text may call the time."""
        if self.columns is None:
            return (self.time,)
        return tuple(name for name, column in self.columns.items() if column == self.time)

    @property
    def in_windows_again(self) -> Input:
        """The same; results without a window function in the windows that they are of."""
        return self if self.window is not None else replace(self, window=self.again)

    @property
    def time(self) -> str:
        """The event time column, or `NO_TIME`."""
        return self.timed.time

    def owns(self, column: exp.Column) -> bool:
        """Whether a text means a column of this table, or of its windows."""
        if column.table:
            return column.table.lower() == self.alias.lower()
        return self.names.has(column) or self.window_column(column) is not None

    def window_column(self, node: exp.Expr) -> str | None:
        """Return which of `WINDOW_COLUMNS` a text means, if it means one."""
        if self.window is None or not isinstance(node, exp.Column):
            return None
        if node.table and node.table.lower() != self.alias.lower():
            return None
        name = node.name.lower()
        if self.window.columns is not None:
            called = {each.lower(): kind for each, kind in self.window.columns.items()}
            return called.get(name)
        return None if name not in WINDOW_COLUMNS or self.names.has(node) else name

    @property
    def window_names(self) -> tuple[str, ...]:
        """What a text may call the columns of windows."""
        if self.window is None:
            return ()
        return WINDOW_COLUMNS if self.window.columns is None else tuple(self.window.columns)

    def column(self, column: exp.Column) -> str:
        """Return the name of a column in the stream.

        Raises
        ------
        SqlError
            If there is none.
        """
        if column.table and column.table.lower() != self.alias.lower():
            raise refused(column, f"there is no such table here; there is {self.alias}")
        if len(column.parts) > 2:
            raise refused(column, "a column is named by its table and itself")
        name = self.names.of(column)
        return name if self.columns is None else self.columns[name]

    def is_star(self, node: exp.Expr) -> bool:
        """Whether a text means all columns: ``*``, or ``t.*`` of this table.

        Raises
        ------
        SqlError
            If they are of another table.
        """
        return is_star_of(node, self.alias)

    def text(self, node: exp.Expr) -> str:
        """Return an expression over the columns of the stream, as Spark writes it."""

        def unqualified(each: exp.Expr) -> exp.Expr:
            if not isinstance(each, exp.Column):
                return each
            if self.window_column(each) is not None and not self.names.has(each):
                raise refused(each, "this stands in a result, in GROUP BY and PARTITION BY alone")
            return exp.column(exp.to_identifier(self.column(each), quoted=True))

        check_plain(node)
        return written(with_kinds(node.copy().transform(unqualified), self.kind_of))

    def kind_of(self, column: exp.Column) -> str | None:
        """Return the kind of a column of the stream, if it is known."""
        schema = self.timed.source.schema
        at = schema.get_field_index(column.name)
        return None if at < 0 else kind_of_type(schema.field(at).type)

    def where(self, condition: exp.Expr | None) -> Input:
        """Return it with the rows only for which a condition is true."""
        if condition is None:
            return self
        with placed(condition):
            return replace(self, stream=self.stream.call("where", self.text(condition)))


def check_plain(node: exp.Expr) -> None:
    """Raise `SqlError` if an expression over one row has an aggregate, OVER or a query in it."""
    for kind, rule in (
        (exp.Query, "a query in an expression is not covered: join it"),
        (exp.Window, "OVER stands in the list of SELECT"),
        (exp.AggFunc, "an aggregate stands in the list of SELECT and in HAVING"),
    ):
        found = node.find(kind)
        if found is not None:
            raise refused(found, rule)


class Columns:
    """Names for expressions over an input: those that are no column get one of their own."""

    def __init__(self, of: Input) -> None:
        self._of = of
        self._added: dict[str, str] = {}
        self._nodes: dict[str, exp.Expr] = {}

    def name(self, node: exp.Expr, wanted: str | None = None) -> str:
        """Return the column of an expression; see `added`."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            window = self._of.window_column(node)
            if window is not None:
                raise refused(node, f"{window} is of a result, not of a row")
            return self._of.column(node)
        text = self._of.text(node)
        self._nodes.setdefault(text, node)
        return self.added(text, wanted)

    def added(self, text: str, wanted: str | None = None) -> str:
        """Return the name of a column that is added for a text: the one that is wanted, if free."""
        if text not in self._added:
            names = (*self._of.timed.source.schema.names, *self._added.values(), *WINDOW_COLUMNS)
            taken = {name.lower() for name in names}
            numbered = (f"sql_{i}" for i in range(len(self._added), len(taken) + 1 + len(taken)))
            free = wanted is not None and wanted.lower() not in taken
            self._added[text] = (
                wanted if wanted and free else next(name for name in numbered if name not in taken)
            )
        return self._added[text]

    @property
    def stream(self) -> Said:
        """The rows, with these columns."""
        if not self._added:
            return self._of.stream
        columns = {name: text for text, name in self._added.items()}
        try:
            return self._of.stream.call("with_columns", **columns)
        except QueryError as error:
            node = self._nodes.get(str(error.value))
            if node is None:
                raise
            with placed(node):
                raise


def tables_of(streams: Mapping[str, Any]) -> dict[str, Said]:
    """Return streams by name in lower case, each with a time that it may lack.

    Raises
    ------
    QueryError
        If one is no stream.
    """
    tables: dict[str, Said] = {}
    for name, stream in streams.items():
        if isinstance(stream, Stream):
            stream = stream._without_time
        if not isinstance(stream, TimedStream):
            rule = f"{name} must be a stream with its time: gw.stream(table).event_time(...)"
            raise QueryError(rule, value=type(stream).__name__)
        if name.lower() in tables:
            raise QueryError("tables differ in more than upper and lower case", value=name)
        named = replace(stream, source=stream.source.with_input_name(name))
        tables[name.lower()] = Said(named, name)
    return tables


def without_rows(tables: Mapping[str, Said]) -> dict[str, Said]:
    """Return the same tables, without the rows that are at hand."""
    return {
        name: replace(said, value=replace(said.value, source=said.value.source.without_rows()))
        for name, said in tables.items()
    }


def check_timed(of: Input, node: exp.Expr, column: str | None = None) -> None:
    """Raise `SqlError` unless rows have a time, and this column is it."""
    if of.time == NO_TIME:
        rule = f"{of.alias} needs a time: give it as gw.stream(...).event_time(column, watermarks)"
        raise refused(node, rule)
    if column is not None and column != of.time:
        if of.columns is None:
            raise refused(node, f"the time of {of.alias} is {of.time}, by its event_time")
        named = " or ".join(of.times)
        rule = f"the time of {of.alias} is {named}, of the query within" if named else _UNNAMED
        raise refused(node, rule)
