"""The batch queries that the accelerator is asked about, and single types and expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
_SLIDING = gw.SlidingEventTimeWindows.of("60 minutes", "10 minutes")
_TUMBLING = gw.TumblingEventTimeWindows.of("60 minutes")
_START = datetime(2026, 1, 1, tzinfo=UTC)

#: Rows of the input.
ROWS = 1000


class Counting(gw.functions.KeyedProcessFunction):
    """Numbers the rows of a key."""

    state: ClassVar = {"rows": gw.functions.ValueStateDescriptor(pa.int64())}

    def open(self, context: Any) -> None:
        self.rows = context.state("rows")

    def process_element(self, row: Any, context: Any) -> Iterator[Mapping[str, Any]]:
        self.rows.update(self.rows.value(0) + 1)
        yield {"rows": self.rows.value()}


def write_input(folder: Path) -> Path:
    """Write a Parquet file of `ROWS` rows and return its path."""
    numbers = range(ROWS)
    table = pa.table(
        {
            "key": pa.array([i % 7 for i in numbers], pa.int64()),
            "ts": pa.array(
                [_START + timedelta(seconds=30 * i) for i in numbers], pa.timestamp("us", "UTC")
            ),
            "value": pa.array(numbers, pa.int64()),
            "measure": pa.array(numbers, pa.float64()),
            "amount": pa.array([Decimal(i) for i in numbers], pa.decimal128(12, 2)),
            "day": pa.array([date(2026, 1, 1 + i % 28) for i in numbers], pa.date32()),
            "name": pa.array([f"sensor {i % 7}" for i in numbers]),
        }
    )
    path = folder / "rows.parquet"
    pq.write_table(table, path)
    return path


def _keyed(rows: DataFrame) -> Any:
    return gw.stream(rows).event_time("ts", _WATERMARKS).key_by("key")


def _by(rows: DataFrame, windows: Any, **options: Any) -> Any:
    return _keyed(rows).window(windows).options(**options)


def _usual(windowed: Any) -> Any:
    return windowed.aggregate(
        rows=gw.count(), total=gw.sum("value"), top=gw.max("measure"), mean=gw.mean("measure")
    )


#: By name: a DataFrame of the rows.
QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "sliding windows, partials by Spark": lambda rows: _usual(
        _by(rows, _SLIDING, partials="spark")
    ),
    "sliding windows, partials by kernels": lambda rows: _usual(
        _by(rows, _SLIDING, partials="kernels")
    ),
    "tumbling windows": lambda rows: _usual(_by(rows, _TUMBLING)),
    "dates, partials by Spark": lambda rows: _by(rows, _TUMBLING, partials="spark").aggregate(
        last=gw.max("day")
    ),
    "decimals, partials by kernels": lambda rows: _by(
        rows, _TUMBLING, partials="kernels"
    ).aggregate(total=gw.sum("amount")),
    "sessions": lambda rows: _usual(
        _keyed(rows).window(gw.EventTimeSessionWindows.with_gap("10 minutes"))
    ),
    "median": lambda rows: _by(rows, _TUMBLING).aggregate(middle=gw.median("measure")),
    "interval join": lambda rows: (
        _keyed(rows)
        .interval_join(_keyed(rows))
        .between("-5 minutes", "5 minutes")
        .select(["value"], ["measure"])
    ),
    "process function": lambda rows: _keyed(rows).process(
        Counting(), output=pa.schema([("rows", pa.int64())])
    ),
    "counters of sliding windows": lambda rows: (
        _by(rows, _SLIDING, partials="spark").with_outputs().aggregate(rows=gw.count()).metrics()
    ),
}


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _crossing(spark_type: str, sql: str) -> Callable[[DataFrame], DataFrame]:
    def frame(rows: DataFrame) -> DataFrame:
        return rows.select(F.expr(sql).alias("x")).mapInArrow(_same, f"x {spark_type}")

    return frame


def _projected(sql: str) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: rows.select(F.expr(sql).alias("x"))


_CROSSING = {
    "BIGINT": "value",
    "DOUBLE": "measure",
    "BOOLEAN": "value > 1",
    "STRING": "name",
    "DATE": "day",
    "TIMESTAMP": "ts",
    "ARRAY<BIGINT>": "array(value)",
    "ARRAY<STRING>": "array(name)",
    "DECIMAL(12,2)": "amount",
    "BINARY": "cast(name as binary)",
    "STRUCT<name: STRING>": "struct(name)",
    "ARRAY<STRUCT<name: STRING>>": "array(struct(name))",
    "MAP<STRING, BIGINT>": "map(name, value)",
}
_EXPRESSIONS = (
    "unix_micros(ts)",
    "unix_millis(ts)",
    "timestampdiff(MICROSECOND, timestamp'1970-01-01 00:00:00Z', ts)",
    "ts - timestamp'1970-01-01 00:00:00Z'",
    "cast(ts as decimal(20,6))",
    "cast(ts as bigint)",
    "timestamp_micros(value)",
    "unix_date(day)",
    "datediff(day, date'1970-01-01')",
    "date_from_unix_date(cast(key as int))",
    "date_add(date'1970-01-01', cast(key as int))",
)

#: By name: DataFrames of one node besides the scan, the one that is asked about.
TRIALS: dict[str, Callable[[DataFrame], DataFrame]] = {
    **{f"mapInArrow of {name}": _crossing(name, sql) for name, sql in _CROSSING.items()},
    **{sql: _projected(sql) for sql in _EXPRESSIONS},
}


def read_input(spark: SparkSession, path: Path) -> DataFrame:
    """Return the rows that `write_input` has written."""
    return spark.read.parquet(str(path))
