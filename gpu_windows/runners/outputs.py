"""Base classes of sources and outputs; each runner has its own of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from gpu_windows.errors import MissingStepError, QueryError, UnsupportedQueryError
from gpu_windows.functions.two_inputs import HERE
from gpu_windows.planning.explain import explain
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.query import OWN, Query
from gpu_windows.runners.arrangement import ArrangesResults
from gpu_windows.runners.explosion import Explosion
from gpu_windows.runners.lookup import Lookup
from gpu_windows.runners.selection import Selection, check_selection, selected_columns
from gpu_windows.runners.stages import Stage
from gpu_windows.runners.writes_parquet import WritesParquet
from gpu_windows.vocabulary.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

#: A Spark DataFrame or an Arrow table, whichever the query began with.
ResultTable = Any


class Outputs(WritesParquet, ArrangesResults):
    """The outputs of one query.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "ann", "bob"]})).key_by("user")
    >>> outputs = users.count_window(2).with_outputs().aggregate(n=gw.count())
    >>> outputs.result().select(["user", "n"]).to_pylist()
    [{'user': 'ann', 'n': 2}]
    >>> outputs.late().num_rows, outputs.metrics()["rows"].to_pylist()
    (0, [3])
    """

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
        changed = self._with(Selection(projection, unchanged, where))
        changed._check_selection()
        check_selection(self, changed.selections[-1])
        return changed

    def _with(self, *selections: Selection) -> Self:
        changed = copy(self)
        changed.selections = (*self.selections, *selections)
        return changed

    @abstractmethod
    def _check_selection(self) -> None:
        """Raise `QueryError` unless the last selection is one of these results."""

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

    #: Makes the same outputs, with the time of each result among its columns, where they lack it.
    in_time: Callable[[], Outputs] | None = None

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

    @abstractmethod
    def rows(self, stage: Stage) -> Source:
        """Return the results as the rows of another query, as they were selected, and their time.

        Parameters
        ----------
        stage : Stage
            What this query is called there.
        """

    @property
    def stages_before(self) -> int:
        """Number of earlier stages whose results this query reads."""
        return 0

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


@dataclass(frozen=True)
class UnionInput:
    """One of the inputs of a union.

    Parameters
    ----------
    source : Source
    time : str
        Its event time column.
    watermarks : WatermarkStrategy
    """

    source: Source
    time: str
    watermarks: WatermarkStrategy


@dataclass(frozen=True)
class InputSide:
    """One of two inputs that are joined.

    Parameters
    ----------
    source : Source
    time : str
        Its event time column.
    watermarks : WatermarkStrategy
    keys : tuple of str or None
        Its key columns, in order; None where it has none, and its rows null: it is broadcast.
    columns : dict of str to str
        What is taken of it: names in the result to its columns.
    """

    source: Source
    time: str
    watermarks: WatermarkStrategy
    keys: tuple[str | None, ...]
    columns: Mapping[str, str]

    @property
    def is_broadcast(self) -> bool:
        """Whether its rows go to every shard, before those of the other side."""
        return None in self.keys

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Its columns that are used, each once."""
        keys = (name for name in self.keys if name is not None)
        return tuple(dict.fromkeys((*keys, self.time, *self.columns.values())))

    @property
    def carrier(self) -> str | None:
        """Its column of watermarks, if one carries them."""
        column = self.watermarks.column
        return None if column is None else str(column)

    @property
    def marker_columns(self) -> tuple[str, ...]:
        """Columns that are all null in a row that only carries a watermark."""
        carrier = None if self.carrier == self.time else self.carrier
        return tuple(n for n in self.used_columns if n not in (carrier, HERE))


