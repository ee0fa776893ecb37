"""Keys encoded where kernels run: a device that runs out of memory changes no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.kernels import backend
from gpu_windows.kernels.backend import select
from gpu_windows.kernels.cuda.resident import Resident
from gpu_windows.operators import device
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.device import Kernels, encode_keys
from tests.operators.columns.key_batches import Batch, batches, codes_of, encoder_of
from tests.operators.pretend_device import PretendDevice


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> PretendDevice:
    """A device that holds memory, and that operators take."""
    return taken(monkeypatch)


def taken(monkeypatch: pytest.MonkeyPatch) -> PretendDevice:
    """Return a device that holds memory; operators take it, in a task of their own."""
    pretended, cpu = PretendDevice(monkeypatch), select("cpu")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended.backend)
    monkeypatch.setattr(device, "probe", lambda chosen: chosen)
    monkeypatch.setattr(backend._Process, "task", backend.Task(backend.Grant(("0",))))
    return pretended


def two_columns(rows: int, keys: int) -> Batch:
    random = np.random.default_rng(rows)
    numbers = random.integers(0, keys, rows) * 10**9
    return [pa.array(numbers), pa.array(numbers % 7 / 2, mask=numbers % 5 == 0)]


@given(batches(most=12), st.integers(0, 30))
def test_codes_are_the_same_wherever_memory_runs_out(made: list[Batch], fails_at: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        pretended = taken(patch)
        pretended.fails_at = fails_at
        kernels, encoder = Kernels("cuda"), encoder_of(made)
        found = [encode_keys(kernels, encoder, columns).tolist() for columns in made]
    assert found == codes_of(made)


@pytest.mark.usefixtures("holding")
def test_codes_stay_there_and_the_values_go() -> None:
    columns = two_columns(1_000, 50)
    kernels = Kernels("cuda")
    codes = encode_keys(kernels, encoder_of([columns]), columns)
    assert isinstance(codes, Resident)
    assert kernels.take_counters().cuda_batches == 0  # what takes the codes is counted
    assert codes.tolist() == codes_of([columns])[0]


def test_a_batch_that_does_not_fit_is_encoded_in_halves(holding: PretendDevice) -> None:
    columns = two_columns(100_000, 5_000)
    expected, kernels = codes_of([columns])[0], Kernels("cuda")
    assert encode_keys(kernels, encoder_of([columns]), columns).tolist() == expected
    holding.limit = int(holding.most / 1.2)
    found = encode_keys(kernels, encoder_of([columns]), columns)
    assert found.tolist() == expected
    assert isinstance(found, Resident)  # put together on the device
    assert kernels.take_counters().device_fallbacks == 0
    del found
    assert holding.held == 0


def test_what_fits_in_no_way_is_the_cpus_and_that_is_counted(holding: PretendDevice) -> None:
    columns = two_columns(100_000, 5_000)
    holding.limit = 1_000
    kernels, encoder = Kernels("cuda"), encoder_of([columns])
    found = encode_keys(kernels, encoder, columns)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == codes_of([columns])[0]
    counted = kernels.take_counters()
    assert (counted.cpu_batches, counted.cuda_batches) == (0, 0)
    assert counted.device_fallbacks == 8  # of at most 16,384 rows
    holding.limit = 1 << 40
    assert isinstance(encode_keys(kernels, encoder, columns), Resident)  # the task has its device
    assert kernels.take_counters().device_fallbacks == 0


def test_auto_keeps_small_batches_off_the_device(
    holding: PretendDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_to: list[Any] = []
    encode = KeyEncoder.encode

    def noted(keys: KeyEncoder, columns: Any, backend: Any = None) -> Any:
        given_to.append(backend.name)
        return encode(keys, columns, backend)

    monkeypatch.setattr(KeyEncoder, "encode", noted)
    for rows in (1_000, device.MIN_DEVICE_ROWS):
        columns = two_columns(rows, 10)
        encode_keys(Kernels("auto"), encoder_of([columns]), columns)
    assert given_to == ["cpu", "cuda"]
    assert holding.held == 0
