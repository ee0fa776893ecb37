"""Every type in every use: the query that is asked, and what plain Python says of its answer."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.column_types.logical import name_of
from gpu_windows.errors import GpuWindowsError

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
INSTANT = pa.timestamp("us", "UTC")


#: Two values of each logical type, as Python has them.
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [7, 3],
    "SMALLINT": [7, 3],
    "INT": [7, 3],
    "BIGINT": [7, 3],
    "FLOAT": [2.5, -0.25],
    "DOUBLE": [2.5, -0.25],
    "DECIMAL(18, 2)": [Decimal("7.25"), Decimal("3.50")],
    "DECIMAL(20, 0)": [Decimal(7), Decimal(3)],
    "STRING": ["pq", "ab"],
    "BINARY": [b"pq", b"ab"],
    "DATE": [date(2024, 3, 1), date(1969, 12, 31)],
    "TIMESTAMP": [datetime(2024, 3, 1, hour, tzinfo=UTC) for hour in (12, 1)],
    "TIMESTAMP of ns": [datetime(2024, 3, 1, hour, tzinfo=UTC) for hour in (12, 1)],
    "TIMESTAMP_NTZ": [datetime(2024, 3, 1, hour) for hour in (12, 1)],
    "INTERVAL DAY TO SECOND": [timedelta(seconds=7), timedelta(seconds=-3)],
    "TIME": [time(12, 30), time(1, 2, 3)],
    "ARRAY<INT>": [[7, 3], [1, 2]],
    "STRUCT<x INT>": [{"x": 7}, {"x": 3}],
    "MAP<STRING, INT>": [[("a", 1)], [("b", 2)]],
}


def values_of(dtype: pa.DataType) -> list[Any]:
    """Return values of a type, with a null and one that comes twice."""
    one, other = VALUES[name_of(dtype)]
    return [one, None, other, one]


def table_of(dtype: pa.DataType) -> pa.Table:
    """Return rows with the values of a type in ``v``."""
    values = values_of(dtype)
    if pa.types.is_run_end_encoded(dtype):
        column = pa.compute.run_end_encode(pa.array(values, dtype.value_type))
    elif pa.types.is_float16(dtype):
        column = pa.array(values, pa.float32()).cast(dtype)
    elif pa.types.is_timestamp(dtype):
        instant = pa.timestamp("us", "UTC" if dtype.tz else None)
        column = pa.array(values, instant).cast(dtype)
    else:
        column = pa.array(values, dtype)
    places = [*range(len(values))]
    return pa.table(
        {
            "k": pa.array(["a"] * len(values)),
            "ts": pa.array(places, pa.int64()).cast(INSTANT),
            "i": pa.array(places, pa.int64()),
            "v": column,
        }
    )


def keyed(source: Any, by: str = "k", time: str = "ts") -> gw.typing.KeyedStream:
    return gw.stream(source).event_time(time, WATERMARKS).key_by(by)


class Echo(gw.functions.KeyedProcessFunction):
    """Gives what it sees in a row, by way of its state."""

    def __init__(self, dtype: pa.DataType) -> None:
        self.dtype = dtype

    @property
    def state(self) -> Mapping[str, Any]:
        """What it keeps."""
        return {"last": gw.functions.ValueStateDescriptor(self.dtype)}

    def open(self, context: Any) -> None:
        self.last = context.state("last")

    def process_element(self, row: Any, context: Any) -> Iterator[dict[str, Any]]:
        del context
        self.last.update(row["v"])
        yield {"r": self.last.value()}


class Given(gw.functions.KeyedProcessFunction):
    """Gives what it sees in a row."""

    def process_element(self, row: Any, context: Any) -> Iterator[dict[str, Any]]:
        del context
        yield {"r": row["v"]}


def _of_column(source: Any) -> pa.DataType:
    from gpu_windows.datastream.stream import source_of

    return source_of(source).schema.field("v").type


def _aggregated(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda source: keyed(source).window(MINUTE).with_outputs().aggregate(r=make())


def _function(source: Any, *, in_state: bool) -> Any:
    dtype = _of_column(source)
    function = Echo(dtype) if in_state else Given()
    return keyed(source).with_outputs().process(function, ["v"], output=pa.schema([("r", dtype)]))


def known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def frozen(value: Any) -> Any:
    """Return a value that can be counted: instants as those of UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def times_counted(values: list[Any]) -> Any:
    return sorted(Counter(map(frozen, values)).items(), key=repr)


@dataclass(frozen=True)
class Step:
    """A use: the query, how its answer is read of the result, and what it must be."""

    ask: Callable[[Any], Any]
    expect: Callable[[list[Any]], Any]
    read: Callable[[list[dict[str, Any]]], Any] = lambda rows: rows[0]["r"]


