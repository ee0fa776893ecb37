"""``gw.sql``: Flink's window queries, as queries of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpu_windows.runners.outputs import Frame, Outputs
from gpu_windows.vocabulary.options import Options, change_options

if TYPE_CHECKING:
    from gpu_windows.sql.said import Said

_WHERE = "\nWHERE: rows that it leaves out do not move the watermark, as they do in Flink"


@dataclass(frozen=True)
class SqlQuery:
    """A query in SQL over streams; see `sql`. Every method returns a new one.

    Parameters
    ----------
    text : str
    streams : mapping of str to TimedStream
    order, options_
        See `arrival_order` and `options`.
    """

    text: str
    streams: Mapping[str, Any]
    order: tuple[str, ...] = ()
    options_: Mapping[str, Any] = None  # type: ignore[assignment]

    def arrival_order(self, *columns: str) -> SqlQuery:
        """Name the columns that give the order of arrival, which a shuffle in Spark loses.

        Ignored on an Arrow table, whose order it is.
        """
        return replace(self, order=columns)

    def options(self, **options: Any) -> SqlQuery:
        """Change how the query runs, not what it gives: see `Options`."""
        change_options(Options(), options)
        return replace(self, options_={**(self.options_ or {}), **options})

    def result(self) -> Frame:
        """Return the results: a Spark DataFrame, or an Arrow table.

        Returns
        -------
        pyspark.sql.DataFrame or pyarrow.Table
        """
        with self._with_place():
            return self.outputs().result()

    def outputs(self) -> Outputs:
        """Return results, late and rejected rows, counters and the plan: for `write_stream`, too.

        Raises
        ------
        SqlError
            If the text cannot be read or is not covered, with the place in it.
        """
        return self._outputs

    @cached_property
    def _outputs(self) -> Outputs:
        """The outputs; where queries within run at once, they run once."""
        from gpu_windows.sql.inputs import tables_of

        outputs = self._said(tables_of(self.streams)).value
        assert isinstance(outputs, Outputs)
        return outputs

    def explain(self) -> str:
        """Return the query in Python, by the API, and its plan."""
        with self._with_place():
            said = self._without_rows()
            filters = ".where(" in said.text and said.value.is_streaming
            return f"{said.text}\n\n{said.value.explain()}{_WHERE if filters else ''}"

    @contextmanager
    def _with_place(self) -> Iterator[None]:
        """Raise `SqlError` for what Spark refuses only when it is asked, of the whole statement."""
        from gpu_windows.expressions.places import parsed, placed
        from gpu_windows.spark_glue.columns.expressions import is_of_spark, refuses_as_query

        try:
            yield
        except Exception as error:
            if not is_of_spark(error):
                raise
            with placed(parsed(self.text)), refuses_as_query():
                raise

    def _without_rows(self) -> Said:
        """Return the same of tables without rows, where these are there: nothing is computed."""
        from gpu_windows.sql.inputs import tables_of, without_rows

        return self._said(without_rows(tables_of(self.streams)))

    def _said(self, tables: Mapping[str, Said]) -> Said:
        from gpu_windows.sql.reading import read_statement
        from gpu_windows.sql.results import Settings
        from gpu_windows.sql.translate import translate

        settings = Settings(self.order, self.options_ or {})
        on_arrow = not any(each.value.source.is_of_spark for each in tables.values())
        tree = read_statement(self.text, on_arrow=on_arrow)
        return translate(tree, tables, settings).outputs


def sql(text: str, /, **streams: Any) -> SqlQuery:
    """Ask in Flink's SQL for windows: window functions, OVER, top-N, joins in time.

    ``gw.sql("SELECT origin, window_start, COUNT(*) AS n FROM TUMBLE(TABLE flights, DESCRIPTOR(ts),
    INTERVAL '1' HOUR) GROUP BY origin, window_start, window_end", flights=stream).result()``

    Names, types and nulls are Spark's; what windows, literals and functions mean is Flink's. The
    text becomes calls of this package, which `SqlQuery.explain` shows. Needs the extra ``sql``.

    Parameters
    ----------
    text : str
        One SELECT.
    **streams : TimedStream
        The tables: ``gw.stream(table).event_time(column, watermarks)``, whose column is the time.

    Returns
    -------
    SqlQuery
        Of which ``.result()`` are the results, ``.outputs()`` what `write_stream` takes.

    Raises
    ------
    SqlError
        When it is asked for: if the text cannot be read or is not covered, with the place in it.
    QueryError
        If a table is no stream with a time.
    """
    query = SqlQuery(text, dict(streams), options_={})
    query._without_rows()
    return query
