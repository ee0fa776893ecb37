"""Results of a query, as its users read and write them: tables, side outputs, explanations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from gpu_windows.commits.write_target import Mode, WriteTarget, WrittenParquet
from gpu_windows.errors import MissingStepError, QueryError
from gpu_windows.html_text import table_html, text_html
from gpu_windows.planning.plan import Plan, explain
from gpu_windows.runners.selection import ArrangesResults, Selection, selected_columns

#: A Spark DataFrame or an Arrow table, whichever the query began with.
ResultTable = Any


class QueryResults(ArrangesResults):
    """Results of one query, which may be selected, arranged and read; see `Outputs`."""

    plan: Plan
    #: Whether `gpu_windows.write_stream` takes them.
    is_streaming = False
    #: What kind of input the query began with, for messages.
    input_kind = "a table"
    #: Selections of the results, applied one after the other.
    selections: tuple[Selection, ...] = ()

    def select(
        self, /, *columns: str | Mapping[str, str], where: str | None = None, **expressions: str
    ) -> Self:
        """Return these outputs with other results: columns, expressions in SQL, a condition.

        ``outputs.select("key", "window_end", share="wins / games", where="games > 10")``. Side
        outputs, late and rejected rows stay as they are.

        Parameters
        ----------
        *columns : str or mapping of str to str
            Names of results that stay as they are; expressions by name, in their place, of which
            one may be called ``where``. Without any column all stay.
        where : str, optional
            A condition in SQL over the results before the selection; others are dropped.
        **expressions : str
            Name of a result to an expression in SQL, such as Spark computes; over Arrow tables
            those that Arrow computes alike (extra ``sql``).

        Raises
        ------
        QueryError
            If a column does not exist, an expression is invalid, or a condition would lose updates
            (for a top of keys it may use keys and number alone).

        Examples
        --------
        >>> games = gw.stream(pa.table({"team": ["a", "a", "b", "b"], "won": [1, 0, 1, 1]}))
        >>> pairs = games.key_by("team").count_window(2).with_outputs()
        >>> outputs = pairs.aggregate(wins=gw.sum("won"), games=gw.count())
        >>> shares = outputs.select("team", share="wins / games", where="wins > 0").result()
        >>> shares.to_pylist()
        [{'team': 'a', 'share': 0.5}, {'team': 'b', 'share': 1.0}]
        """
        projection = selected_columns(columns, expressions)
        unchanged = frozenset(each for each in columns if isinstance(each, str))
        selection = Selection(projection, unchanged, where)
        changed = self._with(selection)
        changed._check_selection()
        if selection.expressions:
            self._check_by_row([*selection.expressions.values()])
        self._check_changes(selection)
        return changed

    def _check_changes(self, selection: Selection) -> None:
        """Refuse selections that would lose updates of rows identified by key and number.

        An update that no longer meets a condition would be dropped, and the row that it replaces
        would stay in the sink: upserts do not carry the row before the update.

        Raises
        ------
        QueryError
            If a condition uses more than keys and number, if another column has the name of the
            change column, or if a stream's selection leaves the change column out.
        """
        query = self.plan.query
        change = query.change_column
        if change is None:
            return
        for name in selection.columns:
            if name.lower() == change.lower() and name not in selection.unchanged:
                rule = "this name is the change column's: choose another one"
                raise QueryError(rule, value=name)
        if self.is_streaming and selection.columns and change not in selection.unchanged:
            rule = f"results that are updated need their change column: select {change}, too"
            raise QueryError(rule, value=", ".join(selection.columns))
        if selection.where is not None and query.is_upserted:
            self._check_identifying(selection.where)

    def _check_identifying(self, where: str) -> None:
        """Raise `QueryError` unless a condition uses only the columns that identify a row."""
        query = self.plan.query
        names = [*query.display_keys, *query.window_columns, *query.number_columns]
        for each in self.selections:
            if each.columns:
                names = [name for name, of in each.columns.items() if of.strip("`") in names]
        columns = ", ".join(names) or "none is left"
        rule = (
            "results that are updated can be filtered by keys and number alone, because an update "
            "does not carry the row it replaces: filter rows before they are numbered; these are "
            f"{columns}"
        )
        if not names:
            raise QueryError(rule, value=where)
        try:
            self._check_among(names, where)
        except QueryError as error:
            raise QueryError(rule, value=where) from error

    def _check_by_row(self, texts: Sequence[str]) -> None:
        """Raise `QueryError` unless expressions are of one result alone."""

    def _check_among(self, names: Sequence[str], where: str) -> None:
        """Raise `QueryError` unless a condition uses these results alone."""
        some = Selection({name: name for name in names}, frozenset(names))
        self._with(some, Selection({}, frozenset(), where))._check_selection()

    @property
    def unchanged_columns(self) -> frozenset[str] | None:
        """The results that no selection leaves out or changes; None if there is no selection."""
        names: frozenset[str] | None = None
        for each in self.selections:
            if each.columns:
                names = each.unchanged if names is None else names & each.unchanged
        return names

    @abstractmethod
    def result(self) -> ResultTable:
        """Return keys, ``window_start``, ``window_end`` and the results."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of `result`, in Arrow's types; nothing is computed.

        Examples
        --------
        >>> users = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
        >>> users.count_window(2).with_outputs().aggregate(n=gw.count()).schema.names
        ['user', 'window_start', 'window_end', 'n']
        """

    def side(self, tag: str) -> ResultTable:
        """Return the rows of a side output: the keys, and what the function declared.

        Parameters
        ----------
        tag : str
            Tag that the function declares in ``side_outputs``.

        Raises
        ------
        QueryError
            If no side output has this tag.

        Examples
        --------
        >>> class Split(gw.functions.KeyedProcessFunction):
        ...     side_outputs = {"large": pa.schema({"amount": pa.int64()})}
        ...
        ...     def process_element(self, row, context):
        ...         if row["amount"] < 10:
        ...             return [row]
        ...         context.output("large", row)
        >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "amount": [5, 50]})).key_by("shop")
        >>> outputs = sales.with_outputs().process(Split(), ["amount"], output="amount BIGINT")
        >>> outputs.side("large").to_pylist()
        [{'shop': 'a', 'amount': 50}]
        """
        sides = self.plan.query.side_outputs
        if tag not in sides:
            rule = f"a side output is one of {', '.join(sides) or 'none'}"
            raise QueryError(rule, value=repr(tag))
        return self._side(tag)

    def _side(self, tag: str) -> ResultTable:
        """Return the rows of a side output."""
        raise NotImplementedError(f"{type(self).__name__} has no side outputs: {tag}")

    @abstractmethod
    def late(self) -> ResultTable:
        """Return the input rows that came after all their windows were closed."""

    @abstractmethod
    def rejected(self) -> ResultTable:
        """Return the input rows with an unusable value, with a column ``rejection_reason``.

        ``null_timestamp``, ``out_of_range_timestamp`` where a window would not fit int64,
        ``future_timestamp`` (`gpu_windows.WatermarkStrategy.guard`), or ``invalid_session_gap``
        (`gpu_windows.EventTimeSessionWindows.with_dynamic_gap`). A time is judged first. The query
        continues without these rows; those with a usable time move the watermark as any.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "ts": [0, None]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> hours = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> outputs = hours.with_outputs().aggregate(n=gw.count())
        >>> outputs.rejected()["rejection_reason"].to_pylist()
        ['null_timestamp']
        """

    @abstractmethod
    def metrics(self) -> ResultTable:
        """Return one row of counters; of streams `gpu_windows.watch` shows them.

        ``rows`` seen; of these ``late``, ``gap`` (between windows), ``null_timestamp``,
        ``out_of_range_timestamp``, ``future_timestamp`` and ``invalid_session_gap`` are in no
        window; ``fired`` windows were emitted.
        ``locally_aggregated`` rows became partials before a shuffle. Calls of kernels:
        ``cpu_batches``, ``cuda_batches``, ``device_fallbacks``. ``user``: a map of the counters of
        user code (`TriggerContext.count`).
        """

    def write_parquet(
        self, path: str | PathLike[str], *, mode: Mode = "error", compression: str | None = None
    ) -> WrittenParquet:
        """Run the query of a bounded input and write its results as Parquet files, all or none.

        On Spark the tasks that make results write them, so that none crosses to Java and back;
        where they cannot, Spark writes, and `explain` says why. The local runner writes results as
        they come. Once all files are written, a record at the path commits them: until then, and
        after a failure, readers see the previous write. Read by `gpu_windows.read_output`, or give
        the returned files to any reader of Parquet.

        Parameters
        ----------
        path : str or os.PathLike
            A folder on a disk that the driver and all executors reach by this path, or a URL
            ``s3a://``, ``gs://`` or ``abfss://``. It is for writes of bounded queries only.
        mode : {"error", "overwrite"}
            How to treat an earlier write. The files of a replaced one stay until the next write,
            for current readers.
        compression : str, optional
            Spark's name: none, snappy, gzip, zstd, brotli, lz4_raw. Default: the session's,
            snappy without Spark.

        Returns
        -------
        WrittenParquet
            Files, rows, bytes and counters.

        Raises
        ------
        OutputError
            If the path has results, or something else; if it cannot be written to, or tasks do not
            reach it; if another write starts meanwhile.
        UnsupportedQueryError
            If the input is a stream: that is for `gpu_windows.write_stream`.
        ColumnTypeError
            Without Spark: if a column has a type that Spark would read as another one.
        InvalidOptionError
            If mode or compression is invalid.

        Examples
        --------
        >>> import tempfile
        >>> import gpu_windows as gw
        >>> import pyarrow as pa
        >>> times = pa.array([1, 2], pa.timestamp("us", "UTC"))
        >>> rows = pa.table({"user": ["ann", "ann"], "ts": times})
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> users = gw.stream(rows).event_time("ts", in_order).key_by("user")
        >>> hours = users.window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> outputs = hours.with_outputs().aggregate(n=gw.count())
        >>> outputs.write_parquet(tempfile.mkdtemp() + "/out").rows
        1
        """
        return self._write_parquet(WriteTarget(path, mode, compression))

    @abstractmethod
    def _write_parquet(self, target: WriteTarget) -> WrittenParquet:
        """Run the query and write its results."""

    if not TYPE_CHECKING:  # for what it has, and no more, type checkers look at the class

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `MissingStepError`, an `AttributeError`: it is the result that has rows."""
            if name.startswith("_") or name in dir(type(self)):
                object.__getattribute__(self, name)  # raises what it has raised
            if self.is_streaming:
                rule = f"outputs of a stream go to gpu_windows.write_stream: they have no .{name}"
            else:
                rule = f"outputs may be several tables: call .result() before .{name}"
            raise MissingStepError(rule, value=type(self).__name__)

    def explain(self) -> str:
        """Return what is computed, how, where and why; expressions by the user's names.

        Examples
        --------
        >>> users = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
        >>> outputs = users.count_window(2).with_outputs().aggregate(n=gw.count())
        >>> print(outputs.explain().splitlines()[0])
        window    global
        """
        text = explain(self.plan)
        for fresh, name in self.plan.query.display_names.items():
            text = text.replace(fresh, name)
        return text

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the plan and the columns of the results; nothing runs."""
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        picture = getattr(getattr(self.plan.query, "assigner", None), "picture", str)()
        kind = "a stream, for gw.write_stream" if self.is_streaming else f"of {self.input_kind}"
        note = f"{picture}{text_html(self.explain())}"
        return table_html(f"Outputs {kind}", {"result": columns}, note)
