"""The CUDA kernels of joins against definitions in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import gpu_windows as gw
from gpu_windows.kernels import backend
from tests.examples import examples
from tests.kernels.join_cases import MANY, Join, assert_equal, define, evaluate, joins
from tests.ptx.plugin import device as installed
from tests.ptx.traffic import Traffic, counting

CUDA = backend.select("cuda")


@examples(40)
@given(joins(most_rows=12))
def test_small(case: Join) -> None:
    assert_equal(evaluate(CUDA, case), define(case))


@pytest.mark.parametrize("name", MANY)
def test_many_rows(name: str) -> None:
    assert_equal(evaluate(CUDA, MANY[name]), define(MANY[name]))


# ---- whole joins

WIDE = ("text", "f", "g", "h")
ROWS, KEYS = 2_500, 9
#: Values that say how many keys a side has and, if they are few, which: a fixed number.
FOUND_KEYS = 4 + 2 * 1_024


def side(seed: int, nulls: float) -> Any:
    """Rows in order of time but for a few, of which a share has no key."""
    random = np.random.default_rng(seed)
    ts = np.sort(random.integers(-100_000_000, 100_000_000, ROWS)) // 1_000 * 1_000
    ts[::50] = random.permutation(ts[::50])
    no_key = random.random(ROWS) < nulls
    columns: dict[str, Any] = {name: random.random(ROWS) for name in WIDE[1:]}
    columns |= {
        "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        "k": pa.array(random.integers(0, KEYS, ROWS), mask=no_key if nulls else None),
        "text": [f"the text of row {row}" for row in range(ROWS)],
        "v": np.arange(ROWS),
    }
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("200 seconds")
    return gw.stream(pa.table(columns)).event_time("ts", strategy).key_by("k")


def joined(
    device: Any, *columns: str, how: Any = "inner", nearest: Any = None, nulls: float = 0.02
) -> pa.Table:
    between = side(1, nulls).interval_join(side(2, nulls)).between("-1 second", "500 milliseconds")
    between = between.upper_bound_exclusive().options(device=device)
    between = between if nearest is None else between.nearest(nearest)
    rights = [] if how in ("semi", "anti") else columns
    return between.select(columns, rights, how=how)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_rows_of_a_join_are_those_of_the_cpu_and_in_their_order(how: str) -> None:
    assert joined("cuda", "v", "text", how=how).equals(joined("cpu", "v", "text", how=how))


@pytest.mark.parametrize("nearest", ["before", "after", "either"])
def test_nearest_rows_are_those_of_the_cpu(nearest: str) -> None:
    found = joined("cuda", "v", "text", how="left", nearest=nearest)
    assert found.equals(joined("cpu", "v", "text", how="left", nearest=nearest))


def test_nothing_of_a_join_moves_but_keys_times_and_numbers_of_pairs() -> None:
    def moved(*columns: str) -> tuple[Traffic, int]:
        with counting(installed()) as counted:
            pairs = len(joined("cuda", *columns, nulls=0))
        return counted, pairs

    (narrow, pairs), (wide, _) = moved("v"), moved("v", *WIDE)
    assert (wide.up, wide.down) == (narrow.up, narrow.down)
    assert pairs > ROWS
    assert [each for each in wide.up if each[0] > KEYS + 1] == 4 * [(ROWS, 8 * ROWS)]
    down = [each for each in wide.down if each[0] > KEYS]
    assert down == 2 * [(FOUND_KEYS, 8 * FOUND_KEYS)] + 2 * [(pairs, 4 * pairs)]
