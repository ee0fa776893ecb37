"""Columns in many chunks: nobody puts them together before they go to a device."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.lazy_array import Pieces

ROWS = 600


def _rows(chunks: int) -> pa.Table:
    """Return rows of types that are narrower than those of kernels, some of them null or late."""
    random = np.random.default_rng(3)
    ticks = np.sort(random.integers(0, 10**8, ROWS))
    ticks[::50] -= 9 * 10**7
    columns = {
        "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
        "k": pa.array(random.integers(0, 5, ROWS), pa.int8(), mask=random.random(ROWS) < 0.1),
        "i": pa.array(random.integers(0, 99, ROWS), pa.int16(), mask=random.random(ROWS) < 0.1),
        "f": pa.array(random.random(ROWS), pa.float32()),
        "b": pa.array(random.random(ROWS) < 0.5),
    }
    table = pa.table(columns)
    size = ROWS // chunks
    return pa.concat_tables([table.slice(begin, size) for begin in range(0, ROWS, size)])


def _query(rows: pa.Table, device: Any, **options: Any) -> Any:
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 second")
    windows = gw.SlidingEventTimeWindows.of("20 seconds", "5 seconds")
    aggregates = {
        "n": gw.count(), "i": gw.sum("i"), "f": gw.max("f"), "b": gw.count("b"),
        "first": gw.first("i"), "spread": gw.variance("i"),
    }  # fmt: skip
    timed = gw.stream(rows).event_time("ts", strategy).key_by("k").window(windows)
    return timed.options(device=device, **options).aggregate(**aggregates)


def test_chunks_of_columns_stay_apart_until_they_go_to_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[Any] = []
    move = primitives.upload

    def noted(array: Any) -> Any:
        moved.append(array)
        return move(array)

    monkeypatch.setattr(primitives, "upload", noted)
    found = _query(_rows(chunks=12), "cuda")
    apart = [array for array in moved if isinstance(array, Pieces)]
    assert sorted(array.parts[0].dtype.name for array in apart) == sorted(
        ["int64", "int8", "bool", "int16", "bool", "float32"]  # time, key and values, with nulls
    )
    assert {len(array.parts) for array in apart} == {12}
    assert not any("on_host" in vars(array) and array.size > ROWS for array in apart)
    _assert_equal(found, _query(_rows(chunks=1), "cpu"))


def _assert_equal(found: pa.Table, expected: pa.Table) -> None:
    """Compare, floats of sums within the bound of their order."""
    assert found.drop_columns(["spread"]).equals(expected.drop_columns(["spread"]))
    spread = [table["spread"].to_numpy() for table in (found, expected)]
    np.testing.assert_allclose(spread[0], spread[1], rtol=1e-12)


def test_columns_of_many_calls_go_to_the_device_one_call_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[tuple[str, int]] = []
    move = primitives.upload

    def noted(array: Any) -> Any:
        moved.append((threading.current_thread().name, len(array)))
        return move(array)

    monkeypatch.setattr(primitives, "upload", noted)
    calls, rows = 6, ROWS // 6
    found = _query(_rows(chunks=calls), "cuda", batch_rows=rows)
    ahead = [size for name, size in moved if name.startswith("upload") and size]
    assert ahead.count(rows) == 6 * calls, "time, a key and two values, two of them with nulls"
    later = [size for name, size in moved if size == rows and not name.startswith("upload")]
    assert len(later) == 2 * calls, "how rows rank for `first`, and which of them do"
    _assert_equal(found, _query(_rows(chunks=1), "cpu"))
