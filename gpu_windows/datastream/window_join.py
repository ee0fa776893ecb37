"""The API for two streams: window join and co-group (interval joins: `interval_join`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.definitions import bind
from gpu_windows.datastream.columns import no_aggregate
from gpu_windows.datastream.pairs import Pairs, PairsRows
from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.datastream.two_inputs import (
    PREFIXES,
    Marked,
    MergedInputs,
    Prefixes,
    Selection,
    TwoInputs,
    check_result_names,
    prefix_names,
)
from gpu_windows.datastream.window_settings import Windowed
from gpu_windows.errors import InvalidFunctionError, QueryError, UnsupportedQueryError
from gpu_windows.functions.co_group import (
    CoGroupFunction,
    CollectSides,
    SplitSides,
    VectorCoGroupFunction,
    WindowByWindow,
)
from gpu_windows.functions.declarations import RowsAs, check_function
from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.join_function import WindowPairs
from gpu_windows.functions.two_inputs import HERE, SIDE
from gpu_windows.functions.vectorised import Vectorised
from gpu_windows.functions.window import Aggregates, WindowFunction
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.validation import check_distinct
from gpu_windows.runners.outputs import Outputs
from gpu_windows.vocabulary.windows import WindowAssigner, check_assigner

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


#: Keep the names that users chose for what a side shows apart from others.
_PREFIXES = ("__left_", "__right_")


@dataclass(frozen=True)
class JoinedStreams(LastStep[R]):
    """Two streams that are joined, before their rows are in windows.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"item": ["tea", "tea"], "count": [1, 3]})).key_by("item")
    >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [2.5]})).key_by("item")
    >>> pairs = sales.join(prices).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    >>> pairs.select({"n": "count"}, {"price": "price"}).select(["n", "price"]).to_pylist()
    [{'n': 1, 'price': 2.5}, {'n': 3, 'price': 2.5}]
    """

    both: TwoInputs

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives."""
        return {"window(assigner)": WindowedJoin}

    def window(self, assigner: WindowAssigner) -> WindowedJoin[R]:
        """Put the rows of both streams into windows.

        Parameters
        ----------
        assigner : WindowAssigner
            Such as ``gw.TumblingEventTimeWindows.of("1 hour")``.
        """
        check_assigner(assigner)
        trigger = assigner.default_trigger()
        return self._next(WindowedJoin(both=self.both, assigner=assigner, trigger_=trigger))

    if TYPE_CHECKING:

        def with_outputs(self) -> JoinedStreams[Outputs]: ...  # noqa: D102 - `LastStep` has it


