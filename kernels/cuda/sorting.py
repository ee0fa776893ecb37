"""Sort rows by (key code, value)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BYTES, INT, INTS, INTS16, INTS32
from gpu_windows.rules import LONG_MAX

_INT32_MAX = 2**31 - 1

Reach = tuple[int, int]


def sort_pairs(codes: Any, values: Any, span: Reach, reach: Reach | None) -> tuple[Any, Any, Any]:
    """Return int64[n] thrice: what sorts rows by (code, value), stably, and both in that order.

    Parameters
    ----------
    codes, values : int64[n]
    span, reach : (int, int)
        The extreme codes, or numbers beyond; the extreme values. None: values ascend.
    """
    if reach is None:
        order = primitives.argsort(_shorten(codes, span))
        return order, *_take_pairs(order, codes, values)
    words = _pack_pairs(codes, values, span, reach)
    if words is None:
        by_value = primitives.argsort(values)
        by_code = primitives.argsort(primitives.gather(codes, by_value))
        order = primitives.gather(by_value, by_code)
        return order, *_take_pairs(order, codes, values)
    order = primitives.argsort(words)
    sorted_codes, sorted_values = (primitives.empty(len(codes), np.int64) for _ in range(2))
    width = reach[1] - reach[0] + 1
    _unpack(len(codes), words, order, span[0], reach[0], width, sorted_codes, sorted_values)
    return order, sorted_codes, sorted_values


def _shorten(codes: Any, span: Reach) -> Any:
    """Return what sorts as codes do, of as few bytes as hold it: a radix sort passes over each."""
    bits = (span[1] - span[0]).bit_length() + 1  # one is the sign
    if bits > 32:
        return codes
    short = next(dtype for dtype in (np.int8, np.int16, np.int32) if np.iinfo(dtype).bits >= bits)
    words = primitives.empty(len(codes), short)
    _subtract(len(codes), codes, span[0], words)
    return words


@kernel((INTS, INT, BYTES), (INTS, INT, INTS16), (INTS, INT, INTS32))
def _subtract(codes: Any, first: Any, words: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        words[i] = codes[i] - first


def _take_pairs(order: Any, codes: Any, values: Any) -> tuple[Any, Any]:
    """Return codes and values in an order."""
    sorted_codes, sorted_values = (primitives.empty(len(codes), np.int64) for _ in range(2))
    _gather(len(codes), order, codes, values, sorted_codes, sorted_values)
    return sorted_codes, sorted_values


@kernel((INTS, INTS, INTS, INTS, INTS))
def _gather(order: Any, codes: Any, values: Any, sorted_codes: Any, sorted_values: Any) -> None:
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row = order[i]
        sorted_codes[i], sorted_values[i] = codes[row], values[row]


def _pack_pairs(codes: Any, values: Any, span: Reach, reach: Reach) -> Any | None:
    """Return a word a row that sorts as (code, value) does; None where 64 bits are too few."""
    low, width = reach[0], reach[1] - reach[0] + 1
    words_count = (span[1] - span[0] + 1) * width
    if words_count > LONG_MAX:
        return None
    small = words_count <= _INT32_MAX  # a radix sort of half the passes
    words = primitives.empty(len(codes), np.int32 if small else np.int64)
    _pack(len(codes), codes, values, span[0], low, width, words)
    return words


@kernel((INTS, INTS, INT, INT, INT, INTS32), (INTS, INTS, INT, INT, INT, INTS))
def _pack(codes: Any, values: Any, first: Any, low: Any, width: Any, words: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        words[i] = (codes[i] - first) * width + (values[i] - low)


@kernel((INTS32, INTS, INT, INT, INT, INTS, INTS), (INTS, INTS, INT, INT, INT, INTS, INTS))
def _unpack(
    words: Any, order: Any, first: Any, low: Any, width: Any, codes: Any, values: Any
) -> None:
    """Take words in an order: code and value are one word, for rows in order lie far apart."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        word = np.int64(words[order[i]])
        code = word // width
        codes[i], values[i] = first + code, low + (word - code * width)
