"""Rows in windows, before and when a function is applied to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Never, Self

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.user import UserAggregate
from gpu_windows.datastream.columns import (
    bind_aggregates,
    bind_columns,
    check_named,
    named_columns,
    window_columns,
)
from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.steps import R
from gpu_windows.datastream.top import window_top
from gpu_windows.datastream.window_settings import Windowed
from gpu_windows.errors import QueryError
from gpu_windows.functions.declarations import RowsAs, check_function
from gpu_windows.functions.process import Process, ProcessWindowFunction
from gpu_windows.functions.top import Ranking, check_count, check_number, directions
from gpu_windows.functions.vector_window import VectorWindowFunction
from gpu_windows.functions.vectorised import Vectorised
from gpu_windows.functions.window import Aggregates, Collect, Reduce, WindowFunction
from gpu_windows.planning.kinds.grouping import GroupingSets
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.own_columns import NO_KEY
from gpu_windows.planning.validation import check_distinct
from gpu_windows.runners.outputs import KeyedInput, Outputs, Source
from gpu_windows.vocabulary.gap_filling import GapFilling
from gpu_windows.vocabulary.triggers import Row
from gpu_windows.vocabulary.windows import MultiLengthEventTimeWindows

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


@dataclass(frozen=True, kw_only=True)
class WindowedStream(Windowed[R]):
    """Rows in windows, before a function is applied to each.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [1, 2, 4], "ts": [0, 1, 2]}))
    >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> hours = timed.key_by("shop").window(gw.TumblingEventTimeWindows.of("1 hour"))
    >>> hours.aggregate(n=gw.count(), total=gw.sum("amount")).select(["n", "total"]).to_pylist()
    [{'n': 3, 'total': 7}]
    """

    keyed: KeyedInput
    ranking: Ranking | None = None
    changed_only: bool = False
    grouping: GroupingSets | None = None
    gaps: GapFilling | None = None

    def grouping_sets(self, *sets: Sequence[str] | Literal["rollup", "cube"]) -> Self:
        """Compute windows of several groupings of the keys from the same slices (SQL).

        For aggregates of windows that fire once.

        Parameters
        ----------
        *sets : sequence of str, or "rollup" or "cube"
            The keys of each grouping. Alone, ``"rollup"`` is all keys, all but the last, and so on
            to none, and ``"cube"`` is every choice of keys.

        Notes
        -----
        A key that a grouping leaves out is null in its results. The column ``grouping_id`` (BIGINT)
        has a bit for each key, set where the key is left out, as in Spark: that of the last key is
        the lowest.

        Raises
        ------
        QueryError
            If there is no set, one comes twice or names no key.

        Examples
        --------
        >>> import gpu_windows as gw
        >>> import pyarrow as pa
        >>> sales = pa.table({"region": ["n", "s"], "shop": [1, 2], "ts": pa.array([0, 1])})
        >>> windows = (
        ...     gw.stream(sales)
        ...     .event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        ...     .key_by("region", "shop")
        ...     .window(gw.TumblingEventTimeWindows.of("1 hour"))
        ... )
        >>> windows.grouping_sets(["region"], []).aggregate(n=gw.count())["n"].to_pylist()
        [1, 1, 2]
        """
        return replace(self, grouping=GroupingSets.of(self._shown_keys, sets))

    @property
    def _shown_keys(self) -> list[str]:
        if self.keyed.keys == (NO_KEY,):
            raise QueryError("grouping sets are of keys: say key_by", value="window_all")
        return [*map(self.keyed.source.display_name, self.keyed.keys)]

    def changed_keys(self) -> Self:
        """Let a window fire only if a row of its key is in its last slide.

        Else a sliding window fires for a key as long as it holds a row. For sliding windows of
        event time that fire once: features of the keys that changed, each ``slide``.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [0]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> windows = timed.key_by("user").window(gw.SlidingEventTimeWindows.of("3 s", "1 s"))
        >>> changed = windows.changed_keys().aggregate(n=gw.count())
        >>> windows.aggregate(n=gw.count()).num_rows, changed.num_rows
        (3, 1)
        """
        return replace(self, changed_only=True)

    def top_keys(
        self,
        count: int,
        by: str | Sequence[str],
        *,
        descending: bool | Sequence[bool] = True,
        per: str | Sequence[str] = (),
        number: str = "row_number",
    ) -> Self:
        """Keep of every window the keys whose results come first (Flink: window top-N).

        For windows that all keys share, and that fire once: ``.window(a).top_keys(3,
        "n").aggregate(n=gw.count())`` gives the three keys of a window with the most rows. Needs no
        state: what all keys give for a window is there at once, on streams in a micro-batch.

        Parameters
        ----------
        count : int
            How many keys of a window, at least 1.
        by : str or sequence of str
            Results or keys, by their names: numbers, booleans, dates, timestamps, texts. Nulls are
            less than any value, NaN is more than any; of equals lesser keys come first.
        descending : bool or sequence of bool
            Whether the greatest come first; of each column of ``by``, or of all.
        per : str or sequence of str
            Keys or results by which a window is divided into categories, each with its own first
            keys: ``key_by("category", "item")`` and ``per="category"``.
        number : str
            The result column with a key's number in its window, BIGINT, from 1 on.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"page": ["a", "b", "b", "c"], "ts": [0, 1, 2, 3]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> hours = timed.key_by("page").window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> top = hours.top_keys(2, "n").aggregate(n=gw.count())
        >>> top.select(["page", "n", "row_number"]).to_pylist()
        [{'page': 'b', 'n': 2, 'row_number': 1}, {'page': 'a', 'n': 1, 'row_number': 2}]
        """
        names = tuple(by) if isinstance(by, list | tuple) else (by,)
        order = tuple(zip(names, directions(descending, len(names)), strict=True))
        of = tuple(per) if isinstance(per, list | tuple) else (per,)
        ranking = Ranking(check_count(count), order, check_number(number), of)
        return replace(self, ranking=ranking)

    def aggregate(self, *unnamed: Never, **aggregates: Aggregate | UserAggregate) -> R:
        """Aggregate every window incrementally.

        Parameters
        ----------
        **aggregates : Aggregate or UserAggregate
            Result column name to aggregate, such as ``delay=gw.mean("dep_delay")``, or
            ``x=gw.user_aggregate(MyAggregate(), "column")``.
        *unnamed
            Not supported: every result needs a name.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, ``window_start`` and ``window_end`` (TIMESTAMP; null for a global window),
            the aggregates.

        Raises
        ------
        QueryError
            If one has no name, or is no aggregate.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "amount": [1, 4]})).key_by("shop")
        >>> pairs = sales.count_window(2).aggregate(n=gw.count(), total=gw.sum("amount"))
        >>> pairs.column_names
        ['shop', 'window_start', 'window_end', 'n', 'total']
        """
        check_named(unnamed)
        source, function = self._bind(aggregates)
        results = (each.name for each in function.bound)
        check_distinct((*self.keyed.keys, "window_start", "window_end", *results))
        return self._apply(source, function)

    def collect_lists(self, *columns: str | Column) -> R:
        """Collect the rows of every window, in order of arrival: one list per column.

        Nulls stay, so the lists of a window have one length; `gw.collect_list` skips them.

        Parameters
        ----------
        *columns : str or Column

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, ``window_start`` and ``window_end``, and the lists by the columns' names.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "page": ["home", None]}))
        >>> clicks.key_by("user").count_window(2).collect_lists("page")["page"].to_pylist()
        [['home', None]]
        """
        source, names = named_columns(self.keyed.source, columns)
        return self._apply(source, Collect(names))

    def reduce(self, function: Callable[[Row, Row], Row], columns: Sequence[str | Column]) -> R:
        """Reduce the rows of every window, in order of arrival, two at a time, in Python.

        Parameters
        ----------
        function : callable
            ``function(earlier, later)`` takes and returns mappings from column name to value.
        columns : sequence of str or Column
            What it sees and returns.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, ``window_start`` and ``window_end``, the columns.

        Examples
        --------
        >>> def longer(earlier, later):
        ...     return max(earlier, later, key=lambda row: len(row["page"]))
        >>> clicks = gw.stream(pa.table({"user": ["ann"] * 2, "page": ["home", "basket"]})).key_by(
        ...     "user"
        ... )
        >>> clicks.count_window(2).reduce(longer, ["page"])["page"].to_pylist()
        ['basket']
        """
        source, names = named_columns(self.keyed.source, columns)
        return self._apply(source, Reduce(function, names))

    def process(
        self,
        function: ProcessWindowFunction | VectorWindowFunction,
        columns: Sequence[str | Column] | None = None,
        *,
        output: Schema,
        rows: RowsAs = "arrow",
        aggregates: Mapping[str, Aggregate | UserAggregate] | None = None,
        reduce: Callable[[Row, Row], Row] | None = None,
    ) -> R:
        """Give all rows of every window to a function of yours, in Python.

        Parameters
        ----------
        function : ProcessWindowFunction or VectorWindowFunction
            The latter takes many windows at once, as Arrow, and runs beside the kernels.
        columns : sequence of str or Column, optional
            What it sees of the rows; default: all columns except the keys.
        output : pyarrow.Schema, str or StructType
            The columns that it returns, after the keys and the window's bounds; a text is DDL as
            in Spark: ``"total DOUBLE, names ARRAY<STRING>"``.
        rows : {"arrow", "pandas"}
            Whether it sees a pyarrow.Table or a pandas.DataFrame.
        aggregates : mapping of str to Aggregate, optional
            Then it sees one row of these instead, and the rows are not kept.
        reduce : callable, optional
            Then it sees the one row that this makes of ``columns``, as `reduce` does, instead.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs

        Examples
        --------
        >>> class Mean(gw.functions.ProcessWindowFunction):
        ...     def process(self, key, context, rows):
        ...         return [{"mean": rows["price"].mean(), "rows": len(rows)}]
        >>> prices = gw.stream(pa.table({"item": ["tea"] * 2, "price": [3.0, 4.0]})).key_by("item")
        >>> windows = prices.count_window(2).process(
        ...     Mean(), ["price"], output="mean DOUBLE, rows BIGINT", rows="pandas"
        ... )
        >>> windows.select(["mean", "rows"]).to_pylist()
        [{'mean': 3.5, 'rows': 2}]
        """
        schema = read_schema(output)
        if isinstance(function, VectorWindowFunction):
            if aggregates is not None or reduce is not None or rows != "arrow":
                rule = "a VectorWindowFunction takes rows, as Arrow"
                given = "aggregates" if aggregates else rows
                raise QueryError(rule, value=given if reduce is None else "reduce")
            source, names = window_columns(self.keyed.source, columns, self.keyed.keys)
            return self._apply(source, Vectorised(function, names, schema))
        check_function(function, ProcessWindowFunction, VectorWindowFunction)
        if aggregates is not None:
            source, bound = self._bind(aggregates)
            return self._apply(source, Process(function, (), schema, rows, bound, reduce))
        source, names = window_columns(self.keyed.source, columns, self.keyed.keys)
        return self._apply(source, Process(function, names, schema, rows, reduce=reduce))

    def top(
        self,
        count: int,
        by: str | Column | Sequence[str | Column],
        *,
        descending: bool | Sequence[bool] = True,
        columns: Sequence[str | Column] | None = None,
        number: str = "row_number",
    ) -> R:
        """Take the first rows of every window in an order (Flink: window top-N).

        Parameters
        ----------
        count : int
            How many rows of a window, at least 1.
        by : str, Column or sequence of them
            What they are ordered by: numbers, booleans, dates, timestamps, texts. Nulls are less
            than any value, NaN is more than any; of equal rows the one that arrived first is first.
        descending : bool or sequence of bool
            Whether the greatest come first; of each column of ``by``, or of all.
        columns : sequence of str or Column, optional
            The columns of the rows in the results; default: all columns except the keys.
        number : str
            The result column with a row's number in its window, BIGINT, from 1 on.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, ``window_start`` and ``window_end``, ``columns``, ``number``: a row each.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ms": [30, 90, 50]})).key_by("user")
        >>> clicks.count_window(3).top(2, "ms").select(["ms", "row_number"]).to_pylist()
        [{'ms': 90, 'row_number': 1}, {'ms': 50, 'row_number': 2}]
        """
        source, function = window_top(self.keyed, count, by, descending, columns, number)
        check_distinct((*self.keyed.keys, "window_start", "window_end", *function.output.names))
        return self._apply(source, function)

    def _bind(
        self, aggregates: Mapping[str, Aggregate | UserAggregate]
    ) -> tuple[Source, Aggregates]:
        """Return the source with all columns named, and the aggregates bound to their types."""
        assigner = self.assigner
        lengths = assigner.lengths if isinstance(assigner, MultiLengthEventTimeWindows) else ()
        return bind_aggregates(self.keyed.source, aggregates, lengths)

    def _apply(self, source: Source, function: WindowFunction) -> R:
        """Return the results of a function over every window, or all outputs."""
        source, order = bind_columns(source, self.order, "__order")
        query = WindowQuery(
            schema=source.schema,
            time=self.keyed.time,
            watermarks=self.keyed.watermarks,
            keys=self.keyed.keys,
            assigner=self.assigner,
            function=function,
            trigger=self.trigger_,
            evictor=self.evictor_,
            firing_columns=self.firing or self.changes,
            changes=self.changes,
            ranking=self.ranking,
            changed_only=self.changed_only,
            grouping=self.grouping,
            gaps=self.gaps,
            allowed_lateness=self.lateness,
            arrival_order=order,
            options=self.options_,
        )
        return self._end(source.outputs(query))

    if TYPE_CHECKING:

        def with_outputs(self) -> WindowedStream[Outputs]: ...  # noqa: D102 - `LastStep` has it