@dataclass(frozen=True)
class CoGroupedStreams(LastStep[R]):
    """Two streams whose rows are grouped together, before they are in windows.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"item": ["tea", "tea"], "count": [1, 3]})).key_by("item")
    >>> returns = gw.stream(pa.table({"item": ["tea"], "count": [1]})).key_by("item")
    >>> both = sales.co_group(returns).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    >>> both.aggregate(left={"sold": gw.sum("count")}, right={"back": gw.sum("count")}).select(
    ...     ["item", "sold", "back"]
    ... ).to_pylist()
    [{'item': 'tea', 'sold': 4, 'back': 1}]
    """

    both: TwoInputs

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives."""
        return {"window(assigner)": WindowedCoGroup}

    def window(self, assigner: WindowAssigner) -> WindowedCoGroup[R]:
        """Put the rows of both streams into windows.

        Parameters
        ----------
        assigner : WindowAssigner
            Such as ``gw.TumblingEventTimeWindows.of("1 hour")``.
        """
        check_assigner(assigner)
        trigger = assigner.default_trigger()
        return self._next(WindowedCoGroup(both=self.both, assigner=assigner, trigger_=trigger))

    if TYPE_CHECKING:

        def with_outputs(self) -> CoGroupedStreams[Outputs]: ...  # noqa: D102 - `LastStep` has it


@dataclass(frozen=True, kw_only=True)
class _WindowedInputs(Windowed[R]):
    """The rows of two streams in windows; a trigger and an evictor see them in one list."""

    both: TwoInputs

    def with_firing_columns(self, *, changes: bool = False) -> Self:
        """Add the columns ``firing`` and ``timing``; see `WindowedStream.with_firing_columns`.

        Parameters
        ----------
        changes : bool
            Not supported here.

        Raises
        ------
        UnsupportedQueryError
            With ``changes``: windows of two streams have several results each.
        """
        if changes:
            rule = "changes are of windows with one result: those of two streams have several"
            raise UnsupportedQueryError(rule, value=self.assigner.describe())
        return super().with_firing_columns()

    def _merge_inputs(
        self, left: Selection | Marked, right: Selection | Marked, prefixes: Prefixes
    ) -> MergedInputs:
        parts: list[Any] = [self.assigner, self.trigger_, *filter(None, [self.evictor_])]
        seen = dict.fromkeys(name for part in parts for name in part.columns)
        keys = {*zip(self.both.left.keys, self.both.right.keys, strict=True)}
        shared = tuple(name for name in seen if (name, name) not in keys)
        return self.both.merge(left, right, prefixes, self.order, shared)

    def _outputs(self, merged: MergedInputs, function: WindowFunction) -> Outputs:
        query = WindowQuery(
            schema=merged.source.schema,
            time=merged.time,
            watermarks=merged.watermarks,
            keys=merged.keys,
            assigner=self.assigner,
            function=function,
            trigger=self.trigger_,
            evictor=self.evictor_,
            firing_columns=self.firing,
            allowed_lateness=self.lateness,
            arrival_order=merged.order,
            carried=(SIDE,),
            options=self.options_,
        )
        if query.needs_time:
            self.both.check_timed()
        return merged.source.outputs(query)


@dataclass(frozen=True, kw_only=True)
class WindowedJoin(_WindowedInputs[R], PairsRows[R]):
    """The rows of two streams in windows, before they are joined.

    Every left row of a key and window is joined with every right row; the results have
    ``window_start`` and ``window_end``.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"item": ["tea", "oil"], "count": [1, 3]})).key_by("item")
    >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [2.5]})).key_by("item")
    >>> pairs = sales.join(prices).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    >>> pairs.select(["count"], how="anti").select(["item", "left_count"]).to_pylist()
    [{'item': 'oil', 'left_count': 3}]
    """

    _process = WindowPairs

    def _with_marks(self) -> tuple[Self, str, str]:
        return replace(self, both=self.both.with_constant(HERE)), HERE, HERE

    def _join_outputs(self, merged: MergedInputs, pairs: Pairs) -> Outputs:
        columns = (SIDE, *merged.left, *merged.right)
        function = WindowJoin(pairs.pair, columns, pairs.output, pairs.process)
        return self._outputs(merged, function)

    if TYPE_CHECKING:

        def with_outputs(self) -> WindowedJoin[Outputs]: ...  # noqa: D102 - `LastStep` has it


@dataclass(frozen=True, kw_only=True)
class WindowedCoGroup(_WindowedInputs[R]):
    """The rows of two streams in windows, before a function takes both sides of each.

    A window fires also where only one side has rows. Null is a key of its own.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"item": ["tea", "oil"], "count": [1, 3]})).key_by("item")
    >>> returns = gw.stream(pa.table({"item": ["tea"], "count": [1]})).key_by("item")
    >>> both = sales.co_group(returns).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    >>> lists = both.collect_lists(["count"], ["count"])
    >>> lists.select(["left_count", "right_count"]).to_pylist()
    [{'left_count': [1], 'right_count': [1]}, {'left_count': [3], 'right_count': []}]
    """

    def aggregate(
        self,
        *,
        left: Mapping[str, Aggregate] | None = None,
        right: Mapping[str, Aggregate] | None = None,
    ) -> R:
        """Aggregate each side of every window: result names to aggregates of its columns.

        A side without rows gives what an aggregate gives over no value: null, or 0.

        Parameters
        ----------
        left, right : mapping of str to Aggregate, optional
            Result name to aggregate over that side's columns.

        Examples
        --------
        >>> ads = gw.stream(pa.table({"user": ["ann", "bob"], "cost": [2, 3]})).key_by("user")
        >>> sales = gw.stream(pa.table({"user": ["ann"], "amount": [9]})).key_by("user")
        >>> both = ads.co_group(sales).window(gw.GlobalWindows.create_with_end_of_stream_trigger())
        >>> sums = both.aggregate(left={"cost": gw.sum("cost")}, right={"sales": gw.count()})
        >>> sums.select(["user", "cost", "sales"]).to_pylist()
        [{'user': 'ann', 'cost': 2, 'sales': 1}, {'user': 'bob', 'cost': 3, 'sales': 0}]
        """
        left_columns, of_left = _columns_of("left", left or {})
        right_columns, of_right = _columns_of("right", right or {})
        check_distinct((*of_left, *of_right))
        counted = replace(self, both=self.both.with_constant(HERE))
        merged = counted._merge_inputs(left_columns, right_columns, PREFIXES)
        bound = {**of_left, **of_right}.items()
        function = Aggregates(tuple(bind(n, each, merged.source.schema) for n, each in bound))
        return self._end(self._outputs(merged, function))

    def collect_lists(
        self, left: Selection = (), right: Selection = (), *, prefixes: Prefixes = PREFIXES
    ) -> R:
        """Collect the rows of both sides of every window: one list per column.

        Parameters
        ----------
        left, right : sequence of str or Column, or mapping
            Columns of each side, which get the side's prefix; a mapping gives their names in the
            result.
        prefixes : (str, str)
            What comes before the names of left and of right columns that are not renamed.
        """
        check_result_names(left, right)
        merged = self._merge_inputs(left, right, prefixes)
        names = (*merged.left, *merged.right)
        fields = (merged.source.schema.field(name) for name in names)
        output = pa.schema([pa.field(field.name, pa.list_(field.type)) for field in fields])
        function = SplitSides(
            CollectSides(merged.left, merged.right), _same(merged.left), _same(merged.right)
        )
        return self._end(self._outputs(merged, Vectorised(function, (SIDE, *names), output)))

    def process(
        self,
        function: CoGroupFunction | VectorCoGroupFunction,
        left: Selection = (),
        right: Selection = (),
        *,
        output: Schema,
        rows: RowsAs = "arrow",
    ) -> R:
        """Give the rows of both sides of every window to a function of yours, in Python.

        Parameters
        ----------
        function : CoGroupFunction or VectorCoGroupFunction
            The latter takes many windows at once, as Arrow.
        left, right : sequence of str or Column, or mapping
            What it sees of each side, by the columns' own names or those of the mapping.
        output : pyarrow.Schema, str or StructType
            The columns that it returns, after the keys and the window's bounds.
        rows : {"arrow", "pandas"}
            What a `CoGroupFunction` sees.
        """
        schema = read_schema(output)
        check_function(function, CoGroupFunction, VectorCoGroupFunction)
        if isinstance(function, CoGroupFunction):
            function = WindowByWindow(function, schema, rows)
        elif rows != "arrow":
            raise QueryError("a VectorCoGroupFunction takes rows as Arrow", value=rows)
        merged = self._merge_inputs(*prefix_names(left, right, _PREFIXES), _PREFIXES)
        own = ({here: name for name, here in side} for side in merged.names_of_sides(_PREFIXES))
        columns = (SIDE, *merged.left, *merged.right)
        vectorised = Vectorised(SplitSides(function, *own), columns, schema)
        return self._end(self._outputs(merged, vectorised))

    if TYPE_CHECKING:

        def with_outputs(self) -> WindowedCoGroup[Outputs]: ...  # noqa: D102 - `LastStep` has it


def _same(names: Sequence[str]) -> dict[str, str]:
    return {name: name for name in names}


def _columns_of(
    side: str, aggregates: Mapping[str, Aggregate]
) -> tuple[dict[str, str | Column], dict[str, Aggregate]]:
    """Return the columns that aggregates of a side need, each once, and the aggregates over these.

    To count rows is to count the values of `HERE`, which is null in the rows of the other side.
    """
    columns: dict[str, str | Column] = {}

    def add(column: str | Column) -> str:
        name = f"{side}_{column}" if isinstance(column, str) else f"__{side}_{len(columns)}"
        columns[name] = column
        return name

    bound: dict[str, Aggregate] = {}
    for name, aggregate in aggregates.items():
        _check_aggregate(name, aggregate)
        column = add(HERE if aggregate.column is None else aggregate.column)
        by = None if aggregate.by is None else add(aggregate.by)
        where = None if aggregate.where is None else add(aggregate.where)
        bound[name] = replace(aggregate, column=column, by=by, where=where)
    return columns, bound


def _check_aggregate(name: str, aggregate: Any) -> None:
    if not isinstance(aggregate, Aggregate):
        raise no_aggregate(name, aggregate)
    if aggregate.function in ("first", "last") and not aggregate.skip_nulls:
        rule = "a side's first and last skip nulls, for rows of the other side are null in it"
        raise InvalidFunctionError(rule, value=f"{name}: say ignore_nulls=True")
