"""The API: Flink's names in Python dress, on Spark DataFrames and Arrow tables.

Builders are immutable: every method returns a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.datastream.event_times import with_time
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.datastream.keyed_input import KeyedInput
from gpu_windows.datastream.select import project
from gpu_windows.datastream.sources import source_of
from gpu_windows.datastream.unkeyed import UnkeyedStream
from gpu_windows.datastream.window_rows import with_windows
from gpu_windows.errors import ColumnNotFoundError, QueryError
from gpu_windows.planning.kinds.firing_columns import FIRING
from gpu_windows.planning.kinds.window import WINDOW_END
from gpu_windows.planning.query import NO_TIME
from gpu_windows.planning.result_times import WINDOW_TIME
from gpu_windows.planning.validation import check_distinct, check_reserved
from gpu_windows.runners.arrow_input import GivesArrow
from gpu_windows.runners.explosion import Explosion
from gpu_windows.runners.lookup import Lookup
from gpu_windows.runners.outputs import Outputs, Source, UnionInput
from gpu_windows.vocabulary.watermarks import (
    ClockWatermarks,
    UnionWatermarks,
    WatermarkStrategy,
    check_union_watermarks,
)
from gpu_windows.vocabulary.windows import WindowAssigner

if TYPE_CHECKING:
    from gpu_windows.annotations import Column, DataFrame


def stream(
    source: DataFrame | pa.Table | pa.RecordBatchReader | GivesArrow, *, name: str | None = None
) -> Stream:
    """Begin a query.

    Parameters
    ----------
    source : pyspark.sql.DataFrame, pyarrow.Table, pyarrow.RecordBatchReader or another table
        Arrow input is run by the local runner, without Spark; the answer is the same. So are tables
        that give Arrow (``__arrow_c_stream__``), such as those of pandas, Polars and DuckDB, which
        become Arrow tables: ``polars.from_arrow(result)`` is the way back. A DataFrame of cuDF
        gives one again; where kernels of a device fold all that is asked for, its rows stay there.
        A reader is read once, by one query: for a second query stream its table.
    name : str, optional
        What the input is called among those of a query, such as ``"clicks"``. A streaming query
        that starts again in which inputs have changed places is refused by it.

    Raises
    ------
    QueryError
        If it is something else, or has columns of names that are used inside gpu_windows, or the
        name is empty or no text.

    Examples
    --------
    >>> import gpu_windows as gw
    >>> import pyarrow as pa
    >>> clicks = gw.stream(pa.table({"user": ["ann"]}), name="clicks")
    """
    if name is None:
        return _begin(source_of(source))
    given: object = name
    if not isinstance(given, str) or not given.strip():
        raise QueryError("the name of an input is a text that is not empty", value=repr(given))
    return _begin(source_of(source).with_input_name(name))


def _begin(source: Source) -> Stream:
    check_reserved(source.schema.names)
    return Stream(source)


def _check_columns(source: Source, columns: Mapping[str, str]) -> None:
    """Refuse names of more columns that are ours, or clash with others."""
    check_reserved(columns)
    others = (name for name in source.schema.names if name not in columns)
    check_distinct((*others, *columns), "columns have different names")


@dataclass(frozen=True)
class Stream(UnkeyedStream):
    """Rows, before they have a time; count windows and global ones do without.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "bob", "ann"]}))
    >>> isinstance(clicks, gw.typing.Stream)
    True
    >>> clicks.key_by("user").count_window(2).aggregate(n=gw.count())["user"].to_pylist()
    ['ann']
    """

    source: Source

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives."""
        timed = "event_time(column, watermarks)"
        of_timed = TimedStream._later().items()
        return {timed: TimedStream, **{f"{timed}.{call}": step for call, step in of_timed}}

    def with_columns(self, /, **columns: str) -> Stream:
        """Give every row more columns, or others of the same names: an event time, for example.

        See `TimedStream.with_columns`.

        Parameters
        ----------
        **columns : str
            Name to expression in SQL over the columns before.

        Examples
        --------
        Event times finer than a microsecond are refused; these are rounded down:

        >>> import gpu_windows as gw
        >>> import pyarrow as pa
        >>> clicks = pa.table({"ts": pa.array([1_999]).cast(pa.timestamp("ns", "UTC"))})
        >>> in_time = gw.stream(clicks).with_columns(ts="CAST(ts AS TIMESTAMP)")
        """
        _check_columns(self.source, columns)
        return Stream(self.source.add_columns(columns))

    def where(self, condition: str) -> Stream:
        """Take the rows only for which a condition is true.

        Parameters
        ----------
        condition : str
            In SQL, over the columns; see `TimedStream.where`.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [5, 50, 90]}))
        >>> pairs = sales.where("amount > 10").key_by("shop").count_window(2)
        >>> pairs.aggregate(amount=gw.sum("amount"))["amount"].to_pylist()
        [140]
        """
        return Stream(self.source.filter_rows(condition))

    def project(self, /, *columns: str | Mapping[str, str], **renamed: str) -> Stream:
        """Take some columns of the rows alone, some under new names; see `TimedStream.project`.

        Parameters
        ----------
        *columns : str or mapping of str to str
            Names of columns; new names to columns, in their place.
        **renamed : str
            New name to a column.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann"], "page": [1], "agent": ["x"]}))
        >>> clicks.project("page", who="user").select().result().to_pylist()
        [{'page': 1, 'who': 'ann'}]
        """
        return Stream(project(self.source, columns, renamed)[0])

    def union(self, *others: Stream) -> Stream:
        """Take the rows of several inputs together: all have the same columns.

        To give each input watermarks of its own, give each an event time before; the union of
        `TimedStream` has the least of them.

        Parameters
        ----------
        *others : Stream
            Inputs of the same kind, with the same columns.

        Raises
        ------
        QueryError
            If columns differ, or an input is of another kind.

        Examples
        --------
        >>> web = gw.stream(pa.table({"user": ["ann"]}))
        >>> web.union(gw.stream(pa.table({"user": ["bob"]}))).select().result()["user"].to_pylist()
        ['ann', 'bob']
        """
        for each in others:
            if not isinstance(each, Stream):
                rule = "the union of streams without a time takes others without one"
                raise QueryError(rule, value=type(each).__name__)
        no_watermarks = WatermarkStrategy.no_watermarks()
        inputs = [UnionInput(each.source, NO_TIME, no_watermarks) for each in (self, *others)]
        return Stream(self.source.union(inputs))

    def event_time(
        self,
        column: str | Column,
        watermarks: WatermarkStrategy,
        *,
        time_zone: str | None = None,
    ) -> TimedStream:
        """Say when rows happened.

        Parameters
        ----------
        column : str or Column
            TIMESTAMP; TIMESTAMP_NTZ, whose windows are of the times that clocks show, and results
            have no zone either, as in Flink; in an Arrow table int64 microseconds since the epoch,
            too. Rows where it is null are counted and kept apart, unless no part of the query needs
            a time.
        watermarks : WatermarkStrategy
            How long to wait for rows that come late. A bounded input is waited for to the end.
        time_zone : str, optional
            Makes instants of TIMESTAMP_NTZ: where the clocks were that show it, such as
            ``"Europe/Zurich"``. A time that they show twice is the first of both instants, and one
            that they leave out is as much later as they go forward: so does Spark cast them.

        Raises
        ------
        QueryError
            If a column is not there, its type is no time, or has a zone besides ``time_zone``; if
            times without a zone are to be compared with a clock.
        PrecisionError
            If a time of an Arrow table is no whole microsecond.

        Examples
        --------
        >>> import datetime as dt
        >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [dt.datetime(2026, 3, 1, 12)]}))
        >>> strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
        >>> timed = clicks.event_time("ts", strategy, time_zone="Europe/Zurich")
        >>> hours = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> str(hours.aggregate(n=gw.count())["window_start"][0])
        '2026-03-01 12:00:00+01:00'
        """
        return TimedStream(*with_time(self.source, column, watermarks, time_zone))

    def window_time(self, watermarks: WatermarkStrategy | None = None) -> TimedStream:
        """Let the results of windows happen at the last tick of their windows.

        So a result is in the windows that hold its own (Flink's SQL: window_time). Adds the column
        ``window_time``; see `event_time` for what is raised.

        Parameters
        ----------
        watermarks : WatermarkStrategy, optional
            Default: results come in order of time, as windows give them that fire once, at their
            end. Early results carry the end of a window that is not over: say how far ahead.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 1, 90_000_000]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
        >>> counts = gw.stream(minutes.aggregate(n=gw.count())).window_time().key_by("user")
        >>> hours = counts.window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> hours.aggregate(busiest=gw.max("n"))["busiest"].to_pylist()
        [2]
        """
        if WINDOW_END not in self.source.schema.names:
            rule = "window_time is for results of windows, which have a column window_end"
            raise ColumnNotFoundError(rule, value=", ".join(self.source.schema.names))
        if watermarks is None and FIRING[1].name in self.source.schema.names:
            rule = "windows that fire early or again give results out of order: name a strategy"
            raise QueryError(rule, value=FIRING[1].name)
        source = self.source.convert_time(WINDOW_END, "the end of windows")
        source = source.add_last_ticks(WINDOW_END, WINDOW_TIME)
        strategy = watermarks or WatermarkStrategy.for_monotonous_timestamps()
        return Stream(source).event_time(WINDOW_TIME, strategy)

    def ingestion_time(self) -> TimedStream:
        """Let rows happen when they arrive: all of a micro-batch at the time when it begins.

        Windows, triggers and lateness are those of event time, and the watermark is processing
        time. Streams only: all rows of a bounded input arrive at once.
        """
        source, name = self.source.add_arrival_time()
        return TimedStream(source, name, ClockWatermarks())

    def processing_time(self) -> TimedStream:
        """Give rows no time of their own, for windows of processing time (streams only)."""
        self.source.check_arrival()
        return self._without_time

    @property
    def _rows(self) -> KeyedInput:
        return self._without_time._rows

    @property
    def _without_time(self) -> TimedStream:
        source = self.source.add_constant(NO_TIME, pa.scalar(None, pa.timestamp("us", "UTC")))
        return TimedStream(source, NO_TIME, WatermarkStrategy.no_watermarks())


