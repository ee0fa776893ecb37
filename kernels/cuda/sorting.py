"""Sort rows by (key code, value)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import INT, INTS, INTS32
from gpu_windows.rules import LONG_MAX

_INT32_MAX = 2**31 - 1


def sort(codes: Any, values: Any, key_count: int, reach: tuple[int, int]) -> Any:
    """Return int64[n]: rows sorted by (code, value), stable; ``reach``: the extreme values."""
    words = _pack_pairs(codes, values, key_count, reach)
    if words is None:
        by_value = primitives.argsort(values)
        by_code = primitives.argsort(primitives.gather(codes, by_value))
        return primitives.gather(by_value, by_code)
    return primitives.argsort(words)


def sort_pairs(
    codes: Any, values: Any, key_count: int, reach: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """Return int64[n] thrice: rows sorted by (code, value), stable, and their codes and values.

    Neighbours in the order come from distant rows: code and value are gathered as one word.
    """
    words = _pack_pairs(codes, values, key_count, reach)
    if words is None:
        order = sort(codes, values, key_count, reach)
        return order, primitives.gather(codes, order), primitives.gather(values, order)
    order = primitives.argsort(words)
    sorted_codes, sorted_values = (primitives.empty(len(codes), np.int64) for _ in range(2))
    low, width = reach[0], reach[1] - reach[0] + 1
    sorted_words = primitives.gather(words, order)
    _unpack(len(codes), sorted_words, low, width, sorted_codes, sorted_values)
    return order, sorted_codes, sorted_values


def _pack_pairs(codes: Any, values: Any, key_count: int, reach: tuple[int, int]) -> Any | None:
    """Return a word a row that sorts as (code, value) does; None where 64 bits are too few."""
    low, width = reach[0], reach[1] - reach[0] + 1
    if key_count * width > LONG_MAX:
        return None
    small = key_count * width <= _INT32_MAX  # a radix sort of half the passes
    words = primitives.empty(len(codes), np.int32 if small else np.int64)
    _pack(len(codes), codes, values, low, width, words)
    return words


@kernel((INTS, INTS, INT, INT, INTS32), (INTS, INTS, INT, INT, INTS))
def _pack(codes: Any, values: Any, low: Any, width: Any, words: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        words[i] = codes[i] * width + (values[i] - low)


@kernel((INTS32, INT, INT, INTS, INTS), (INTS, INT, INT, INTS, INTS))
def _unpack(words: Any, low: Any, width: Any, codes: Any, values: Any) -> None:
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        word = np.int64(words[i])
        code = word // width
        codes[i], values[i] = code, low + (word - code * width)
