"""Rows in windows, before and when a function is applied to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Never, Self

import pyarrow as pa

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.user import UserAggregate
from gpu_windows.datastream.keyed_input import KeyedInput
from gpu_windows.datastream.named import bound, check_named, listed, named_columns
from gpu_windows.datastream.steps import Step
from gpu_windows.datastream.top import top
from gpu_windows.errors import QueryError
from gpu_windows.functions.base import RowsAs, WindowFunction, check_function
from gpu_windows.functions.built_in import Aggregates, Collect, Reduce
from gpu_windows.functions.process import Process, ProcessWindowFunction
from gpu_windows.functions.top import Ranking, check_count, check_number, directions
from gpu_windows.functions.vectorised import Vectorised, VectorWindowFunction
from gpu_windows.planning.kinds.grouping import GroupingSets, check_no_columns
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.query import NO_KEY
from gpu_windows.planning.validation import check_distinct
from gpu_windows.runners.outputs import Frame, Outputs, Source
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.options import Duration, Options, change_options, ticks
from gpu_windows.vocabulary.triggers import Row, Trigger
from gpu_windows.vocabulary.windows import MultiLengthEventTimeWindows, WindowAssigner

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


@dataclass(frozen=True, kw_only=True)
class Windowed(Step):
    """What is said of windows, over one input or two. Every method returns a new one."""

    assigner: WindowAssigner
    trigger_: Trigger
    evictor_: Evictor | None = None
    lateness: int = 0
    firing: bool = False
    order: tuple[str | Column, ...] = ()
    options_: Options = Options()  # noqa: RUF009 - frozen

    def trigger(self, trigger: Trigger) -> Self:
        """Say when a window fires; default: at its end (a global window: never)."""
        if not isinstance(trigger, Trigger):
            rule = "trigger takes a Trigger, such as gw.CountTrigger.of(100)"
            raise QueryError(rule, value=repr(trigger))
        return replace(self, trigger_=trigger)

    def evictor(self, evictor: Evictor) -> Self:
        """Drop rows of a window before or after its function is called."""
        if not isinstance(evictor, Evictor):
            rule = "evictor takes an Evictor, such as gw.CountEvictor.of(100)"
            raise QueryError(rule, value=repr(evictor))
        return replace(self, evictor_=evictor)

    def with_firing_columns(self) -> Self:
        """Add the columns ``firing`` and ``timing`` to the results, for those who upsert.

        ``firing`` counts the firings of a key and window from 0; ``timing`` is ``early``,
        ``on_time`` or ``late``.
        """
        return replace(self, firing=True)

    def allowed_lateness(self, lateness: Duration) -> Self:
        """Keep windows for late rows after they fired; each late row fires its window again."""
        return replace(self, lateness=ticks(lateness))

    def arrival_order(self, *columns: str | Column) -> Self:
        """Name the columns that give the order of arrival, which a shuffle in Spark loses.

        Ignored on an Arrow table, whose order is its order of arrival.
        """
        return replace(self, order=columns)

    def options(self, **options: Any) -> Self:
        """Change how the query runs, not what it gives: see `Options`."""
        return replace(self, options_=change_options(self.options_, options))


@dataclass(frozen=True, kw_only=True)
class WindowedStream(Windowed):
    """Rows in windows, before a function is applied to each."""

    keyed: KeyedInput
    changes: bool = False
    ranking: Ranking | None = None
    changed_only: bool = False
    grouping: GroupingSets | None = None

    def with_changes(self) -> Self:
        """Add ``change`` and the firing columns: results are changes of a table, a row a window.

        ``insert``, or ``update_after``, which replaces the row before it. A session that grew or
        merged after it had fired has other bounds: before its next result a ``delete`` names each
        row that goes, by keys and bounds alone. A function of yours gives one row, or none.
        """
        return replace(self, changes=True)

    def grouping_sets(self, *sets: Sequence[str]) -> Self:
        """Have windows of several groupings of the keys, from the same slices (SQL).

        ``key_by("region", "shop").window(...).grouping_sets(["region", "shop"], ["region"], [])``.
        A key that a grouping leaves out is null in its results; the column ``grouping_id`` (BIGINT)
        tells which are, as in Spark: a bit a key, that of the last key least. For aggregates of
        windows that fire once.
        """
        return replace(self, grouping=GroupingSets.of(self._shown_keys, sets))

    def rollup(self, *columns: Never) -> Self:
        """Have `grouping_sets` of all keys, of all but the last, and so on to none.

        It takes no columns: ``key_by("region", "shop").window(...).rollup()``.
        """
        check_no_columns("rollup", columns)
        return replace(self, grouping=GroupingSets.rollup(self._shown_keys))

    def cube(self, *columns: Never) -> Self:
        """Have `grouping_sets` of every choice of keys; it takes no columns, as `rollup`."""
        check_no_columns("cube", columns)
        return replace(self, grouping=GroupingSets.cube(self._shown_keys))

    @property
    def _shown_keys(self) -> list[str]:
        if self.keyed.keys == (NO_KEY,):
            raise QueryError("grouping sets are of keys: say key_by", value="window_all")
        return [*map(self.keyed.source.public_name, self.keyed.keys)]

    def changed_keys(self) -> Self:
        """Have a window fire only if a row of its key is in its last slide.

        Else a sliding window fires for a key as long as it holds a row. For sliding windows of
        event time that fire once: features of the keys that changed, each ``slide``.
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
        """
        names = tuple(by) if isinstance(by, list | tuple) else (by,)
        order = tuple(zip(names, directions(descending, len(names)), strict=True))
        of = tuple(per) if isinstance(per, list | tuple) else (per,)
        ranking = Ranking(check_count(count), order, check_number(number), of)
        return replace(self, ranking=ranking)

    def aggregate(self, *unnamed: Never, **aggregates: Aggregate | UserAggregate) -> Frame:
        """Aggregate every window incrementally.

        Parameters
        ----------
        **aggregates : Aggregate or UserAggregate
            Result column name to aggregate, such as ``delay=gw.mean("dep_delay")``, or
            ``x=gw.user_aggregate(MyAggregate(), "column")``.

        Returns
        -------
        pyspark.sql.DataFrame or pyarrow.Table
            The keys, ``window_start`` and ``window_end`` (TIMESTAMP; null for a global window),
            the aggregates.

        Raises
        ------
        QueryError
            If one has no name, or is no aggregate.
        """
        check_named(unnamed)
        return self.outputs(**aggregates).result()

    def collect(self, *columns: str | Column) -> Frame:
        """Collect the rows of every window, in order of arrival: one list per column."""
        return self.outputs(Collect(listed(columns))).result()

    def reduce(self, function: Callable[[Row, Row], Row], columns: Sequence[str | Column]) -> Frame:
        """Reduce the rows of every window, in order of arrival, two at a time, in Python.

        Parameters
        ----------
        function : callable
            ``function(earlier, later)`` takes and returns mappings from column name to value.
        columns : sequence of str or Column
            What it sees and returns.
        """
        return self.outputs(Reduce(function, listed(columns))).result()

    def process(
        self,
        function: ProcessWindowFunction | VectorWindowFunction,
        columns: Sequence[str | Column] = (),
        *,
        output: pa.Schema,
        rows: RowsAs = "arrow",
        aggregates: Mapping[str, Aggregate | UserAggregate] | None = None,
        reduce: Callable[[Row, Row], Row] | None = None,
    ) -> Frame:
        """Give all rows of every window to a function of yours, in Python.

        Parameters
        ----------
        function : ProcessWindowFunction or VectorWindowFunction
            The latter takes many windows at once, as Arrow, and runs beside the kernels.
        columns : sequence of str or Column
            What it sees of the rows.
        output : pyarrow.Schema
            The columns that it returns, after the keys and the window's bounds.
        rows : {"arrow", "pandas"}
            Whether it sees a pyarrow.Table or a pandas.DataFrame.
        aggregates : mapping of str to Aggregate, optional
            Then it sees one row of these instead, and the rows are not kept.
        reduce : callable, optional
            Then it sees the one row that this makes of ``columns``, as `reduce` does, instead.
        """
        return self.processed(
            function, columns, output=output, rows=rows, aggregates=aggregates, reduce=reduce
        ).result()

    def processed(
        self,
        function: ProcessWindowFunction | VectorWindowFunction,
        columns: Sequence[str | Column] = (),
        *,
        output: pa.Schema,
        rows: RowsAs = "arrow",
        aggregates: Mapping[str, Aggregate | UserAggregate] | None = None,
        reduce: Callable[[Row, Row], Row] | None = None,
    ) -> Outputs:
        """Return all outputs of `process`, side outputs too."""
        if isinstance(function, VectorWindowFunction):
            if aggregates is not None or reduce is not None or rows != "arrow":
                rule = "a VectorWindowFunction takes rows, as Arrow"
                given = "aggregates" if aggregates else rows
                raise QueryError(rule, value=given if reduce is None else "reduce")
            return self.outputs(Vectorised(function, listed(columns), output))
        check_function(function, ProcessWindowFunction, VectorWindowFunction)
        if aggregates is None:
            process = Process(function, listed(columns), output, rows, reduce=reduce)
            return self.outputs(process)
        source, bound = self._bound(aggregates)
        return self._outputs(source, Process(function, (), output, rows, bound, reduce))

    def top(
        self,
        count: int,
        by: str | Column | Sequence[str | Column],
        *,
        descending: bool | Sequence[bool] = True,
        columns: Sequence[str | Column] | None = None,
        number: str = "row_number",
    ) -> Frame:
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
            What of the rows stands in the results; default: all columns besides the keys.
        number : str
            The result column with a row's number in its window, BIGINT, from 1 on.

        Returns
        -------
        pyspark.sql.DataFrame or pyarrow.Table
            The keys, ``window_start`` and ``window_end``, ``columns``, ``number``: a row each.
        """
        return self.topped(
            count, by, descending=descending, columns=columns, number=number
        ).result()

    def topped(
        self,
        count: int,
        by: str | Column | Sequence[str | Column],
        *,
        descending: bool | Sequence[bool] = True,
        columns: Sequence[str | Column] | None = None,
        number: str = "row_number",
    ) -> Outputs:
        """Return all outputs of `top`."""
        source, keys = self.keyed.source, self.keyed.keys
        if columns is None:
            columns = [name for name in source.user_columns if name not in keys]
        source, carried = self._named(columns, source)
        source, order = self._named(by if isinstance(by, list | tuple) else (by,), source)
        function = top(source, count, carried, order, descending, number)
        check_distinct((*keys, "window_start", "window_end", *function.output.names))
        return self._outputs(source, function)

    def outputs(
        self,
        function: Collect | Reduce | Process | Vectorised | None = None,
        /,
        **aggregates: Aggregate | UserAggregate,
    ) -> Outputs:
        """Return results, late and rejected rows, counters and the plan.

        Of ``aggregates``, as `aggregate` takes them, or of a function, of `gpu_windows.typing`:
        ``Collect(("a",))``, ``Reduce(f, ("a",))``, ``Process(...)`` or ``Vectorised(...)``.
        """
        if function is None:
            source, made = self._bound(aggregates)
            results = (each.name for each in made.bound)
            check_distinct((*self.keyed.keys, "window_start", "window_end", *results))
            return self._outputs(source, made)
        if aggregates or not isinstance(function, Collect | Reduce | Process | Vectorised):
            rule = "outputs takes aggregates by name, or a Collect, Reduce, Process or Vectorised"
            raise QueryError(rule, value=type(function).__name__)
        source, names = self._named(function.columns)
        return self._outputs(source, replace(function, columns=names))

    def explain(self, **aggregates: Aggregate | UserAggregate) -> str:
        """Return what `aggregate` would compute, how, where and why."""
        return self.outputs(**aggregates).explain()

    def _bound(
        self, aggregates: Mapping[str, Aggregate | UserAggregate]
    ) -> tuple[Source, Aggregates]:
        """Return the source with all columns named, and the aggregates bound to their types."""
        assigner = self.assigner
        lengths = assigner.lengths if isinstance(assigner, MultiLengthEventTimeWindows) else ()
        return bound(self.keyed.source, aggregates, lengths)

    def _named(
        self, columns: Sequence[str | Column], source: Source | None = None
    ) -> tuple[Source, tuple[str, ...]]:
        return named_columns(source or self.keyed.source, columns)

    def _outputs(self, source: Source, function: WindowFunction) -> Outputs:
        order = []
        for i, column in enumerate(self.order):
            source, name = source.name(column, f"__order_{i}")
            order.append(name)
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
            allowed_lateness=self.lateness,
            arrival_order=tuple(order),
            options=self.options_,
        )
        return source.outputs(query)


def check_assigner(assigner: object) -> None:
    """Raise `QueryError` unless this is a window assigner."""
    if not isinstance(assigner, WindowAssigner):
        rule = "window takes a window assigner, such as TumblingEventTimeWindows.of('1 minute')"
        raise QueryError(rule, value=repr(assigner))