@dataclass(frozen=True)
class TimedStream(UnkeyedStream):
    """Rows with an event time.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "bob"], "ts": [0, 1]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.window_all(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=gw.count()).num_rows
    1
    """

    source: Source
    time: str
    watermarks: WatermarkStrategy

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives."""
        keyed = "key_by(column)"
        of_keyed = KeyedStream._later().items()
        return {keyed: KeyedStream, **{f"{keyed}.{call}": step for call, step in of_keyed}}

    @property
    def _rows(self) -> KeyedInput:
        return KeyedInput(self.source, self.time, self.watermarks, keys=())

    def where(self, condition: str) -> TimedStream:
        """Take the rows only for which a condition is true.

        Other rows are nowhere, and do not move the watermark.

        Parameters
        ----------
        condition : str
            In SQL, over the columns: ``"price > 100 AND NOT cancelled"``; see `with_columns`.

        Raises
        ------
        QueryError
            If it is none, or the rows carry their watermarks: take a column for those before.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [5, 50, 90], "ts": [0, 1, 2]}))
        >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> hours = timed.where("amount > 10").window_all(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> hours.aggregate(n=gw.count())["n"].to_pylist()
        [2]
        """
        self._check_plain("where")
        return replace(self, source=self.source.filter_rows(condition))

    def with_columns(self, /, **columns: str) -> TimedStream:
        """Give rows more columns, or others of the same names.

        Parameters
        ----------
        **columns : str
            Name to expression in SQL over the columns before, such as ``total="price * quantity"``:
            whatever Spark computes of a row; over Arrow tables what Arrow computes alike (extra
            ``sql``).

        Raises
        ------
        QueryError
            If one is no expression over the columns, has the name of the event time, of the column
            that carries watermarks or one that is used inside gpu_windows.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"price": [2.0, 3.0], "quantity": [4, 1], "ts": [0, 1]}))
        >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> with_total = timed.with_columns(total="price * quantity")
        >>> hours = with_total.window_all(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> hours.aggregate(total=gw.sum("total"))["total"].to_pylist()
        [11.0]
        """
        carrier = self.watermarks.column
        own = {"event time": self.time, "column of watermarks": carrier}
        for what, column in own.items():
            if column is not None and str(column).lower() in (name.lower() for name in columns):
                rule = f"the {what} is chosen by event_time: give the column another name"
                raise QueryError(rule, value=str(column))
        _check_columns(self.source, columns)
        return replace(self, source=self.source.add_columns(columns))

    def project(self, /, *columns: str | Mapping[str, str], **renamed: str) -> TimedStream:
        """Take some columns of the rows alone, some under new names, as for a `union`.

        The event time stays: under its new name, or under its own if it is not among the columns.

        Parameters
        ----------
        *columns : str or mapping of str to str
            Names of columns; new names to columns, in their place.
        **renamed : str
            New name to a column.

        Raises
        ------
        QueryError
            If a column does not exist, or two have the same name.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> clicks = pa.table({"user": ["ann"], "page": [1], "ts": [0]})
        >>> timed = gw.stream(clicks).event_time("ts", in_order).project("page", at="ts")
        >>> timed.window_all(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(
        ...     pages=gw.count_distinct("page")
        ... )["pages"].to_pylist()
        [1]
        """
        self._check_plain("project")
        needed = () if self.time == NO_TIME else (self.time,)
        source, names = project(self.source, columns, renamed, needed)
        return replace(self, source=source, time=names.get(self.time, self.time))

    def explode(
        self, column: str, /, *names: str, position: str | None = None, keep_empty: bool = False
    ) -> TimedStream:
        """Make a row of each element of a list or map; all columns of the rows stay.

        Parameters
        ----------
        column : str
            Of lists or maps.
        *names : str
            Of the new columns: one for elements, one for each field of elements that are structs,
            or two for the keys and values of a map.
        position : str, optional
            Name of a column with the number of the element in its list, from 1.
        keep_empty : bool
            Whether a row whose list is null or empty becomes one row, with nulls; else it has none.

        Raises
        ------
        QueryError
            If the column is not a list or map, a name exists, or there are more or fewer names.
        UnsupportedQueryError
            On streams, of results of an earlier stage.

        Examples
        --------
        >>> pages = gw.stream(pa.table({"tags": [["a", "b"], []], "ts": [0, 1]}))
        >>> timed = pages.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> by_tag = timed.explode("tags", "tag").key_by("tag")
        >>> by_tag.window(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=gw.count()).num_rows
        2
        """
        explosion = Explosion(column, names, position, keep_empty=keep_empty)
        return replace(self, source=self.source.explode(explosion))

    def lookup(
        self,
        table: Stream | TimedStream,
        /,
        *,
        on: Mapping[str, str],
        columns: Mapping[str, str],
        keep_unmatched: bool = False,
    ) -> TimedStream:
        """Give rows columns of a table that have the same key; a row for each match.

        On a stream the table is a batch DataFrame, which Spark reads for every micro-batch (Flink:
        ``JOIN table FOR SYSTEM_TIME AS OF proctime``), of Parquet, CSV and JSON the files that it
        was made with: a later change of it does not change earlier results. For versions by event
        time see `KeyedStream.temporal_join`.

        Parameters
        ----------
        table : Stream or TimedStream
            ``gw.stream(table)``: of Arrow for Arrow tables, a batch DataFrame for DataFrames.
        on : mapping of str to str
            Columns of the rows to columns of the table: all are equal. Nulls equal nothing.
        columns : mapping of str to str
            New names to columns of the table.
        keep_unmatched : bool
            Whether a row without a match stays, with nulls.

        Raises
        ------
        QueryError
            If a column does not exist or is taken, or types of keys cannot be compared.
        UnsupportedQueryError
            If the table is a stream, or the rows are results of an earlier stage of one.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": [1, 2], "ts": [0, 1]}))
        >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> shops = gw.stream(pa.table({"id": [1], "city": ["Bern"]}))
        >>> with_city = timed.lookup(shops, on={"shop": "id"}, columns={"city": "city"})
        >>> day = with_city.key_by("city").window(gw.TumblingEventTimeWindows.of("1 day"))
        >>> day.aggregate(n=gw.count())["city"].to_pylist()
        ['Bern']
        """
        given: Any = table
        if not isinstance(given, Stream | TimedStream):
            rule = "lookup takes a stream: gw.stream(table)"
            raise QueryError(rule, value=type(given).__name__)
        how = Lookup(dict(on), dict(columns), keep_unmatched=keep_unmatched)
        return replace(self, source=self.source.look_up(given.source, how))

    def with_windows(
        self,
        assigner: WindowAssigner,
        *,
        columns: Sequence[str] | None = None,
        partition_by: Sequence[str] = (),
        arrival_order: Sequence[str] = (),
        **options: Any,
    ) -> Outputs:
        """Return rows with the windows that they are in: a row for each window (Flink: window TVF).

        Behind the others are the columns ``window_start``, ``window_end`` and ``window_time``, the
        last tick of the window. Rows come at once, late ones too, and nothing is kept of them; but
        those of sessions come when these end, and rows that come then are late.

        Parameters
        ----------
        assigner : WindowAssigner
            Of tumbling, sliding, cumulative or session windows of event time.
        columns : sequence of str, optional
            Of the rows; default: all.
        partition_by : sequence of str
            Keys of sessions; without any there are sessions of all rows.
        arrival_order : sequence of str
            Columns that give the order of arrival of rows in sessions.
        **options
            See `Options`.

        Raises
        ------
        QueryError
            If there can be no such rows.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann", "bob"], "ts": [0, 90_000_000]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> outputs = timed.with_windows(
        ...     gw.TumblingEventTimeWindows.of("1 minute"), columns=["user"]
        ... )
        >>> outputs.result().select(["user", "window_start"]).to_pylist()
        [{'user': 'ann', 'window_start': 0}, {'user': 'bob', 'window_start': 60000000}]
        """
        rows = self._rows
        return with_windows(self, rows, assigner, columns, partition_by, arrival_order, options)

    def _check_plain(self, step: str) -> None:
        if self.watermarks.column is not None:
            rule = f"{step} comes before event_time where a column carries watermarks"
            raise QueryError(rule, value=str(self.watermarks.column))

    def union(self, *others: TimedStream) -> TimedStream:
        """Take the rows of several inputs together; the watermark is the least of theirs.

        An input that is silent holds it, unless its watermarks are `with_idleness`. All have the
        same columns; the event time of the others may have another name.

        Parameters
        ----------
        *others : TimedStream
            Inputs of the same kind, with the same columns.

        Raises
        ------
        QueryError
            If columns differ, or an input is of another kind or carries its watermarks.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> web = gw.stream(pa.table({"user": ["ann"], "ts": [0]})).event_time("ts", in_order)
        >>> app = gw.stream(pa.table({"user": ["ann"], "ts": [5]})).event_time("ts", in_order)
        >>> hours = web.union(app).key_by("user").window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> hours.aggregate(n=gw.count())["n"].to_pylist()
        [2]
        """
        for each in others:
            if not isinstance(each, TimedStream):
                rule = "union takes streams with a time: gw.stream(...).event_time(...)"
                raise QueryError(rule, value=type(each).__name__)
            if (each.time == NO_TIME) != (self.time == NO_TIME):
                rule = "all inputs of a union have an event time, or none has one"
                raise QueryError(rule, value=each.watermarks.describe())
        inputs = [UnionInput(each.source, each.time, each.watermarks) for each in (self, *others)]
        if self.time == NO_TIME:
            return replace(self, source=self.source.union(inputs))
        check_union_watermarks(each.watermarks for each in inputs)
        watermarks = UnionWatermarks(parts=tuple(each.watermarks for each in inputs))
        return TimedStream(self.source.union(inputs), self.time, watermarks)
