"""Columns of two inputs: one type that holds the values of both exactly, or an error."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.column_types.widening import common_type
from gpu_windows.errors import ColumnTypeError, PrecisionError

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
ALIKE = [
    (pa.int32(), pa.int64(), pa.int64()),
    (pa.int8(), pa.int16(), pa.int16()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.int64(), pa.decimal128(4, 2), pa.decimal128(22, 2)),
    (pa.decimal128(5, 0), pa.decimal128(4, 2), pa.decimal128(7, 2)),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Zurich"), pa.timestamp("us", "UTC")),
    (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    (pa.duration("ns"), pa.duration("us"), pa.duration("us")),
    (pa.null(), pa.string(), pa.string()),
    (pa.list_(pa.int8()), pa.list_(pa.int64()), pa.list_(pa.int64())),
    (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int16())]), pa.struct([("a", pa.int16())])),
    (
        pa.map_(pa.string(), pa.int8()),
        pa.map_(pa.string(), pa.int16()),
        pa.map_(pa.string(), pa.int16()),
    ),
]
APART = [
    (pa.int64(), pa.float64()),
    (pa.int32(), pa.string()),
    (pa.float64(), pa.decimal128(4, 2)),
    (pa.date32(), pa.timestamp("us")),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.decimal128(38, 0), pa.decimal128(38, 2)),
    (pa.bool_(), pa.int8()),
    (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.int8())])),
    (pa.list_(pa.int8()), pa.list_(pa.string())),
    (pa.list_(pa.int8()), pa.int8()),
]


@pytest.mark.parametrize(("one", "other", "wanted"), ALIKE)
def test_types_that_one_holds(one: pa.DataType, other: pa.DataType, wanted: pa.DataType) -> None:
    assert common_type(one, other) == wanted
    back = common_type(other, one)
    assert back is not None
    assert back == wanted or pa.types.is_timestamp(wanted)


@pytest.mark.parametrize(("one", "other"), APART)
def test_types_that_none_holds(one: pa.DataType, other: pa.DataType) -> None:
    assert common_type(one, other) is common_type(other, one) is None


def table(keys: pa.Array, time: str, value: str) -> pa.Table:
    times = pa.array([0] * len(keys), pa.timestamp("us", "UTC"))
    return pa.table({"k": keys, time: times, value: [*range(len(keys))]})


def keyed(rows: Any, time: str) -> gw.typing.KeyedStream:
    return gw.stream(rows).event_time(time, WATERMARKS).key_by("k")


#: Keys of two sides that are the same values, in types that are not.
KEYS: list[tuple[pa.Array, pa.Array, list[Any]]] = [
    (pa.array([1, 2], pa.int32()), pa.array([1, 2], pa.int64()), [1, 2]),
    (pa.array([1, 2], pa.int64()), pa.array([1, 2], pa.uint8()), [1, 2]),
    (pa.array([0.5, 2.0], pa.float32()), pa.array([0.5, 2.0]), [0.5, 2.0]),
    (
        pa.array([1, 2], pa.int32()),
        pa.array([Decimal("1.00"), Decimal("2.00")], pa.decimal128(5, 2)),
        [1, 2],
    ),
    (pa.array([1, 2], pa.uint64()), pa.array([1, 2], pa.int8()), [1, 2]),
    (pa.array(["a", "b"]), pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
    (pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
]
JOINS: list[Callable[[gw.typing.KeyedStream, gw.typing.KeyedStream], pa.Table]] = [
    lambda a, b: a.interval_join(b).between("0 s", "0 s").select(["v"], ["w"]),
    lambda a, b: a.temporal_join(b).select(["v"], ["w"]),
    lambda a, b: a.join(b).window(MINUTE).select(["v"], ["w"]),
]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(("left", "right", "keys"), KEYS)
def test_keys_are_joined(left: pa.Array, right: pa.Array, keys: list[Any], join: Any) -> None:
    tables = [table(left, "lt", "v"), table(right, "rt", "w")]
    found = [
        join(keyed(a, "lt"), keyed(b, "rt"))
        for a, b in (tables, (tables[0], tables[1].to_reader()))
    ]
    for each in found:
        rows = sorted((row["k"], row["left_v"], row["right_w"]) for row in each.to_pylist())
        assert rows == [(key, i, i) for i, key in enumerate(keys)]


def test_zones_of_the_same_instants_are_one_type() -> None:
    instants = pa.array([0, 3_600_000_000], pa.timestamp("us", "UTC"))
    zurich = instants.cast(pa.timestamp("us", "Europe/Zurich"))
    left, right = ({"k": ["a", "a"], t: ts} for t, ts in (("lt", instants), ("rt", zurich)))
    found = keyed(pa.table(left), "lt").interval_join(keyed(pa.table(right), "rt"))
    joined = found.between("0 s", "0 s").select(["lt"], ["rt"])
    assert (
        joined["left_lt"].cast("int64").to_pylist() == joined["right_rt"].cast("int64").to_pylist()
    )
    assert len(joined) == 2
    together = (
        gw.stream(pa.table(left))
        .event_time("lt", WATERMARKS)
        .union(gw.stream(pa.table(right)).event_time("rt", WATERMARKS))
    )
    assert together.window_all(MINUTE).aggregate(n=gw.count())["n"].to_pylist() == [2, 2]


def test_unions_widen_the_columns_of_all_inputs() -> None:
    def one(dtype: pa.DataType, value: Any) -> gw.typing.TimedStream:
        times = pa.array([0], pa.timestamp("us", "UTC"))
        rows = pa.table({"ts": times, "v": pa.array([value], dtype)})
        return gw.stream(rows).event_time("ts", WATERMARKS)

    parts = [one(pa.int8(), 1), one(pa.int32(), 2), one(pa.decimal128(3, 1), Decimal("0.5"))]
    found = parts[0].union(*parts[1:]).window_all(MINUTE).aggregate(s=gw.sum("v"))
    assert found["s"].to_pylist() == [Decimal("3.5")]
    with pytest.raises(
        ColumnTypeError, match=r"same types, or types that one holds.*cast one"
    ) as e:
        parts[0].union(one(pa.string(), "x"))
    assert e.value.column == "v"


def test_keys_that_no_type_holds_are_refused() -> None:
    left = table(pa.array([1]), "lt", "v")
    with pytest.raises(ColumnTypeError, match=r"a key has the same type in both inputs.*cast one"):
        keyed(left, "lt").interval_join(keyed(table(pa.array(["1"]), "rt", "w"), "rt"))
    fine = pa.array([1_001], pa.timestamp("ns", "UTC"))
    coarse = pa.array([1], pa.timestamp("us", "UTC"))
    join = keyed(table(coarse, "lt", "v"), "lt").interval_join(keyed(table(fine, "rt", "w"), "rt"))
    with pytest.raises(PrecisionError, match="a column of two inputs must be whole microseconds"):
        join.between("0 s", "0 s").select(["v"], ["w"])


def test_a_duration_that_is_too_long_for_the_other_input_is_refused() -> None:
    tables = [
        pa.table(
            {
                "ts": pa.array([0], pa.timestamp("us", "UTC")),
                "d": pa.array([2**62], pa.int64()).cast(pa.duration(unit)),
            }
        )
        for unit in ("s", "us")
    ]
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    one, other = (gw.stream(table).event_time("ts", strategy) for table in tables)
    with pytest.raises(ColumnTypeError, match=r"duration\[s\] is read as duration\[us\]"):
        one.union(other)
