"""Names that the pages use without defining them: tables and streams with a few rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import gpu_windows as gw
from tests.plots.samples import sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Names = dict[str, Any]

_MINUTE = 60_000_000
_WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")


def times(*minutes: float) -> pa.Array:
    """Return instants, in minutes of 1 January 2026."""
    day = 20_454 * 24 * 60
    return pa.array([int((day + m) * _MINUTE) for m in minutes], pa.timestamp("us", "UTC"))


def readings() -> pa.Table:
    """Return what three sensors sent."""
    return pa.table(
        {
            "sensor": ["a", "b", "a", "c", "a", "b"],
            "ts": times(0, 0.5, 1, 3, 12, 14),
            "value": [1.0, 120.0, 3.0, 4.0, 105.0, 6.0],
            "text": ["1", "120", "3", "4", "105", "6"],
        }
    )


def _keyed(table: pa.Table, key: str, time: str = "ts") -> gw.typing.KeyedStream:
    return gw.stream(table).event_time(time, _WATERMARKS).key_by(key)


def windows() -> Names:
    """docs/windows.md."""
    table, drawn = readings(), sample()
    keyed = _keyed(table.append_column("price", table["value"]), "sensor")
    noon = pc.add(drawn["ts"], timedelta(days=20_574, hours=12))  # of 1 May 2026, not of 1970
    drawn = drawn.set_column(1, "ts", noon)
    return {"gw": gw, "pa": pa, "df": table, "sample": drawn, "keyed": keyed}


def chains() -> Names:
    """docs/chains.md."""
    users = ["x", "x", "x", "y", "y", "z", "y"]
    return {"clicks": pa.table({"user": users, "ts": times(1, 1.2, 1.5, 2, 2.1, 3, 70)})}


def joins() -> Names:
    """docs/joins.md."""
    orders = {"customer": ["x", "y"], "ordered": times(10, 20), "amount": [5.0, 7.0]}
    clicks = {
        "user": ["x", "x", "z"],
        "clicked": times(2, 9, 20),
        "page": ["home", "help", "home"],
    }
    levels = {
        "client": ["x", "x", "y", "y"],
        "since": times(1, 15, 2, 18),
        "level": ["silver", "gold", "silver", None],
        "closed": [False, False, False, True],
    }
    landed = {
        "airport": ["LGA", "JFK"],
        "flight": ["1", "2"],
        "tail": ["N1", "N2"],
        "delay": [3.0, 4.0],
        "ts": times(1, 2),
    }
    return {
        "orders_frame": pa.table(orders),
        "clicks_frame": pa.table(clicks),
        "levels_frame": pa.table(levels),
        "departures": _keyed(pa.table(landed), "airport"),
        "arrivals": _keyed(pa.table(landed), "airport"),
    }


def over() -> Names:
    """docs/over.md."""
    payments = {
        "card": [1, 1, 2],
        "ts": times(0, 5, 6),
        "amount": [10.0, 20.0, 30.0],
        "shop": ["a", "b", "a"],
    }
    offers = {"category": ["tea", "tea"], "price": [3.0, 4.0], "shop": ["a", "b"]}
    return {"payments": pa.table(payments), "offers": pa.table(offers)}


def from_flink() -> Names:
    """docs/from_flink.md."""
    return {"readings": readings()}


def gpus() -> Names:
    """docs/gpus.md."""
    from pyspark.sql import SparkSession

    from tests.ptx.pretend_cudf import DataFrame

    names = {"gw": gw, "SparkSession": SparkSession, "watermarks": _WATERMARKS}
    return names | {"frame": DataFrame(readings())}


def process(spark: SparkSession, folder: Path) -> Names:
    """docs/process.md."""
    (folder / "readings").mkdir()
    pq.write_table(readings().drop(["text"]), folder / "readings" / "1.parquet")
    table = readings()
    limits = pa.table({"name": ["high"], "limit": [100.0], "ts": times(0)})
    amounts = table.rename_columns(["sensor", "ts", "amount", "text"])
    return {
        "spark": spark,
        "np": np,
        "pc": pc,
        "readings": table,
        "keyed": _keyed(table, "sensor"),
        "output": pa.schema([("silent_since", pa.int64()), ("rows", pa.int64())]),
        "payments": _keyed(amounts, "sensor"),
        "rules": gw.stream(limits).event_time("ts", _WATERMARKS),
        "windowed": _keyed(table, "sensor").window(gw.TumblingEventTimeWindows.of("10 minutes")),
        "load_limits": lambda: {"a": 2.0, "b": 100.0, "c": 3.0},
    }


def from_spark(spark: SparkSession, folder: Path) -> Names:
    """docs/from_spark.md: files whose windows end but the last one's."""
    (folder / "in").mkdir()
    for number, minutes in enumerate([(1, 7), (18, 2), (40, 45), (46, 50)]):
        rows = {"sensor": ["a", "b"], "ts": times(*minutes), "value": [1.0, 2.0]}
        pq.write_table(pa.table(rows), folder / "in" / f"{number}.parquet")
    return {"spark": spark}


