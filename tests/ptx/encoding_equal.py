"""Codes of keys that are made on a device against those of the CPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import gpu_windows as gw
from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda.resident import Resident
from gpu_windows.vocabulary.options import Device
from tests.examples import examples
from tests.operators.columns.key_batches import (
    LANES,
    OTHERS,
    TEXTS,
    Batch,
    batches,
    codes_of,
    encoder_of,
)
from tests.operators.columns.pretend_texts import PretendLibrary

CUDA = backend.select("cuda")


@examples(60)
@given(batches(most=12))
def test_codes_are_those_of_the_cpu(made: list[Batch]) -> None:
    assert codes_of(made, CUDA) == codes_of(made)


@examples(40)
@given(batches(most=12))
def test_so_are_those_with_a_library_for_strings(made: list[Batch]) -> None:
    with PretendLibrary().used():
        assert codes_of(made, CUDA) == codes_of(made)


@examples(20)
@given(batches(most=12))
def test_keys_that_were_encoded_before_keep_their_codes(made: list[Batch]) -> None:
    """Also where the CPU takes over what a device has done already, and for later batches."""
    encoder, expected = encoder_of(made), codes_of(made)
    for columns, codes in zip(made, expected, strict=True):
        assert encoder.encode(columns, CUDA).tolist() == codes
        assert encoder.encode(columns).tolist() == codes
        assert encoder.encode(columns, CUDA).tolist() == codes


@pytest.mark.parametrize("dtype", [*LANES, *TEXTS, *OTHERS], ids=str)
def test_codes_stay_on_the_device_that_made_them(dtype: pa.DataType) -> None:
    column = pa.array((LANES | TEXTS | OTHERS)[dtype], dtype)
    encoded = encoder_of([[column]]).encode([column], CUDA)
    assert isinstance(encoded, Resident) == (dtype in LANES)
    with PretendLibrary().used():
        encoded = encoder_of([[column]]).encode([column], CUDA)
    assert isinstance(encoded, Resident) == (dtype not in OTHERS)
    numbers = pa.array(range(len(column)))
    both = encoder_of([[column, numbers]]).encode([column, numbers], CUDA)
    assert isinstance(both, Resident)


@pytest.mark.parametrize("names", [["i"], ["f", "s"]], ids=" and ".join)
def test_results_have_the_keys_in_the_order_of_the_cpu(names: list[str]) -> None:
    random, rows = np.random.default_rng(5), 600
    numbers, missing = random.integers(0, 9, rows), random.random(rows) < 0.2
    columns = {
        "ts": pa.array(np.arange(rows) * 10_000, pa.timestamp("us", "UTC")),
        "i": pa.array(numbers * 10**12, mask=missing),
        "f": pa.array(np.where(numbers == 3, np.nan, numbers - 4.0)),
        "s": pa.array(list("abcdefghi")).take(pa.array(numbers[::-1], mask=missing)),
        "v": random.integers(0, 100, rows),
    }
    stream = gw.stream(pa.table(columns)).event_time(
        "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
    )
    windowed = stream.key_by(*names).window(gw.TumblingEventTimeWindows.of("1 second"))
    aggregates = {"n": gw.count(), "total": gw.sum("v")}

    def result(device: Device) -> str:  # as text: NaN is not equal to itself
        return str(windowed.options(device=device).aggregate(**aggregates).to_pydict())

    expected = result("cpu")
    assert result("cuda") == expected
    with PretendLibrary().used():
        assert result("cuda") == expected
