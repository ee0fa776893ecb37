"""The API: Flink's names in Python dress, on Spark DataFrames and Arrow tables.

Builders are immutable: every method returns a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.arguments import check_arguments
from gpu_windows.column_types.local_times import check_zone
from gpu_windows.column_types.logical import name_of
from gpu_windows.datastream.scan import Scan
from gpu_windows.datastream.select import project
from gpu_windows.datastream.timed_stream import TimedStream, check_columns
from gpu_windows.datastream.unkeyed import UnkeyedStream
from gpu_windows.errors import ColumnNotFoundError, ColumnTypeError, QueryError
from gpu_windows.planning.kinds.window import WINDOW_END
from gpu_windows.planning.own_columns import CARRIER, FIRING, NO_TIME, WINDOW_TIME
from gpu_windows.planning.validation import check_reserved
from gpu_windows.runners.arrow_input import GivesArrow, arrow_table, gives_arrow, is_data_frame
from gpu_windows.runners.arrow_source import source_of_arrow
from gpu_windows.runners.cudf_source import CudfSource, is_cudf
from gpu_windows.runners.outputs import Input, Source
from gpu_windows.runners.row_stream import RowStream
from gpu_windows.vocabulary.watermarks import ClockWatermarks, WatermarkStrategy

if TYPE_CHECKING:
    from gpu_windows.annotations import Column, DataFrame

#: How a table is made of what is none.
_BECOMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (list, "pyarrow.Table.from_pylist(rows) makes one"),
    (dict, "pyarrow.table(columns) makes one"),
    ((str, PathLike), "gpu_windows.scan(path), spark.read or pyarrow.parquet.read_table makes one"),
)


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


def source_of(source: Any) -> Source:
    """Return where the rows of what a user has come from.

    Raises
    ------
    QueryError
        If it is no table.
    """
    if isinstance(source, Scan):
        return source.source
    if isinstance(source, pa.Table):
        return source_of_arrow(source)
    if isinstance(source, pa.RecordBatchReader):
        return source_of_arrow(RowStream.of(source))
    if is_data_frame(source):
        from gpu_windows.spark_glue.batch.outputs import BatchSource
        from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput
        from gpu_windows.spark_glue.streams.outputs import StreamSource

        kind = StreamSource if source.isStreaming else BatchSource
        return kind(source, inputs=(StreamInput(source),))
    if is_cudf(source):
        return CudfSource(source)
    if gives_arrow(source):
        return source_of_arrow(arrow_table(source))
    rule = (
        "stream takes a Spark DataFrame, a pyarrow.Table or a pyarrow.RecordBatchReader, or a "
        "table that gives Arrow, as those of pandas, Polars and DuckDB do (collect() a lazy one)"
    )
    remedies = (f"; of this {how}" for kinds, how in _BECOMES if isinstance(source, kinds))
    raise QueryError(rule + next(remedies, ""), value=type(source).__name__)


def _begin(source: Source) -> Stream:
    check_reserved(source.schema.names)
    return Stream(source)


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
        check_columns(self.source, columns)
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
        inputs = [Input(each.source, NO_TIME, no_watermarks) for each in (self, *others)]
        return Stream(self.source.union(inputs))

    @check_arguments(
        {
            "column": "event_time takes a column and watermarks: event_time('ts', strategy)",
            "watermarks": "event_time takes how long to wait for late rows: event_time('ts', "
            "gw.WatermarkStrategy.for_bounded_out_of_orderness('5 seconds'))",
        }
    )
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
        return TimedStream(*_with_time(self.source, column, watermarks, time_zone))

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
    def _rows(self) -> Input:
        return self._without_time

    @property
    def _without_time(self) -> TimedStream:
        source = self.source.add_constant(NO_TIME, pa.scalar(None, pa.timestamp("us", "UTC")))
        return TimedStream(source, NO_TIME, WatermarkStrategy.no_watermarks())


def _with_time(
    source: Source, column: str | Column, watermarks: WatermarkStrategy, time_zone: str | None
) -> tuple[Source, str, WatermarkStrategy]:
    """Return rows with an event time, its name, and the watermarks.

    For parameters and errors see `Stream.event_time`.
    """
    if not isinstance(watermarks, WatermarkStrategy):
        rule = (
            "event_time takes a WatermarkStrategy, such as "
            "gw.WatermarkStrategy.for_bounded_out_of_orderness('5 seconds')"
        )
        raise QueryError(rule, value=repr(watermarks))
    source, name = source.bind_column(column, "__event_time")
    if time_zone is not None:
        source = source.convert_local_time(name, check_zone(time_zone))
    source = source.convert_time(name, "event time")
    if has_no_zone(source, name) and (watermarks.max_ahead is not None or watermarks.closes):
        rule = (
            "a clock is compared with instants: name the zone of these times, as "
            "event_time(..., time_zone='Europe/Zurich')"
        )
        raise ColumnTypeError(rule, value="TIMESTAMP_NTZ", column=name)
    if watermarks.column is not None:
        source, carrier = source.bind_column(watermarks.column, "watermark")
        if time_zone is not None and has_no_zone(source, carrier):
            source = source.convert_local_time(carrier, time_zone)
        source = source.convert_time(carrier, CARRIER)
        _check_carrier(source, name, carrier)
        watermarks = replace(watermarks, column=carrier)
    return source, name, watermarks


def _check_carrier(source: Source, time: str, carrier: str) -> None:
    """Refuse watermarks that are instants where event times are not, and the other way round."""
    if has_no_zone(source, time) == has_no_zone(source, carrier):
        return
    of_time, of_carrier = (source.schema.field(each).type for each in (time, carrier))
    rule = (
        f"event times are {name_of(of_time)}: watermarks are compared with them, and are times "
        "with or without a zone as they are"
    )
    raise ColumnTypeError(rule, value=name_of(of_carrier), column=carrier)


def has_no_zone(source: Source, column: str) -> bool:
    """Whether a column has times without a zone."""
    dtype = source.schema.field(column).type
    return bool(types.is_timestamp(dtype) and dtype.tz is None)
