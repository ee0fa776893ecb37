"""Streams with an event time: rows as they come, before keys and windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.datastream.select import project
from gpu_windows.datastream.unkeyed import UnkeyedStream
from gpu_windows.datastream.window_rows import with_windows
from gpu_windows.errors import QueryError
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.planning.validation import check_distinct, check_reserved
from gpu_windows.runners.explosion import Explosion
from gpu_windows.runners.lookup import Lookup
from gpu_windows.runners.outputs import Input, Outputs, Source
from gpu_windows.vocabulary.watermarks import (
    ClockWatermarks,
    UnionWatermarks,
    check_union_watermarks,
)
from gpu_windows.vocabulary.windows import WindowAssigner


def check_columns(source: Source, columns: Mapping[str, str]) -> None:
    """Refuse names of more columns that are ours, or clash with others."""
    check_reserved(columns)
    others = (name for name in source.schema.names if name not in columns)
    check_distinct((*others, *columns), "columns have different names")


@dataclass(frozen=True)
class TimedStream(UnkeyedStream, Input):
    """Rows with an event time.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "bob"], "ts": [0, 1]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.window_all(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=gw.count()).num_rows
    1
    """

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives."""
        keyed = "key_by(column)"
        of_keyed = KeyedStream._later().items()
        return {keyed: KeyedStream, **{f"{keyed}.{call}": step for call, step in of_keyed}}

    def ingestion_time(self) -> TimedStream:
        """Let rows happen when they arrive, in place of their event time: `Stream.ingestion_time`.

        Raises
        ------
        UnsupportedQueryError
            If the rows are bounded: all of them arrive at once.
        """
        source, name = self.source.add_arrival_time()
        return replace(self, source=source, time=name, watermarks=ClockWatermarks())

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
        check_columns(self.source, columns)
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
        table: UnkeyedStream,
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
        if not isinstance(given, UnkeyedStream):
            rule = "lookup takes a stream: gw.stream(table)"
            raise QueryError(rule, value=type(given).__name__)
        how = Lookup(dict(on), dict(columns), keep_unmatched=keep_unmatched)
        return replace(self, source=self.source.look_up(given._rows.source, how))

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
        return with_windows(self, assigner, columns, partition_by, arrival_order, options)

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
        inputs = (self, *others)
        if self.time == NO_TIME:
            return replace(self, source=self.source.union(inputs))
        check_union_watermarks(each.watermarks for each in inputs)
        watermarks = UnionWatermarks(parts=tuple(each.watermarks for each in inputs))
        return TimedStream(self.source.union(inputs), self.time, watermarks)
