"""Searches that kernels call; their strides double, so what is near is found at once."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.compile import JIT, inner
from gpu_windows.kernels.cpu import rules

_inlined = inner(forceinline=True, **JIT)


@_inlined
def first_from(codes: Any, ts: Any, code: Any, at: Any, low: Any) -> Any:
    """Return the first place from ``low`` on whose row is not before (code, at).

    Parameters
    ----------
    codes, ts : int64[m]
        Rows, sorted by (code, ts).
    """
    high, stride = low, 1
    while high < codes.size and rules.precedes(codes[high], ts[high], code, at):
        low = high + 1
        high += stride
        stride += stride
    high = min(high, codes.size)
    while low < high:
        middle = (low + high) // 2
        if rules.precedes(codes[middle], ts[middle], code, at):
            low = middle + 1
        else:
            high = middle
    return low


@_inlined
def first_after(codes: Any, ts: Any, code: Any, at: Any, low: Any) -> Any:
    """Return the first place from ``low`` on whose row is after (code, at).

    Parameters
    ----------
    codes, ts : int64[m]
        Rows, sorted by (code, ts).
    """
    high, stride = low, 1
    while high < codes.size and not rules.precedes(code, at, codes[high], ts[high]):
        low = high + 1
        high += stride
        stride += stride
    high = min(high, codes.size)
    while low < high:
        middle = (low + high) // 2
        if rules.precedes(code, at, codes[middle], ts[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@_inlined
def owner(starts: Any, item: Any) -> Any:
    """Return the last run with ``starts[run] <= item``: the one, if any, that holds the item.

    Parameters
    ----------
    starts : int64[n]
        First item of every run, ascending, ``starts[0] <= item``; a run may hold none.
    """
    low, high = 0, starts.size
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= item:
            low = middle
        else:
            high = middle
    return low
