"""What kernels ask about sorted runs and entries."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.cuda.primitives import device_function
from gpu_windows.kernels.cuda.rules import same_block


@device_function
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


@device_function
def first_entry(codes: Any, slices: Any, edge: Any, low: Any, last: Any) -> Any:
    """Return the first entry from ``low`` on of the key of entry ``last`` and a slice >= ``edge``.

    Parameters
    ----------
    codes, slices : int64[m]
        Entries, sorted by (code, slice).
    edge : int64
        At most ``slices[last]``.
    """
    code = codes[last]
    high = last
    while low < high:
        middle = (low + high) // 2
        if codes[middle] == code and slices[middle] >= edge:
            high = middle
        else:
            low = middle + 1
    return low


@device_function
def in_one_block(codes: Any, slices: Any, left: Any, right: Any, grid: Any) -> Any:
    """Say whether two places hold entries of one key and one block of ``grid.span`` slices."""
    return (
        left >= 0
        and right < codes.size
        and codes[left] == codes[right]
        and same_block(slices[left], slices[right], grid)
    )
