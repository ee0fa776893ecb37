"""Binary searches that kernels call."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.cuda import rules
from gpu_windows.kernels.cuda.compiler import device_function


@device_function
def first_above(values: Any, item: Any, low: Any, high: Any) -> Any:
    """Return the first place in [low, high) whose value is greater than ``item``, else ``high``.

    Parameters
    ----------
    values : int64[n]
        Ascending.
    """
    while low < high:
        middle = (low + high) // 2
        if values[middle] > item:
            high = middle
        else:
            low = middle + 1
    return low


@device_function
def first_from(codes: Any, ts: Any, code: Any, at: Any, low: Any, high: Any) -> Any:
    """Return the first place in [low, high) whose row is not before (code, at), else ``high``.

    Parameters
    ----------
    codes, ts : int64[m]
        Rows, sorted by (code, ts).
    """
    while low < high:
        middle = (low + high) // 2
        if rules.precedes(codes[middle], ts[middle], code, at):
            low = middle + 1
        else:
            high = middle
    return low


@device_function
def first_after(codes: Any, ts: Any, code: Any, at: Any, low: Any, high: Any) -> Any:
    """Return the first place in [low, high) whose row is after (code, at), else ``high``.

    Parameters
    ----------
    codes, ts : int64[m]
        Rows, sorted by (code, ts).
    """
    while low < high:
        middle = (low + high) // 2
        if rules.precedes(code, at, codes[middle], ts[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@device_function
def owner(starts: Any, item: Any) -> Any:
    """Return the last run with ``starts[run] <= item``: the one, if any, that holds the item.

    Parameters
    ----------
    starts : int64[n]
        First item of every run, ascending, ``starts[0] <= item``; a run may hold none.
    """
    return first_above(starts, item, 1, starts.size) - 1
