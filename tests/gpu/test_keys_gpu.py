"""Keys made distinct on a real device, against the CPU's codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.cuda import texts
from gpu_windows.kernels.cuda.resident import Resident
from tests.examples import examples
from tests.kernels.key_cases import Values, assert_equal, define, evaluate, random_values
from tests.operators.columns.key_batches import (
    LANES,
    TEXTS,
    Batch,
    batches,
    codes_of,
    encoder_of,
)

pytestmark = pytest.mark.gpu

SMALL = {
    "nothing": random_values(0, 0, 1, apart=1),
    "one value": random_values(1, 5_000, 1, apart=1),
    "by value": random_values(2, 5_000, 100, apart=1, nulls=True),
    "by hash": random_values(3, 5_000, 100, apart=10**12, nulls=True),
    "ends": Values(np.array([-(2**63), 2**63 - 1, -(2**63)]), np.empty(0, np.bool_)),
}
LARGE = {
    "by value": random_values(4, 3_000_000, 1_000, apart=1),
    "one hot key": random_values(5, 3_000_000, 2, apart=10**15),
    "by hash": random_values(6, 3_000_000, 100_000, apart=10**9, nulls=True),
    "by sort": random_values(7, 4_000_000, 3_000_000, apart=10**9),
    "by sort, nulls": random_values(8, 4_000_000, 3_000_000, apart=10**9, nulls=True),
}


@pytest.mark.parametrize("name", SMALL)
def test_small(cuda: Backend, name: str) -> None:
    assert_equal(evaluate(cuda, SMALL[name]), define(SMALL[name]))


@pytest.mark.parametrize("name", LARGE)
def test_large(cuda: Backend, name: str) -> None:
    found = evaluate(cuda, LARGE[name])
    assert_equal(found, define(LARGE[name]))
    assert_equal(evaluate(cuda, LARGE[name]), found)


@examples(60)
@given(batches(most=60))
def test_small_codes_are_those_of_the_cpu(cuda: Backend, made: list[Batch]) -> None:
    assert codes_of(made, cuda) == codes_of(made)


def _columns(dtype: pa.DataType, rows: int) -> Batch:
    """Return many rows of a type's values, of which some are null; the column begins later."""
    random = np.random.default_rng(9)
    values = pa.array((LANES | TEXTS)[dtype], dtype)
    places = random.integers(0, len(values), rows)
    return [values.take(pa.array(places, mask=random.random(rows) < 0.1)).slice(3)]


@pytest.mark.parametrize("dtype", [*LANES, *TEXTS], ids=str)
def test_every_type(cuda: Backend, dtype: pa.DataType) -> None:
    if dtype in TEXTS and texts.library() is None:
        pytest.skip("needs pylibcudf")
    columns = _columns(dtype, 100_000)
    codes = encoder_of([columns]).encode(columns, cuda)
    assert isinstance(codes, Resident)
    np.testing.assert_array_equal(codes.on_host, codes_of([columns])[0])


@pytest.mark.parametrize(
    "written",
    [lambda n: n.cast(pa.string()), lambda n: n.cast(pa.string()).cast(pa.binary())],
    ids=["string", "binary"],
)
def test_many_strings(cuda: Backend, written: Callable[[Any], Any]) -> None:
    if texts.library() is None:
        pytest.skip("needs pylibcudf")
    random = np.random.default_rng(10)
    made = [
        [written(pa.array(random.integers(0, 50_000, 1_000_000))), pa.array(random.random(10**6))]
        for _ in range(2)
    ]
    for found, wanted in zip(codes_of(made, cuda), codes_of(made), strict=True):
        np.testing.assert_array_equal(found, wanted)
