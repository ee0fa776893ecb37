"""``gw.sql_script``: scripts of Flink SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpu_windows.errors import QueryError, require_extra
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.query_results import ResultTable
from gpu_windows.sql.query import check_functions
from gpu_windows.vocabulary.options import Options, change_options

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession, StreamingQuery
    from gpu_windows.sql.scripts.catalog import Catalog, Task
    from gpu_windows.sql.scripts.run import ScriptRun


@dataclass(frozen=True)
class SqlScript:
    """A script of Flink SQL; see `sql_script`. Immutable: settings return a new script.

    Parameters
    ----------
    text : str
    streams : mapping of str to Stream
        Rows of tables, by name; other tables are read by their connectors.
    session : SparkSession, optional
        See `on_spark`.
    streaming : bool, optional
        See `on_spark`.
    options_ : mapping
        See `options`.
    functions : mapping of str to callable
        See `gpu_windows.sql`.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann", "bob"], "ms": [0, 1, 2]}))
    >>> script = gw.sql_script(
    ...     \"\"\"
    ...     CREATE TABLE clicks (
    ...         `user` STRING, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3),
    ...         WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ...     ) WITH ('connector' = 'kafka', 'topic' = 'clicks');
    ...     CREATE TABLE hours (`user` STRING, n BIGINT) WITH ('connector' = 'print');
    ...     INSERT INTO hours
    ...     SELECT `user`, COUNT(*) FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)
    ...     GROUP BY `user`, window_start, window_end;
    ...     \"\"\",
    ...     clicks=clicks,
    ... )
    >>> script.targets
    ('hours',)
    """

    text: str = field(repr=False)  # it may have passwords
    streams: Mapping[str, Any]
    session: Any = None
    streaming: bool | None = None
    options_: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def on_spark(self, session: SparkSession, *, streaming: bool | None = None) -> SqlScript:
        """Read tables by their connectors on Spark.

        Parameters
        ----------
        session : SparkSession
        streaming : bool, optional
            Whether they are streams. Default: as ``SET 'execution.runtime-mode'`` says, else
            whether a connector is one of streams alone, such as ``kafka``.
        """
        return replace(self, session=session, streaming=streaming)

    def options(self, **options: Any) -> SqlScript:
        """Change how queries run, not what they return: see `Options`.

        Parameters
        ----------
        **options
            Fields of `Options`, such as ``device="cpu"``.
        """
        change_options(Options(), options)
        return replace(self, options_={**self.options_, **options})

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of results: the tables of INSERT, and ``result`` of a SELECT that stands alone."""
        return _names(self._catalog.tasks)

    @property
    def inserts(self) -> tuple[str, ...]:
        """The `targets` that are tables of INSERT."""
        return _names(self._catalog.inserts)

    def outputs(self) -> dict[str, Outputs]:
        """Return the outputs of all queries, by `targets`.

        Raises
        ------
        SqlError
            If a statement is not covered, with the position in the text.
        QueryError
            If a table has neither a stream nor a connector that can be read here.
        """
        return self._run.outputs()

    def results(self) -> dict[str, ResultTable]:
        """Return the results of all queries over bounded tables, by `targets`.

        Returns
        -------
        dict of str to pyspark.sql.DataFrame or pyarrow.Table

        Examples
        --------
        >>> rows = gw.stream(pa.table({"user": ["ann", "bob"], "n": [1, 5]}))
        >>> text = \"\"\"
        ... CREATE TABLE scores (`user` STRING, n BIGINT) WITH ('connector' = 'datagen');
        ... SELECT `user`, n * 2 AS twice FROM scores WHERE n > 1
        ... \"\"\"
        >>> gw.sql_script(text, scores=rows).results()["result"].to_pylist()
        [{'user': 'bob', 'twice': 10}]
        """
        outputs = self.outputs()
        with self._run.errors_of_rows():
            return {name: each.result() for name, each in outputs.items()}

    def explain(self) -> str:
        """Return each query as Python code that calls the API, its plan, and what options do."""
        return self._run.explain()

    def write(self, sinks: Mapping[str, str | PathLike[str]] | None = None) -> dict[str, Any]:
        """Write results of bounded tables to the tables of INSERT.

        Parameters
        ----------
        sinks : mapping of str to path, optional
            Paths of Parquet in the place of connectors, by target.

        Returns
        -------
        dict of str to WrittenParquet
            What was written to paths.

        Raises
        ------
        QueryError
            If a table has a connector that a bounded query cannot write to.
        """
        return self._run.write(sinks or {})

    def write_stream(
        self,
        checkpoint: str | PathLike[str],
        *,
        sinks: Mapping[str, Any] | None = None,
        trigger: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> StreamingQuery:
        """Start all INSERT statements as one streaming query.

        A table that several of them read is read once, and one commit has the state and results of
        all: see `gpu_windows.write_stream`.

        Parameters
        ----------
        checkpoint : str or os.PathLike
        sinks : mapping of str to (str, os.PathLike, Sink or callable), optional
            In the place of connectors, by target.
        trigger, name
            See `gpu_windows.write_stream`. Default: ``pipeline.name`` of SET.
        """
        return self._run.write_stream(checkpoint, sinks or {}, trigger, name)

    @cached_property
    def _catalog(self) -> Catalog:
        from gpu_windows.sql.scripts.catalog import read_catalog
        from gpu_windows.sql.scripts.statements import read_statements

        return read_catalog(read_statements(self.text))

    @cached_property
    def _run(self) -> ScriptRun:
        from gpu_windows.sql.scripts.run import ScriptRun
        from gpu_windows.sql.tables.results import Settings

        settings = Settings(options=self.options_)
        return ScriptRun(
            self._catalog, self.streams, settings, self.session, self.streaming, self.functions
        )


def _names(tasks: Iterable[Task]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task.name for task in tasks))


