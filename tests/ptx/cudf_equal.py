"""DataFrames of cuDF in and out, on compiled kernels and a stand-in for cuDF."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.kernels.cuda import primitives
from tests.ptx import pretend_cudf
from tests.ptx.arrays import DeviceArray
from tests.ptx.pretend_cudf import DataFrame

MINUTE = 60_000_000
ROWS = 3_000


@pytest.fixture(autouse=True)
def copied() -> list[int]:
    """The rows of every copy to the host."""
    pretend_cudf.copied.clear()
    return pretend_cudf.copied


def table(unit: str = "us", tz: str | None = "UTC") -> pa.Table:
    random = np.random.default_rng(4)
    some = random.random(ROWS) < 0.9
    ticks = np.sort(random.integers(-30 * MINUTE, 60 * MINUTE, ROWS))
    per_tick = {"s": 1e-6, "ms": 1e-3, "us": 1, "ns": 1_000}[unit]
    times = np.floor(ticks * per_tick).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp(unit, tz)),
            "i": random.integers(0, 9, ROWS).astype(np.int32),
            "s": pa.array(random.integers(0, 5, ROWS)).cast(pa.string()),
            "b": pa.array(random.random(ROWS) < 0.5),
            "f": np.where(random.random(ROWS) < 0.05, np.nan, random.normal(size=ROWS)),
            "v": pa.array(random.integers(-(10**9), 10**9, ROWS), mask=~some),
            "n": pa.array(random.normal(size=ROWS), mask=~some),
            "d": pa.array(times, pa.timestamp(unit, tz)),
        }
    )


def windowed(source: Any, *keys: str, assigner: Any = None, device: str = "cuda") -> Any:
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 minute")
    hour = gw.SlidingEventTimeWindows.of("10 minutes", "1 minute")
    stream = gw.stream(source).event_time("ts", strategy).key_by(*keys)
    return stream.window(assigner or hour).options(device=device, batch_rows=1_000)


FOLDED = {
    "n": gw.count(), "some": gw.count("v"), "total": gw.sum("v"), "low": gw.min("f"),
    "high": gw.max("i"), "mean": gw.mean("f"), "spread": gw.stddev("f"),
    "of_ints": gw.variance("i"), "latest": gw.max("d"), "all": gw.bool_and("b"),
    "any": gw.bool_or("b"),
}  # fmt: skip


def assert_same(found: Any, expected: pa.Table) -> None:
    assert isinstance(found, DataFrame)
    got = found.to_arrow(preserve_index=False)
    assert got.schema.equals(expected.schema)
    assert len(got) == len(expected) > 0
    for name in expected.column_names:
        one, other = (each.column(name).to_pandas() for each in (got, expected))
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=name)
        else:
            assert one.equals(other), name


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What our kernels' memory moved, of 1,000 items and more: where to, and how many."""
    moves: list[tuple[str, int]] = []

    def noted(name: str) -> None:
        move = getattr(primitives, name)

        def moving(array: Any) -> Any:
            if isinstance(array, np.ndarray if name == "upload" else DeviceArray):
                moves.append((name, len(array)))
            return move(array)

        monkeypatch.setattr(primitives, name, moving)

    for name in ("upload", "to_host"):
        noted(name)
    return moves


@pytest.mark.parametrize("keys", [("i",), ("b", "i"), ("f",)])
def test_folded_windows_copy_no_row_to_the_host(
    copied: list[int], moved: list[tuple[str, int]], keys: tuple[str, ...]
) -> None:
    rows = table()
    found = windowed(DataFrame(rows), *keys).aggregate(**FOLDED)
    assert set(copied) <= {0}  # the types of the columns
    batch = 1_000  # rows of a call; distinct floats and results are fewer or more
    assert [move for move in moved if move[1] == batch] == []
    assert_same(found, windowed(rows, *keys, device="cpu").aggregate(**FOLDED))


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_times_of_other_units(copied: list[int], unit: str) -> None:
    rows = table(unit, "America/New_York")
    found = windowed(DataFrame(rows), "i").aggregate(n=gw.count(), total=gw.sum("v"))
    assert set(copied) <= {0}
    expected = windowed(rows, "i", device="cpu").aggregate(n=gw.count(), total=gw.sum("v"))
    assert_same(found, expected)