class Source(ABC):
    """Where rows come from."""

    #: Whether Spark computes expressions over rows; it has more of them than Arrow.
    is_of_spark = False
    #: Whether rows arrive over time, without an end.
    is_streaming = False

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""

    @property
    def user_columns(self) -> tuple[str, ...]:
        """Names of the columns that the user's rows came with."""
        return tuple(name for name in self.schema.names if name not in OWN)

    @abstractmethod
    def bind_column(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return this source with the column in it, and the column's name.

        An expression gets its own name (its alias), or ``fallback`` where one is given.
        """

    def with_input_name(self, name: str) -> Source:
        """Return this source with a name for its input, if it has one input without a name.

        Names tell the inputs of a streaming query apart when it starts again.
        """
        del name
        return self

    def with_shared_rows(self) -> Source:
        """Return a source whose rows are read once by all queries that run as one."""
        return self

    @abstractmethod
    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with a column of times in microseconds.

        ``role``: what the column is, for messages.
        """

    @abstractmethod
    def add_last_ticks(self, column: str, name: str) -> Source:
        """Return this source with a column of the last ticks before the times of another.

        Raises
        ------
        NameClashError
            If there is a column of this name.
        """

    @abstractmethod
    def convert_local_time(self, column: str, zone: str) -> Source:
        """Return this source with instants in place of times without a zone.

        See `gpu_windows.column_types.local_times.instants_of`.

        Raises
        ------
        ColumnTypeError
            If the column has no such times.
        """

    @abstractmethod
    def filter_rows(self, condition: str) -> Source:
        """Return this source with only the rows for which a condition in SQL is true.

        Raises
        ------
        QueryError
            If it is not a condition over these columns.
        """

    @abstractmethod
    def add_columns(self, columns: Mapping[str, str]) -> Source:
        """Return this source with more columns, or others of these names: expressions in SQL.

        Raises
        ------
        QueryError
            If one is not an expression over the columns of this source.
        """

    @abstractmethod
    def project(self, columns: Mapping[str, str]) -> Source:
        """Return this source with some of its columns, by their new names, and internal ones.

        Parameters
        ----------
        columns : mapping of str to str
            New names to columns that exist.
        """

    @abstractmethod
    def explode(self, explosion: Explosion) -> Source:
        """Return the rows of the elements of a list or map.

        Raises
        ------
        QueryError
            See `Explosion.check`.
        UnsupportedQueryError
            If rows are those of an earlier stage of a stream.
        """

    @abstractmethod
    def look_up(self, table: Source, lookup: Lookup) -> Source:
        """Return the rows with columns of the rows of a table that have their key.

        Raises
        ------
        QueryError
            See `Lookup.check`.
        UnsupportedQueryError
            If rows are those of an earlier stage of a stream, or the table is a stream.
        """

    @abstractmethod
    def add_constant(self, name: str, value: pa.Scalar) -> Source:
        """Return this source with an internal column that has one value, or is null.

        Raises
        ------
        NameClashError
            If there is a column of this name.
        """

    @property
    def readers(self) -> tuple[object, ...]:
        """Readers that the rows come from, each of which can be read once."""
        return ()

    def without_rows(self) -> Source:
        """Return the same columns without rows; sources that have no rows yet return themselves."""
        return self

    def add_spread(self, name: str, column: str) -> Source:
        """Return this source with an internal column that spreads rows over shards.

        Rows with equal values in ``column`` get the same value, out of a few thousand; all rows get
        one value where there are no shards.
        """
        del column
        return self.add_constant(name, pa.scalar(0, pa.int64()))

    def check_arrival(self) -> None:
        """Raise `UnsupportedQueryError` unless rows arrive over time."""
        rule = "the time of arrival has no meaning on a bounded input: all rows arrive at once"
        raise UnsupportedQueryError(rule)

    def add_arrival_time(self) -> tuple[Source, str]:
        """Return this source with the time of arrival in it, and that column's name.

        Raises
        ------
        UnsupportedQueryError
            Unless rows arrive over time.
        """
        self.check_arrival()
        raise AssertionError("where rows arrive over time there is a time of arrival")

    @abstractmethod
    def union(self, inputs: Sequence[UnionInput]) -> Source:
        """Return the rows of several sources with the columns of the first, which is this one.

        Raises
        ------
        QueryError
            If columns differ in name or type.
        """

    def display_name(self, column: str) -> str:
        """Return what the user calls a column."""
        return column

    @abstractmethod
    def tag_sides(self, keys: Sequence[pa.Field], left: InputSide, right: InputSide) -> Source:
        """Return the rows of two inputs with `SIDE`, ``keys``, `TIME` and the columns of both.

        Keys have the common type of both sides. In a row the columns of the other side are null.

        Raises
        ------
        QueryError
            If one is a stream, and the other is not.
        """

    @abstractmethod
    def outputs(self, query: Query) -> Outputs:
        """Plan a query over this source."""