def _all(rows: list[dict[str, Any]]) -> Any:
    return times_counted([row["r"] for row in rows])


def _mean(values: list[Any]) -> Any:
    """Return the mean; of decimals with four digits more."""
    some = known(values)
    mean = sum(some) / len(some)
    if not isinstance(mean, Decimal):
        return mean
    return mean.quantize(some[0].scaleb(-4), ROUND_HALF_UP)


STEPS: dict[str, Step] = {
    "key": Step(
        lambda s: keyed(s, "v").window(MINUTE).with_outputs().aggregate(r=gw.count()),
        times_counted,
        lambda rows: sorted(((frozen(row["v"]), row["r"]) for row in rows), key=repr),
    ),
    "event_time": Step(
        lambda s: keyed(s, "k", "v").window(MINUTE).with_outputs().aggregate(r=gw.count()),
        lambda values: len(known(values)),
        lambda rows: sum(row["r"] for row in rows),
    ),
    "order": Step(
        lambda s: keyed(s).window(MINUTE).with_outputs().top(1, "v", columns=["v"]),
        lambda values: max(map(frozen, known(values))),
        lambda rows: frozen(rows[0]["v"]),
    ),
    "count": Step(_aggregated(lambda: gw.count("v")), lambda values: len(known(values))),
    "sum": Step(_aggregated(lambda: gw.sum("v")), lambda values: sum(known(values))),
    "mean": Step(_aggregated(lambda: gw.mean("v")), _mean),
    "variance": Step(
        _aggregated(lambda: gw.variance("v")),
        lambda values: statistics.variance(map(float, known(values))),
    ),
    "min": Step(_aggregated(lambda: gw.min("v")), lambda values: min(known(values))),
    "by": Step(
        _aggregated(lambda: gw.arg_min("i", "v")),
        lambda values: values.index(min(known(values))),
    ),
    "first": Step(_aggregated(lambda: gw.first("v")), lambda values: values[0]),
    "collect_list": Step(_aggregated(lambda: gw.collect_list("v")), known),
    "count_distinct": Step(
        _aggregated(lambda: gw.count_distinct("v")), lambda values: len({*known(values)})
    ),
    "quantile": Step(
        _aggregated(lambda: gw.median("v")), lambda values: statistics.median(known(values))
    ),
    "approx_quantile": Step(
        _aggregated(lambda: gw.approx_quantile("v", 1.0)), lambda values: max(known(values))
    ),
    "approx_count_distinct": Step(
        _aggregated(lambda: gw.approx_count_distinct("v")), lambda values: len({*known(values)})
    ),
    "bool_and": Step(_aggregated(lambda: gw.bool_and("v")), lambda values: all(known(values))),
    "frame": Step(
        lambda s: keyed(s).over(gw.Rows()).with_outputs().aggregate(["i"], r=gw.sum("v")),
        lambda values: sum(known(values)),
        lambda rows: max(rows, key=lambda row: row["i"])["r"],
    ),
    "lag": Step(
        lambda s: keyed(s).over().with_outputs().aggregate(["i"], r=gw.lag("v")),
        lambda values: times_counted([None, *values[:-1]]),
        _all,
    ),
    "carried": Step(
        lambda s: (
            keyed(s)
            .interval_join(keyed(s))
            .between("0 s", "0 s")
            .with_outputs()
            .select({"r": "v"}, [])
        ),
        times_counted,
        _all,
    ),
    "result": Step(lambda s: _function(s, in_state=False), times_counted, _all),
    "state": Step(lambda s: _function(s, in_state=True), times_counted, _all),
}


def alike(one: Any, other: Any) -> bool:
    """Whether an answer is what it must be; numbers that are rounded, nearly."""
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(float(one), float(other), rel_tol=1e-12)
    return bool(frozen(one) == frozen(other))


def outcome(
    use: str,
    dtype: pa.DataType,
    rows_of: Callable[[Any], list[dict[str, Any]]],
    source: Any = None,
) -> str:
    """Return what becomes of a type in a use: "right", "refused: ..." or what is wrong."""
    step, source = STEPS[use], table_of(dtype) if source is None else source
    try:
        rows = rows_of(step.ask(source))
    except GpuWindowsError as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001 - it is the outcome
        return f"wrong: {type(error).__name__}: {error}"
    values = values_of(dtype)
    if use == "event_time" and not pa.types.is_timestamp(dtype):
        values = [*range(3)]
    found, wanted = step.read(rows), step.expect(values)
    return "right" if alike(found, wanted) else f"wrong: {found!r} is not {wanted!r}"


def rows_here(outputs: Any) -> list[dict[str, Any]]:
    """Return what the local runner gives."""
    found: list[dict[str, Any]] = outputs.result().to_pylist()
    return found
