"""Moves of large arrays to a real device and back.

``compute-sanitizer python -m pytest tests/gpu -m gpu -k small`` checks memory accesses.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.cuda.staging import CHUNK_BYTES, CHUNKS, MIN_BYTES

pytestmark = pytest.mark.gpu

_RING = CHUNK_BYTES * CHUNKS

#: Bytes, around where another way is taken, or another piece begins.
SIZES = sorted(
    base + more
    for base in (MIN_BYTES, CHUNK_BYTES, 2 * CHUNK_BYTES, _RING, 3 * _RING)
    for more in (-8, 0, 8)
)


def _values(size: int, dtype: Any = np.int64) -> Any:
    """Return values of ``size`` bytes; no piece is like another, for its size is no multiple."""
    some = np.random.default_rng(size).integers(0, 100, 65_521).astype(dtype)
    return np.resize(some, size // some.itemsize)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64, np.bool_])
@pytest.mark.parametrize("size", SIZES)
def test_there_and_back(cuda: Backend, size: int, dtype: Any) -> None:
    values = _values(size, dtype)
    host = values.copy()
    there = cuda.to_device(host)
    host[:] = 1  # the transfer may still run
    found = cuda.to_host(there)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_small_strided(cuda: Backend) -> None:
    values = _values(3 * CHUNK_BYTES)
    for strided in (values[::2], values[::-1]):
        np.testing.assert_array_equal(cuda.to_host(cuda.to_device(strided)), strided)


def test_kernels_wait_for_what_they_read_and_memory_for_who_has_it(cuda: Backend) -> None:
    index = cuda.to_device(np.arange(CHUNK_BYTES)[::-1])
    taken, expected = [], []
    for turn in range(20):
        values = _values(8 * CHUNK_BYTES) + turn
        there = cuda.to_device(values)
        taken.append(cuda.take(there, index))  # then the memory is free, the kernel may still run
        expected.append(values[::-1])
        del there
    for found, wanted in zip(taken, expected, strict=True):
        np.testing.assert_array_equal(cuda.to_host(found), wanted)


def test_threads_at_once(cuda: Backend) -> None:
    def there_and_back(turn: int) -> bool:
        values = _values(2 * CHUNK_BYTES + 8 * turn)
        return np.array_equal(cuda.to_host(cuda.to_device(values)), values)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(there_and_back, range(40)))


def test_uploads_for_later_land_before_kernels_read_them_and_before_their_memory_is_used(
    cuda: Backend,
) -> None:
    index = cuda.to_device(np.arange(CHUNK_BYTES)[::-1])
    taken, expected = [], []
    for turn in range(20):
        values = _values(8 * CHUNK_BYTES) + turn
        later, never = cuda.upload(values), cuda.upload(values)
        del never  # the transfer may still run
        taken.append(cuda.take(cuda.to_device(later), index))
        expected.append(values[::-1])
        np.testing.assert_array_equal(np.asarray(later), values)
    for found, wanted in zip(taken, expected, strict=True):
        np.testing.assert_array_equal(cuda.to_host(found), wanted)
