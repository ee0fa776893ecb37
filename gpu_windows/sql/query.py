"""``gw.sql``: queries in Flink's window SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from gpu_windows.errors import MissingStepError, QueryError, require_extra
from gpu_windows.html_text import table_html, table_text, text_html
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.query_results import ResultTable
from gpu_windows.vocabulary.options import Options, change_options

if TYPE_CHECKING:
    from gpu_windows.sql.api_call import ApiCall

_WHERE = "\nWHERE: rows that it filters out do not advance the watermark, as they do in Flink"


@dataclass(frozen=True)
class SqlQuery:
    """A query in SQL over streams; see `sql`. Immutable: settings return a new query.

    Parameters
    ----------
    text : str
    streams : mapping of str to TimedStream
    order, options_
        See `arrival_order` and `options`.
    functions : mapping of str to callable
        See `sql`.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann", "bob"], "ts": [0, 1, 2]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> query = gw.sql(
    ...     "SELECT user, COUNT(*) AS n "
    ...     "FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
    ...     "GROUP BY user, window_start, window_end",
    ...     clicks=timed,
    ... )
    >>> query.options(device="cpu").result().to_pylist()
    [{'user': 'ann', 'n': 2}, {'user': 'bob', 'n': 1}]
    """

    text: str
    streams: Mapping[str, Any]
    order: tuple[str, ...] = ()
    options_: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def arrival_order(self, *columns: str) -> SqlQuery:
        """Name the columns that define the order of arrival, which a shuffle in Spark loses.

        Ignored on an Arrow table, whose rows are in order of arrival.

        Parameters
        ----------
        *columns : str
            Most significant first.
        """
        return replace(self, order=columns)

    def options(self, **options: Any) -> SqlQuery:
        """Change how the query runs, not what it returns: see `Options`.

        Parameters
        ----------
        **options
            Fields of `Options`, such as ``device="cpu"``.
        """
        change_options(Options(), options)
        return replace(self, options_={**self.options_, **options})

    def result(self) -> ResultTable:
        """Return the results: a Spark DataFrame, or an Arrow table.

        Returns
        -------
        pyspark.sql.DataFrame or pyarrow.Table
        """
        with self._with_position():
            return self.outputs().result()

    def outputs(self) -> Outputs:
        """Return results, late and rejected rows, counters and the plan: for `write_stream`, too.

        Raises
        ------
        SqlError
            If the text cannot be parsed or is not covered, with the position in it.
        """
        return self._outputs

    @cached_property
    def _outputs(self) -> Outputs:
        """The outputs; cached, because subqueries may run while outputs are built."""
        outputs = self._translate().value
        assert isinstance(outputs, Outputs)
        return outputs

    def explain(self) -> str:
        """Return the query as Python code that calls the API, and its plan.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [0]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> text = "SELECT user, COUNT(*) OVER (PARTITION BY user ORDER BY ts) AS n FROM clicks"
        >>> for line in gw.sql(text, clicks=timed).explain().splitlines()[:5]:
        ...     print(line)
        clicks
            .key_by('user')
            .over()
            .with_outputs()
            .aggregate(['user'], n=gw.count().over(gw.Range()))
        """
        with self._with_position():
            traced = self._translate(without_rows=True)
            filters = ".where(" in traced.code and traced.value.is_streaming
            return f"{traced.code}\n\n{traced.value.explain()}{_WHERE if filters else ''}"

    def __repr__(self) -> str:
        """Return the text, and what may come next; nothing is read or computed."""
        kind = type(self)
        calls = [name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))]
        rows = {"query": self.text, "over": ", ".join(self.streams), "next": ", ".join(calls)}
        return table_text(kind.__name__, rows)

    if not TYPE_CHECKING:  # type checkers shall see what the class has, and no more

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `MissingStepError`, an `AttributeError`: it is the result that has rows."""
            if name.startswith("_") or name in dir(type(self)):
                object.__getattribute__(self, name)  # raises what it has raised
            raise MissingStepError(f"call .result() before .{name}", value=type(self).__name__)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text, columns of the results, and `explain`."""
        with self._with_position():
            schema = self._translate(without_rows=True).value.schema
            columns = ", ".join(f"{field.name}: {field.type}" for field in schema)
            rows = {"query": self.text, "over": ", ".join(self.streams), "result": columns}
            return table_html("SqlQuery", rows, text_html(self.explain()))

    @contextmanager
    def _with_position(self) -> Iterator[None]:
        """Convert errors that Spark raises lazily to `SqlError` for the whole statement."""
        from gpu_windows.expressions.sql_text import errors_at, parse_tree
        from gpu_windows.spark_glue.columns.expressions import (
            is_of_spark,
            spark_errors_as_query_errors,
        )

        try:
            yield
        except Exception as error:
            if not is_of_spark(error):
                raise
            with errors_at(parse_tree(self.text)), spark_errors_as_query_errors():
                raise

    def _translate(self, *, without_rows: bool = False) -> ApiCall:
        """Translate the text; ``without_rows``: over no rows, so that nothing is computed."""
        from gpu_windows.sql.syntax.parse import parse_statement
        from gpu_windows.sql.tables.results import Settings
        from gpu_windows.sql.tables.streams import tables_by_name
        from gpu_windows.sql.translate import translate

        tables = tables_by_name(self.streams)
        if without_rows:
            tables = {name: table.without_rows for name, table in tables.items()}
        on_arrow = not any(each.timed_stream.source.is_of_spark for each in tables.values())
        tree = parse_statement(self.text, on_arrow=on_arrow, functions=self.functions)
        return translate(tree, tables, Settings(self.order, self.options_)).outputs


def sql(
    text: str, functions: Mapping[str, Callable[..., Any]] | None = None, /, **streams: Any
) -> SqlQuery:
    """Query streams in Flink's SQL: window functions, OVER, top-N, MATCH_RECOGNIZE, joins in time.

    ``gw.sql("SELECT origin, window_start, COUNT(*) AS n FROM TUMBLE(TABLE flights, DESCRIPTOR(ts),
    INTERVAL '1' HOUR) GROUP BY origin, window_start, window_end", flights=stream).result()``

    Names, types and nulls follow Spark; windows, literals and functions follow Flink. The text is
    translated to calls of this package, which `SqlQuery.explain` shows. Needs the extra ``sql``.

    Parameters
    ----------
    text : str
        One SELECT.
    functions : mapping of str to callable, optional
        Aggregates of your own, by their names in the text: a function from the names of the
        columns of its arguments to an aggregate, such as `gpu_windows.user_aggregate` makes.
    **streams : TimedStream
        The tables by name: ``gw.stream(table).event_time(column, watermarks)``.

    Returns
    -------
    SqlQuery
        Call ``.result()`` for the results, or pass ``.outputs()`` to `write_stream`.

    Raises
    ------
    SqlError
        If the text cannot be parsed or is not covered, with the position in it.
    QueryError
        If a table is not a stream with an event time.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann", "bob"], "ts": [0, 1, 2]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> gw.sql(
    ...     "SELECT user, COUNT(*) AS n "
    ...     "FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
    ...     "GROUP BY user, window_start, window_end",
    ...     clicks=timed,
    ... ).result().to_pylist()
    [{'user': 'ann', 'n': 2}, {'user': 'bob', 'n': 1}]

    With an aggregate of one's own:

    >>> gw.sql(
    ...     "SELECT MIDDLE(ts) AS at FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
    ...     "GROUP BY window_start, window_end",
    ...     {"middle": lambda column: gw.quantile(column, 0.5)},
    ...     clicks=timed,
    ... ).result().to_pylist()
    [{'at': 1.0}]
    """
    require_extra("sqlglot", "sql", "SQL")
    query = SqlQuery(text, dict(streams), functions=check_functions(functions))
    query._translate(without_rows=True)
    return query


def check_functions(functions: Any) -> dict[str, Callable[..., Any]]:
    """Return functions by name.

    Raises
    ------
    QueryError
        If they are no mapping of names to what can be called.
    """
    if functions is None:
        return {}
    rule = "functions are a mapping of names to functions that return an aggregate"
    if not isinstance(functions, Mapping):
        raise QueryError(rule, value=repr(functions))
    for name, function in functions.items():
        if not isinstance(name, str) or not callable(function):
            raise QueryError(rule, value=f"{name!r}: {function!r}")
    return dict(functions)