def sql_script(
    text: str, functions: Mapping[str, Callable[..., Any]] | None = None, /, **streams: Any
) -> SqlScript:
    """Read a script of Flink SQL: tables, views, and INSERT statements that run together.

    CREATE TABLE with computed and metadata columns and WATERMARK, CREATE VIEW, INSERT INTO, EXECUTE
    STATEMENT SET, SET, EXPLAIN and SELECT. A table is a stream that is given by its name, or read
    by its connector. See docs/sql.md for what is covered. Needs the extra ``sql``.

    Parameters
    ----------
    text : str
        Statements, each followed by ``;``.
    functions : mapping of str to callable, optional
        Aggregates of your own, which CREATE FUNCTION may name: see `gpu_windows.sql`.
    **streams : Stream
        Rows of tables by name: ``gw.stream(rows)``. The script has their event time and computed
        columns. A name that has no CREATE TABLE is a table of its own, with its event time.

    Returns
    -------
    SqlScript
        ``.results()`` of bounded tables, ``.write_stream(checkpoint)`` of streams.

    Raises
    ------
    SqlError
        If a statement cannot be read, with its position. What queries say is checked before they
        run.
    QueryError
        If a stream is none.

    Examples
    --------
    >>> rows = gw.stream(pa.table({"user": ["ann", "bob", "ann"], "n": [1, 5, 3]}))
    >>> text = \"\"\"
    ... CREATE TABLE scores (`user` STRING, n BIGINT) WITH ('connector' = 'datagen');
    ... CREATE VIEW large AS SELECT * FROM scores WHERE n > 2;
    ... SELECT `user`, n FROM large
    ... \"\"\"
    >>> gw.sql_script(text, scores=rows).results()["result"].to_pydict()
    {'user': ['bob', 'ann'], 'n': [5, 3]}
    """
    require_extra("sqlglot", "sql", "SQL")
    from gpu_windows.datastream.stream import Stream
    from gpu_windows.datastream.timed_stream import TimedStream

    if not isinstance(text, str):
        raise QueryError("a script is a string", value=repr(text))
    for name, stream in streams.items():
        if not isinstance(stream, Stream | TimedStream):
            rule = f"{name} must be a stream: gw.stream(rows)"
            raise QueryError(rule, value=type(stream).__name__)
    script = SqlScript(text, dict(streams), functions=check_functions(functions))
    _ = script.targets
    return script
