"""Scenarios in our words: the query, the rows that it takes, and its results as emissions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.datastream.window_settings import Windowed
from gpu_windows.functions.process import Process
from gpu_windows.functions.window import Aggregates, Collect, Reduce
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.planning.plan import ARRIVAL, Plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import Trigger
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows import WindowAssigner
from tests.conformance.functions import SCHEMA, NamedFunction
from tests.conformance.scenario import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INSTANT = pa.timestamp("us", tz="UTC")

W = TypeVar("W", bound=Windowed)


@dataclass(frozen=True)
class Windows:
    """How rows are put into windows, and when these fire; durations in ticks."""

    assigner: WindowAssigner
    trigger: Trigger
    evictor: Evictor | None = None
    allowed_lateness: int = 0

    def of(self, windowed: W, options: Options) -> W:
        """Say it of rows in windows of this assigner; the column ``seq`` is the order."""
        windowed = (
            windowed.trigger(self.trigger)
            .allowed_lateness(timedelta(microseconds=self.allowed_lateness))
            .arrival_order("seq")
            .options(**vars(options))
        )
        return windowed if self.evictor is None else windowed.evictor(self.evictor)


@dataclass(frozen=True)
class Skip:
    """A scenario that is not run."""

    reason: str


class Case(ABC):
    """A scenario in our words."""

    #: The inputs, as scenarios name them; None is the only one.
    sides: tuple[str | None, ...] = (None,)
    #: Whether results are changes of a table: those of several rows at once are fewer.
    is_changelog: ClassVar[bool] = False

    @property
    def is_user_code(self) -> bool:
        """Whether the window function is a user's code in Flink, and here."""
        return False

    @abstractmethod
    def query(self, options: Options) -> Query:
        """Return the query of the local runner."""

    @abstractmethod
    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of that query's input."""

    @abstractmethod
    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over a DataFrame for each side."""

    @abstractmethod
    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result row's payload, as the scenario files write it."""

    def seq_of(self, row: Mapping[str, Any]) -> int:
        """Return which record a row of a query's input is."""
        seq: int = row.get(ARRIVAL, row.get("seq"))
        return seq

    def gap(self, value: float) -> int:
        """Return the dynamic gap of a record, in ticks."""
        del value
        return 0

    def step_of(self, row: Mapping[str, Any], step: int | None) -> int | None:
        """Return which element of the input a result row came with, if it tells."""
        del row
        return step

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result row, its window's bounds in milliseconds, as an emission."""
        end = row[WINDOW_END]
        return {
            "key": row["key"],
            "window_start": row[WINDOW_START],
            "window_end": end,
            **self.payload(row),
            "timestamp": LONG_MAX if end is None else end - 1,
        }

    def keys(self, records: Sequence[Record]) -> Sequence[str | None]:
        """Return the keys of records."""
        return [record.key for record in records]

    def batch(self, records: Sequence[Record], plan: Plan) -> pa.Table:
        """Return records as rows, with the columns that the plan's operator takes."""
        columns = self.columns(records)
        fields = [plan.query.schema.field(name) for name in plan.input_columns]
        arrays = [pa.array(columns[field.name], field.type) for field in fields]
        if ARRIVAL in plan.order:
            fields.append(pa.field(ARRIVAL, pa.int64()))
            arrays.append(pa.array([record.seq for record in records], pa.int64()))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def table(self, records: Sequence[Record], ticks_per_ms: int) -> pa.Table:
        """Return records as rows of a DataFrame, their times as instants."""
        ticks = [record.ts * ticks_per_ms for record in records]
        return pa.table(
            {
                "key": pa.array(self.keys(records), pa.string()),
                "ts": pa.array(ticks, pa.int64()).cast(INSTANT),
                "value": pa.array([record.value for record in records], pa.float64()),
                "seq": pa.array([record.seq for record in records], pa.int64()),
                "gap": pa.array([self.gap(record.value) for record in records], pa.int64()),
                "at": pa.array([record.ts for record in records], pa.int64()),
            }
        )


def columns_of(case: Case, records: Sequence[Record]) -> dict[str, Sequence[object]]:
    """Return the columns that records of one input have."""
    return {
        "key": case.keys(records),
        "ts": [record.ts for record in records],
        "value": [record.value for record in records],
        "seq": [record.seq for record in records],
    }


class ByTheApi(Case):
    """A scenario of one input whose query, too, is what the public API makes."""

    @abstractmethod
    def _outputs(self, timed: TimedStream, options: Options) -> gw.typing.Outputs:
        """Return the outputs over rows with their time."""

    def query(self, options: Options) -> Query:
        """Return the query that the public API makes of a table without rows."""
        nothing = SCHEMA.append(SCHEMA.field("ts").with_name("at")).empty_table()
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        timed = gw.stream(nothing).event_time("ts", strategy)
        return self._outputs(timed, options).plan.query

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over a DataFrame."""
        (frame,) = frames
        return self._outputs(gw.stream(frame).event_time("ts", watermarks), options)


@dataclass(frozen=True)
class OneInput(Case):
    """Windows over one input."""

    windows: Windows
    function: NamedFunction
    gap_factor: float = 0.0

    @property
    def is_user_code(self) -> bool:
        """Whether the window function is a user's code."""
        return self.function.is_user_code

    def gap(self, value: float) -> int:
        """Return the dynamic gap of a record, in ticks."""
        return math.floor(value * self.gap_factor)

    def query(self, options: Options) -> Query:
        """Return the query of the local runner, over the columns of `SCHEMA`."""
        windows = self.windows
        return WindowQuery(
            schema=SCHEMA,
            time="ts",
            watermarks=WatermarkStrategy.for_monotonous_timestamps(),
            keys=("key",),
            assigner=windows.assigner,
            function=self.function.window_function,
            trigger=windows.trigger,
            evictor=windows.evictor,
            allowed_lateness=windows.allowed_lateness,
            options=options,
        )

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of `SCHEMA`."""
        gaps = [self.gap(record.value) for record in records]
        return {**columns_of(self, records), "gap": gaps}

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over a DataFrame."""
        (frame,) = frames
        keyed = gw.stream(frame).event_time("ts", watermarks).key_by("key")
        windowed = self.windows.of(keyed.window(self.windows.assigner), options)
        function = self.function.window_function
        if isinstance(function, Aggregates):
            return windowed.with_outputs().aggregate(
                **{bound.name: bound.aggregate for bound in function.built_in}
            )
        last = windowed.with_outputs()
        if isinstance(function, Collect):
            return last.collect_lists(*function.columns)
        if isinstance(function, Reduce):
            return last.reduce(function.function, function.columns)
        assert isinstance(function, Process)
        return last.process(
            function.function, function.columns, output=function.output, rows=function.rows
        )

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gave."""
        return self.function.payload(row)
