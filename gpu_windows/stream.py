"""The API: Flink's names in Python dress, on Spark DataFrames and Arrow tables.

Builders are immutable: every method returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.aggregates import Aggregate, bind
from gpu_windows.errors import InvalidOptionError, QueryError
from gpu_windows.functions import Aggregates, Collect, Reduce, Row, WindowFunction
from gpu_windows.local import ArrowSource
from gpu_windows.options import Duration, Options, ticks
from gpu_windows.outputs import Frame, Outputs, Source
from gpu_windows.query import Query, check_distinct
from gpu_windows.triggers import EventTimeTrigger, Trigger
from gpu_windows.watermarks import WatermarkStrategy
from gpu_windows.windows import WindowAssigner

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def stream(source: DataFrame | pa.Table | pa.RecordBatchReader) -> Stream:
    """Begin a query.

    Parameters
    ----------
    source : pyspark.sql.DataFrame, pyarrow.Table or pyarrow.RecordBatchReader
        Arrow input is run by the local runner, without Spark; the answer is the same.

    Raises
    ------
    QueryError
        If it is something else.
    """
    if isinstance(source, pa.Table | pa.RecordBatchReader):
        return Stream(ArrowSource(source))
    if type(source).__module__.startswith("pyspark."):
        from gpu_windows.spark_glue.source import SparkSource

        return Stream(SparkSource(source))
    rule = "stream takes a Spark DataFrame, a pyarrow.Table or a pyarrow.RecordBatchReader"
    raise QueryError(rule, value=type(source).__name__)


@dataclass(frozen=True)
class Stream:
    """Rows, before they have a time."""

    source: Source

    def event_time(self, column: str | Column, watermarks: WatermarkStrategy) -> TimedStream:
        """Say when rows happened.

        Parameters
        ----------
        column : str or Column
            TIMESTAMP; int64 microseconds since the epoch in an Arrow table too. Rows where it
            is null are counted and kept apart.
        watermarks : WatermarkStrategy
            How long to wait for rows that come late. A bounded input is waited for to the end.
        """
        if not isinstance(watermarks, WatermarkStrategy):
            rule = "event_time takes a WatermarkStrategy"
            raise QueryError(rule, value=type(watermarks).__name__)
        source, name = self.source.name(column, "__event_time")
        return TimedStream(source.timed(name), name, watermarks)


@dataclass(frozen=True)
class TimedStream:
    """Rows with an event time."""

    source: Source
    time: str
    watermarks: WatermarkStrategy

    def key_by(self, *columns: str | Column) -> KeyedStream:
        """Give every row a key: one or several columns; null is a key of its own."""
        source, names = self.source, []
        for column in columns:
            source, name = source.name(column, None)
            names.append(name)
        return KeyedStream(source, self.time, self.watermarks, tuple(names))


@dataclass(frozen=True)
class KeyedStream:
    """Rows with an event time and a key."""

    source: Source
    time: str
    watermarks: WatermarkStrategy
    keys: tuple[str, ...]

    def window(self, assigner: WindowAssigner) -> WindowedStream:
        """Put the rows of every key into windows."""
        if not isinstance(assigner, WindowAssigner):
            rule = "window takes a window assigner, such as TumblingEventTimeWindows.of('1 minute')"
            raise QueryError(rule, value=type(assigner).__name__)
        return WindowedStream(self, assigner)


@dataclass(frozen=True)
class WindowedStream:
    """Rows in windows, before a function is applied to each."""

    keyed: KeyedStream
    assigner: WindowAssigner
    trigger_: Trigger = EventTimeTrigger()  # noqa: RUF009 - frozen
    lateness: int = 0
    order: tuple[str | Column, ...] = ()
    options_: Options = Options()  # noqa: RUF009 - frozen

    def trigger(self, trigger: Trigger) -> WindowedStream:
        """Say when a window fires; default: at its end."""
        if not isinstance(trigger, Trigger):
            raise QueryError("trigger takes a Trigger", value=type(trigger).__name__)
        return replace(self, trigger_=trigger)

    def allowed_lateness(self, lateness: Duration) -> WindowedStream:
        """Keep windows for late rows after they fired; each late row fires its window again."""
        return replace(self, lateness=ticks(lateness))

    def order_by(self, *columns: str | Column) -> WindowedStream:
        """Name the columns that give the order of arrival, which a shuffle in Spark loses.

        Ignored on an Arrow table, whose order is its order of arrival.
        """
        return replace(self, order=columns)

    def options(self, **options: Any) -> WindowedStream:
        """Change how the query runs, not what it gives: see `Options`."""
        try:
            return replace(self, options_=replace(self.options_, **options))
        except TypeError:
            names = ", ".join(vars(self.options_))
            rule = f"options are {names}"
            raise InvalidOptionError(rule, value=", ".join(options)) from None

    def aggregate(self, **aggregates: Aggregate) -> Frame:
        """Aggregate every window incrementally.

        Parameters
        ----------
        **aggregates : Aggregate
            Result column name to aggregate, such as ``delay=gw.mean("dep_delay")``.

        Returns
        -------
        pyspark.sql.DataFrame or pyarrow.Table
            The keys, ``window_start`` and ``window_end`` (TIMESTAMP, not null), the aggregates.
        """
        return self.outputs(**aggregates).result()

    def collect(self, *columns: str | Column) -> Frame:
        """Collect the rows of every window, in order of arrival: one list per column."""
        source, names = self._named(columns)
        return self._outputs(source, Collect(names)).result()

    def reduce(self, function: Callable[[Row, Row], Row], columns: Sequence[str | Column]) -> Frame:
        """Reduce the rows of every window, in order of arrival, two at a time, in Python.

        Parameters
        ----------
        function : callable
            ``function(earlier, later)`` takes and returns mappings from column name to value.
        columns : sequence of str or Column
            What it sees and returns.
        """
        source, names = self._named(columns)
        return self._outputs(source, Reduce(function, names)).result()

    def outputs(self, **aggregates: Aggregate) -> Outputs:
        """Return results, late and rejected rows, counters and the plan of `aggregate`."""
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                rule = f"{name} must be an aggregate, such as gw.sum('amount')"
                raise QueryError(rule, value=repr(aggregate))
        source = self.keyed.source
        keys = self.keyed.keys
        check_distinct((*keys, "window_start", "window_end", *aggregates))
        bound = []
        for name, aggregate in aggregates.items():
            column, by = aggregate.column, aggregate.by
            if column is not None:
                source, column = source.name(column, f"__{name}_column")
            if by is not None:
                source, by = source.name(by, f"__{name}_by")
            bound.append((name, replace(aggregate, column=column, by=by)))
        schema = source.schema
        return self._outputs(source, Aggregates(tuple(bind(n, a, schema) for n, a in bound)))

    def explain(self, **aggregates: Aggregate) -> str:
        """Return what `aggregate` would compute, how, where and why."""
        return self.outputs(**aggregates).explain()

    def _named(self, columns: Sequence[str | Column]) -> tuple[Source, tuple[str, ...]]:
        source, names = self.keyed.source, []
        for column in columns:
            source, name = source.name(column, None)
            names.append(name)
        return source, tuple(names)

    def _outputs(self, source: Source, function: WindowFunction) -> Outputs:
        order = []
        for i, column in enumerate(self.order):
            source, name = source.name(column, f"__order_{i}")
            order.append(name)
        query = Query(
            schema=source.schema,
            time=self.keyed.time,
            watermarks=self.keyed.watermarks,
            keys=self.keyed.keys,
            assigner=self.assigner,
            function=function,
            trigger=self.trigger_,
            allowed_lateness=self.lateness,
            order_by=tuple(order),
            options=self.options_,
        )
        return source.outputs(query)
