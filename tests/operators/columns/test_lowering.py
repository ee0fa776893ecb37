"""Partials of windows to result columns: sums of integers, which are put together in blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import ArithmeticOverflowError
from gpu_windows.operators.columns import lowering

#: Keys of more than two blocks, and one of the last block.
KEYS, LAST = 2 * lowering._BLOCK + 100, 2 * lowering._BLOCK + 7


def sum_twice(values: np.ndarray) -> pa.Table:
    """Return the sum of each value and itself, a key each."""
    rows = pa.table(
        {
            "k": np.tile(np.arange(len(values)), 2),
            "ts": np.zeros(2 * len(values), np.int64),
            "v": np.tile(values, 2),
        }
    )
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("ts", strategy).key_by("k")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("1 second"))
    return windows.aggregate(total=gw.sum("v")).sort_by("k")


def test_sums_of_many_windows_up_to_the_least() -> None:
    values = np.arange(KEYS) - KEYS // 2
    values[LAST] = -(2**62)
    assert sum_twice(values)["total"].to_pylist() == (2 * values).tolist()


def test_a_sum_that_does_not_fit_is_named_in_any_block() -> None:
    values = np.zeros(KEYS, np.int64)
    values[LAST] = 2**62
    with pytest.raises(ArithmeticOverflowError, match="got 9223372036854775808"):
        sum_twice(values)