@pytest.mark.parametrize("nulls", [0, 7])
def test_times_that_are_no_whole_microseconds_are_refused(nulls: int) -> None:
    values = [1_000, 2_000, 2_001, 3_001, *[None] * nulls]
    rows = pa.table({"ts": pa.array(values, pa.timestamp("ns", "Europe/Berlin")), "i": values})
    for source in (rows, DataFrame(rows)):
        with pytest.raises(gw.errors.PrecisionError, match=r"with_columns.*00:00:00.000002001Z"):
            windowed(source, "i")


def test_strings_and_floats_with_nulls_alone_come_to_the_host(copied: list[int]) -> None:
    rows = table()
    aggregates = {"n": gw.count(), "total": gw.sum("n"), "other": gw.max("v")}
    found = windowed(DataFrame(rows), "s").aggregate(**aggregates)
    assert sorted(set(copied)) == [0, 1_000]
    assert sum(copied) == 2 * ROWS  # keys, and one column
    assert_same(found, windowed(rows, "s", device="cpu").aggregate(**aggregates))


@pytest.mark.parametrize(
    "made",
    [
        lambda query: query.aggregate(first=gw.first("v"), n=gw.count()),
        lambda query: query.aggregate(n=gw.count("v").filter("b")),
        lambda query: query.options(device="auto").aggregate(middle=gw.median("v")),
    ],
)
def test_what_is_not_folded_gives_a_frame_too(made: Any) -> None:
    rows = table()
    assert_same(made(windowed(DataFrame(rows), "i")), made(windowed(rows, "i", device="cpu")))


def test_sessions_give_a_frame_too() -> None:
    rows, gap = table(), gw.EventTimeSessionWindows.with_gap("20 seconds")
    found = windowed(DataFrame(rows), "i", assigner=gap).aggregate(n=gw.count())
    assert_same(found, windowed(rows, "i", assigner=gap, device="cpu").aggregate(n=gw.count()))


def test_rows_without_a_usable_time_are_given_back(copied: list[int]) -> None:
    rows = table()
    times = rows.column("ts").to_pylist()
    times[5] = times[700] = None
    rows = rows.set_column(0, "ts", pa.array(times, pa.timestamp("us", "UTC")))
    made = windowed(DataFrame(rows), "i").with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    found, rejected = made.result(), made.rejected()
    assert max(copied) <= 2
    expected = (
        windowed(rows, "i", device="cpu").with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    )
    assert_same(found, expected.result())
    names = ["ts", "v", "s", "rejection_reason"]
    back = rejected.to_arrow(preserve_index=False).select(names).to_pylist()
    assert back == expected.rejected().select(names).to_pylist()
    assert [row["v"] for row in back] == [rows.column("v")[at].as_py() for at in (5, 700)]


@pytest.mark.parametrize("count", [0, 1, 2_500])
def test_frames_without_a_row_that_counts(count: int) -> None:
    rows = table().slice(0, count)
    none = pa.nulls(count, pa.timestamp("us", "UTC"))
    for made in (rows.slice(0, 0), rows.set_column(0, "ts", none)):
        found = (
            windowed(DataFrame(made), "i")
            .with_outputs()
            .aggregate(n=gw.count(), spread=gw.stddev("v"))
        )
        assert len(found.result()) == 0
        assert len(found.rejected()) == len(made)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_without_a_zone(unit: str) -> None:
    rows = table(unit, None)
    found = windowed(DataFrame(rows), "i").aggregate(**FOLDED)
    expected = windowed(rows, "i", device="cpu").aggregate(**FOLDED)
    assert expected.schema.field("window_start").type == pa.timestamp("us")
    assert_same(found, expected)


def test_times_as_keys() -> None:
    rows = table()
    found = windowed(DataFrame(rows), "d").aggregate(n=gw.count())
    assert_same(found, windowed(rows, "d", device="cpu").aggregate(n=gw.count()))


def test_small_frames_may_stay_on_the_cpu() -> None:
    rows = table()
    found = windowed(DataFrame(rows), "i", device="auto").aggregate(**FOLDED)
    assert_same(found, windowed(rows, "i", device="cpu").aggregate(**FOLDED))


def test_expressions_are_arrows() -> None:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    hour = gw.TumblingEventTimeWindows.of("1 hour")

    def counted(source: Any) -> Any:
        rows = gw.stream(source).event_time("ts", strategy).where("i > 3")
        return rows.key_by("i").window(hour).aggregate(n=gw.count())

    found = counted(DataFrame(table()))
    assert isinstance(found, pa.Table)
    assert found.equals(counted(table()))


def test_a_frame_of_pandas_is_none_of_cudf() -> None:
    rows = table()
    found = windowed(rows.to_pandas(), "i").aggregate(n=gw.count())
    assert isinstance(found, pa.Table)
