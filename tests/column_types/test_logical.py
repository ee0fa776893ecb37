"""Every form of the same values becomes one logical type, exactly, or is refused."""

from __future__ import annotations

import uuid
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.column_types.logical import is_logical, logical_table, logical_type
from gpu_windows.errors import ColumnTypeError, UnsupportedAggregateError

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
TEXTS = pa.array(["a", None, "a", ""])
BYTES = uuid.uuid4().bytes


def of(values: list[Any], dtype: pa.DataType) -> pa.Array:
    return pa.array([values[0], None, *values[1:]], dtype)


#: Forms of values, the logical type, and the values.
FORMS: list[tuple[pa.Array, pa.DataType]] = [
    (TEXTS.cast(pa.large_string()), pa.string()),
    (TEXTS.cast(pa.string_view()), pa.string()),
    (TEXTS.dictionary_encode(), pa.string()),
    (TEXTS.cast(pa.large_string()).dictionary_encode(), pa.string()),
    (
        pa.DictionaryArray.from_arrays(
            pa.array([1, None, 0], pa.uint8()), TEXTS.slice(2).cast(pa.string_view())
        ),
        pa.string(),
    ),
    (pc.run_end_encode(TEXTS), pa.string()),
    (of([b"x"], pa.large_binary()), pa.binary()),
    (of([b"x"], pa.binary_view()), pa.binary()),
    (of([b"xy"], pa.binary(2)), pa.binary()),
    (of([BYTES], pa.uuid()), pa.binary()),
    (of([255, 0], pa.uint8()), pa.int16()),
    (of([2**16 - 1], pa.uint16()), pa.int32()),
    (of([2**32 - 1], pa.uint32()), pa.int64()),
    (of([2**64 - 1, 0], pa.uint64()), pa.decimal128(20, 0)),
    (pa.array([np.float16(1.5), None], pa.float16()), pa.float32()),
    (of([Decimal("1.25")], pa.decimal32(5, 2)), pa.decimal128(5, 2)),
    (of([Decimal("-1.25")], pa.decimal64(12, 2)), pa.decimal128(12, 2)),
    (of([Decimal("1.25")], pa.decimal256(38, 2)), pa.decimal128(38, 2)),
    (of([date(1969, 12, 31)], pa.date64()), pa.date32()),
    (of([time(1, 2, 3)], pa.time32("s")), pa.time64("us")),
    (of([timedelta(seconds=-3)], pa.duration("s")), pa.duration("s")),
    (pa.array([-3, None]).cast(pa.timestamp("s", "UTC")), pa.timestamp("us", "UTC")),
    (pa.array([-3, None]).cast(pa.timestamp("ms")), pa.timestamp("us")),
    (of([["a"], []], pa.large_list(pa.string_view())), pa.list_(pa.string())),
    (of([[1, 2]], pa.list_(pa.uint8(), 2)), pa.list_(pa.int16())),
    (of([[1, 2], []], pa.list_view(pa.int8())), pa.list_(pa.int8())),
    (
        pa.array([["a", None], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.list_(pa.string()),
    ),
    (
        of([{"x": 1, "y": "p"}], pa.struct([("x", pa.uint8()), ("y", pa.large_string())])),
        pa.struct([("x", pa.int16()), ("y", pa.string())]),
    ),
    (
        pa.StructArray.from_arrays([pc.run_end_encode(TEXTS)], ["x"]),
        pa.struct([("x", pa.string())]),
    ),
    (of([[("a", 1)]], pa.map_(pa.string(), pa.uint8())), pa.map_(pa.string(), pa.int16())),
]


def values_of(array: pa.Array) -> list[Any]:
    """Return values; those of types of somebody's own as they are stored."""
    plain = array.storage if isinstance(array, pa.ExtensionArray) else array
    return list(plain.to_pylist())


@pytest.mark.parametrize(("form", "wanted"), FORMS, ids=lambda each: str(getattr(each, "type", "")))
def test_forms_become_logical_exactly(form: pa.Array, wanted: pa.DataType) -> None:
    assert logical_type(form.type) == wanted
    for part in (form, form.slice(1), form.slice(0, 0)):
        found = logical_table(pa.table({"v": part}))
        found.validate(full=True)
        assert found.schema.field("v").type == wanted
        assert found["v"].to_pylist() == values_of(part)
        assert is_logical(found.schema)


@pytest.mark.parametrize("dtype", [pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.null()])
def test_what_may_be_finer_or_has_no_type_stays(dtype: pa.DataType) -> None:
    assert logical_type(dtype) == dtype


def test_logical_columns_are_not_copied() -> None:
    table = pa.table({"v": pa.array([1, 2]), "k": ["a", "b"]})
    assert logical_table(table) is table
    mixed = table.append_column("u", pa.array([1, 2], pa.uint8()))
    found = logical_table(mixed)["v"].chunk(0)
    assert found.buffers()[1].address == table["v"].chunk(0).buffers()[1].address


def test_offsets_beyond_32_bits_are_counted_from_the_first_value() -> None:
    """A part of a large array; its pages are not touched, so that it takes no memory."""
    data = pa.py_buffer(np.zeros(2**31 + 10, np.uint8))
    offsets = pa.py_buffer(np.array([2**31, 2**31 + 3, 2**31 + 4], np.int64))
    array = pa.Array.from_buffers(pa.large_string(), 2, [None, offsets, data])
    found = logical_table(pa.table({"v": array}))["v"]
    assert found.to_pylist() == ["\0\0\0", "\0"]
    assert found.num_chunks == 2


@pytest.mark.parametrize(
    ("array", "remedy"),
    [
        (pa.array([86_400_000, None, 1], pa.int64()).cast(pa.date64()), "cast it to a timestamp"),
        (pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms", "UTC")), "set it to null"),
    ],
)
def test_what_would_be_lost_is_refused(array: pa.Array, remedy: str) -> None:
    table = pa.table({"v": array, "ts": pa.array([0] * len(array), pa.timestamp("us", "UTC"))})
    for source in (table, table.to_reader()):
        with pytest.raises(ColumnTypeError, match=f"has no place.*{remedy}") as caught:
            gw.stream(source).event_time("ts", WATERMARKS).window_all(MINUTE).aggregate(
                n=gw.count(), v=gw.count("v")
            )
        assert caught.value.column == "v"


def test_event_times_beyond_microseconds_are_rejected_rows_of_tables_and_readers() -> None:
    times = pa.array([2**60, -(2**60), 0, None], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"ts": times, "v": [1, 2, 3, 4]})
    for source in (table, table.to_reader()):
        outputs = (
            gw.stream(source)
            .event_time("ts", WATERMARKS)
            .window_all(MINUTE)
            .with_outputs()
            .aggregate(n=gw.count())
        )
        assert outputs.result()["n"].to_pylist() == [1]
        (counted,) = outputs.metrics().to_pylist()
        assert counted["out_of_range_timestamp"] == 2


def test_readers_are_read_once_in_any_form() -> None:
    table = pa.table({"v": pa.array([1, 2], pa.uint8())})
    stream = gw.stream(table.to_reader())
    assert stream.count_window_all(2).aggregate(s=gw.sum("v"))["s"].to_pylist() == [3]
    with pytest.raises(gw.errors.ReadTwiceError):
        stream.count_window_all(2).aggregate(s=gw.sum("v"))


def test_scans_read_logical_types_and_prune(tmp_path: Any) -> None:
    columns = {str(i): each for i, (each, _) in enumerate(FORMS) if len(each) == len(TEXTS)}
    columns |= {"k": TEXTS.cast(pa.large_string()), "u": pa.array([1, 2, 3, 4], pa.uint32())}
    del columns["5"]  # runs, which Arrow does not write
    columns = {name: each for name, each in columns.items() if "run_end" not in str(each.type)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=1)
    scan = gw.scan(tmp_path)
    assert is_logical(scan.schema)
    found = gw.stream(scan).count_window_all(4).aggregate(u=gw.collect_list("u"))
    assert found["u"].to_pylist() == [[1, 2, 3, 4]]


def test_numbers_of_another_meaning_are_no_numbers() -> None:
    """Months since 1970, of pandas, are neither microseconds nor a key of integers."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": ["a"], "month": pd.period_range("2024-01", periods=1, freq="M")})
    rows = gw.stream(frame)
    with pytest.raises(ColumnTypeError, match="event time must be TIMESTAMP"):
        rows.event_time("month", WATERMARKS).key_by("k").window(MINUTE).aggregate(n=gw.count())
    for key, aggregate in (("month", gw.count()), ("k", gw.max("month")), ("k", gw.sum("month"))):
        with pytest.raises((ColumnTypeError, UnsupportedAggregateError), match=r"pandas\.period"):
            rows.key_by(key).count_window(1).aggregate(n=aggregate)
    assert logical_type(pa.uuid()) == pa.binary()