def heard(spark: SparkSession) -> Callable[[], None]:
    """Return a function that waits until listeners have received all events."""
    return lambda: spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def operations(spark: SparkSession, folder: Path) -> Names:
    """docs/operations.md."""
    (folder / "in").mkdir()
    pq.write_table(readings().drop(["text"]), folder / "in" / "1.parquet")
    frame = spark.readStream.schema("sensor string, ts timestamp, value double").parquet("in")
    windowed = (
        gw.stream(frame)
        .event_time("ts", _WATERMARKS)
        .key_by("sensor")
        .window(gw.TumblingEventTimeWindows.of("10 minutes"))
    )
    outputs = windowed.with_outputs().aggregate(total=gw.sum("value"))
    return {"gw": gw, "spark": spark, "outputs": outputs, "heard": heard(spark)}


def streaming(spark: SparkSession, folder: Path) -> Names:
    """docs/streaming.md."""
    (folder / "in").mkdir()
    rows = pa.table(
        {
            "user": ["x", "x", "y"],
            "ts": times(0, 1, 240),
            "at": times(0, 1, 240),
            "complete_until": times(0, 1, 240),
            "amount": [1.0, 2.0, 3.0],
        }
    )

    def more() -> None:
        """Let another file come."""
        number = len(list((folder / "in").iterdir()))
        pq.write_table(rows, folder / "in" / f"{number}.parquet", coerce_timestamps="us")

    more()
    schema = "user string, ts timestamp, at timestamp, complete_until timestamp, amount double"
    frame = spark.readStream.schema(schema).parquet(str(folder / "in"))
    return {
        "gw": gw,
        "np": np,
        "spark": spark,
        "schema": schema,
        "more": more,
        "heard": heard(spark),
        "a": frame.drop("at"),
        "b": frame.drop("ts"),
    }


def sinks(spark: SparkSession, folder: Path) -> Names:
    """docs/sinks.md."""
    names = operations(spark, folder)
    frame = spark.readStream.schema("sensor string, ts timestamp, value double").parquet("in")
    keyed = gw.stream(frame.withColumnRenamed("value", "amount")).event_time("ts", _WATERMARKS)
    windowed = keyed.key_by("sensor").window(gw.TumblingEventTimeWindows.of("10 minutes"))
    return {**names, "windowed": windowed, "watermarks": _WATERMARKS}


def sql(spark: SparkSession, folder: Path) -> Names:
    """docs/sql.md: files of a stream, whose first windows end."""
    (folder / "in").mkdir()

    def more() -> None:
        """Let another file come."""
        number = len(list((folder / "in").iterdir()))
        ts = times(*(minute + 30 * number for minute in (1, 2)))
        rows = {"origin": ["JFK", "JFK"], "ts": ts, "delay": [1.0, 2.0]}
        pq.write_table(pa.table(rows), folder / "in" / f"{number}.parquet")

    return {"spark": spark, "more": more}


def match() -> Names:
    """docs/match.md: prices that fall and rise."""
    price = [9.0, 8.0, 6.0, 7.0, 7.5]
    return {"prices": pa.table({"symbol": ["x"] * 5, "ts": times(*range(5)), "price": price})}


def nothing() -> Names:
    """Pages that say all themselves."""
    return {}


def from_nothing(spark: SparkSession, folder: Path) -> Names:
    """Pages that make their session, which is the one that is there."""
    del spark, folder
    return {}


#: Without Spark's session.
PLAIN: dict[str, Callable[[], Names]] = {
    "docs/concepts/event_time.md": nothing,
    "docs/concepts/sessions.md": nothing,
    "docs/concepts/sliding.md": nothing,
    "docs/concepts/triggers.md": nothing,
    "docs/from_flink.md": from_flink,
    "docs/testing.md": nothing,
    "docs/gpus.md": gpus,
    "docs/chains.md": chains,
    "docs/joins.md": joins,
    "docs/kafka.md": nothing,
    "docs/match.md": match,
    "docs/over.md": over,
    "docs/scans.md": nothing,
    "docs/tables.md": nothing,
    "docs/windows.md": windows,
}
ON_SPARK: dict[str, Callable[[SparkSession, Path], Names]] = {
    "README.md": from_nothing,
    "docs/from_spark.md": from_spark,
    "docs/index.md": from_nothing,
    "docs/operations.md": operations,
    "docs/process.md": process,
    "docs/sinks.md": sinks,
    "docs/sql.md": sql,
    "docs/streaming.md": streaming,
    "docs/tutorial.md": from_nothing,
}
#: Whose code belongs elsewhere.
NOT_RUN = {
    "CONTRIBUTING.md": "a test that is to be written",
    "docs/prometheus.md": "a server, and logs of the whole process",
}
