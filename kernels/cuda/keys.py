"""Distinct keys: a table of the first row of every value, by the value itself, a hash or a sort.

A row looks at its place in the table and writes there only if it comes before the row that it
finds: once the first rows of all keys are known, which is soon, rows only read. Which place a hash
gives a value may depend on who comes first; which row is the first one does not, and the values are
put in the order of these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import (
    ArrowArray,
    DeviceBools,
    DeviceFloats,
    DeviceInts,
)
from gpu_windows.kernels.cuda import primitives, reach
from gpu_windows.kernels.cuda import texts as strings
from gpu_windows.kernels.cuda.compiler import cuda, load_relaxed
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BOOLS, FLOATS, INT, INTS
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Places that a table may have at least, however few the rows are.
_WIDTH_ALWAYS = 1 << 16
#: Places of a table of hashed values: as many as a device's cache holds.
_MAX_SLOTS = 1 << 21
#: Places that a value looks at before there are too many values.
_MAX_PROBES = 32
#: Rows of the first launch that places keys.
_FIRST_WAVE = 1 << 12
#: What is in a place of no row.
_FREE = LONG_MAX


def distinct(values: DeviceInts, valid: DeviceBools) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.keys.Keys.distinct`."""
    count = len(values)
    if count == 0:
        return values, primitives.empty(0, np.int64)
    low, high = _reach_of(values, valid)
    if low > high:  # none is valid
        return primitives.empty(0, np.int64), primitives.full(count, 0)
    width = high - low + 1
    if width <= max(count, _WIDTH_ALWAYS):
        firsts, places = _placed_by_value(values, valid, low, width)
    else:
        firsts, places = _placed_by_hash(values, valid) or _placed_by_sort(values, valid)
    return _in_order(values, firsts, places), places


def _reach_of(values: Any, valid: Any) -> tuple[int, int]:
    """Return the smallest and the greatest valid value; (LONG_MAX, LONG_MIN) if none is valid.

    See `reach.reach_of`, which takes all values.
    """
    if len(valid) == 0:
        return reach.reach_of(values)
    marks = reach.make_marks()
    _reach(len(values), values, valid, marks)
    smallest, greatest, _ = reach.read_marks(marks)
    return smallest, greatest


@kernel((INTS, BOOLS, INTS))
def _reach(values: Any, valid: Any, marks: Any) -> None:
    thread, smallest, greatest = cuda.grid(1), LONG_MAX, LONG_MIN
    for i in range(thread, values.size, cuda.gridsize(1)):
        if valid[i]:
            smallest, greatest = min(smallest, values[i]), max(greatest, values[i])
    if smallest <= greatest:
        reach.note_extremes(thread, smallest, greatest, marks)


# ---- a table of first rows, int64[places], and where each row is in it, int64[n]; rows that are
# ---- not valid are after the last place


def _waves(rows: int) -> list[tuple[int, int]]:
    """Return the rows of the launches that place keys: a few first, then all others.

    All threads in flight, 100,000 and more, would find no key in its place at their first row, and
    each change it by an atomic: those of one key one after the other.
    """
    first = min(rows, _FIRST_WAVE)
    return [(0, first), (first, rows)]


def _placed_by_value(values: Any, valid: Any, low: int, width: int) -> tuple[Any, Any]:
    firsts, places = primitives.full(width, _FREE), primitives.empty(len(values), np.int64)
    masked = int(len(valid) > 0)
    for begin, end in _waves(len(values)):
        _place_by_value(end - begin, begin, end, values, masked, valid, low, width, firsts, places)
    return firsts, places


@kernel((INT, INT, INTS, INT, BOOLS, INT, INT, INTS, INTS))
def _place_by_value(
    begin: Any, end: Any, values: Any, masked: Any, valid: Any, low: Any, width: Any,
    firsts: Any, places: Any,
) -> None:  # fmt: skip
    for i in range(begin + cuda.grid(1), end, cuda.gridsize(1)):
        if masked and not valid[i]:
            places[i] = width
            continue
        place = values[i] - low
        places[i] = place
        if i < load_relaxed(firsts, place):
            cuda.atomic.min(firsts, place, i)


def _placed_by_hash(values: Any, valid: Any) -> tuple[Any, Any] | None:
    """Return None where there are too many values for the table."""
    size = min(1 << (2 * len(values) - 1).bit_length(), _MAX_SLOTS)
    firsts, places = primitives.full(size, _FREE), primitives.empty(len(values), np.int64)
    overfull, masked = primitives.full(1, 0), int(len(valid) > 0)
    for begin, end in _waves(len(values)):
        _place_by_hash(
            end - begin, begin, end, values, masked, valid, _MAX_PROBES, firsts, places, overfull
        )
    return None if int(primitives.to_host(overfull)[0]) else (firsts, places)


@kernel((INT, INT, INTS, INT, BOOLS, INT, INTS, INTS, INTS))
def _place_by_hash(
    begin: Any, end: Any, values: Any, masked: Any, valid: Any, probes: Any,
    firsts: Any, places: Any, overfull: Any,
) -> None:  # fmt: skip
    mask = firsts.size - 1
    for i in range(begin + cuda.grid(1), end, cuda.gridsize(1)):
        if masked and not valid[i]:
            places[i] = firsts.size
            continue
        if load_relaxed(overfull, 0):
            return
        value = values[i]
        mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
        place, looked = np.int64(mixed >> np.uint64(32)) & mask, 0
        row = load_relaxed(firsts, place)
        while looked < probes:
            if row == _FREE:
                row = cuda.atomic.cas(firsts, place, _FREE, i)
                if row == _FREE:
                    row = i
            if values[row] == value:  # a place is a value's for good; only its row may change
                break
            place, looked = (place + 1) & mask, looked + 1
            row = load_relaxed(firsts, place)
        if looked == probes:
            cuda.atomic.max(overfull, 0, 1)
            return
        places[i] = place
        if i < row:
            cuda.atomic.min(firsts, place, i)


def _placed_by_sort(values: Any, valid: Any) -> tuple[Any, Any]:
    if len(valid) == 0:
        rows = order = primitives.argsort(values)
    else:
        rows = primitives.where(valid)
        order = primitives.argsort(primitives.gather(values, rows))
        rows = primitives.gather(rows, order)
    heads = primitives.empty(len(rows), np.int64)
    _heads(len(rows), values, rows, heads)
    firsts = primitives.gather(rows, primitives.where(heads))
    places = primitives.full(len(values), len(firsts))
    _place_sorted(len(rows), rows, primitives.running_sum(heads), places)
    return firsts, places


@kernel((INTS, INTS, INTS))
def _heads(values: Any, rows: Any, heads: Any) -> None:
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        heads[i] = 1 if i == 0 or values[rows[i]] != values[rows[i - 1]] else 0


@kernel((INTS, INTS, INTS))
def _place_sorted(rows: Any, numbers: Any, places: Any) -> None:
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        places[rows[i]] = numbers[i] - 1


# ---- in order of first appearance


def _in_order(values: Any, firsts: Any, places: Any) -> Any:
    """Return the values that are there by their first rows; write their numbers into places."""
    is_taken = primitives.empty(len(firsts), np.bool_)
    _find_taken(len(firsts), firsts, is_taken)
    used = primitives.where(is_taken)
    rows = primitives.gather(firsts, used)
    order = primitives.argsort(rows)
    numbers = primitives.full(len(firsts) + 1, len(used))
    _number(len(used), used, order, numbers)
    _number_places(len(places), numbers, places)
    return primitives.gather(values, primitives.gather(rows, order))


@kernel((INTS, BOOLS))
def _find_taken(firsts: Any, is_taken: Any) -> None:
    for place in range(cuda.grid(1), firsts.size, cuda.gridsize(1)):
        is_taken[place] = firsts[place] != _FREE


@kernel((INTS, INTS, INTS))
def _number(used: Any, order: Any, numbers: Any) -> None:
    for number in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        numbers[used[order[number]]] = number


@kernel((INTS, INTS))
def _number_places(numbers: Any, places: Any) -> None:
    for i in range(cuda.grid(1), places.size, cuda.gridsize(1)):
        places[i] = numbers[places[i]]


# ---- values that are no integers


def bits(values: DeviceFloats) -> DeviceInts:
    """See `contract.keys.Keys.bits`."""
    canonical = primitives.empty(len(values), np.float64)
    _canonical(len(values), values, canonical)
    return canonical.view(np.int64)


@kernel((FLOATS, FLOATS))
def _canonical(values: Any, out: Any) -> None:
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        value = values[i]
        if math.isnan(value):
            value = math.nan
        elif value == 0.0:
            value = 0.0
        out[i] = value


def pairs(left: DeviceInts, right: DeviceInts, count: int) -> DeviceInts:
    """See `contract.keys.Keys.pairs`."""
    out = primitives.empty(len(left), np.int64)
    _pair(len(left), left, right, count, out)
    return out


@kernel((INTS, INTS, INT, INTS))
def _pair(left: Any, right: Any, count: Any, out: Any) -> None:
    for i in range(cuda.grid(1), left.size, cuda.gridsize(1)):
        out[i] = left[i] * count + right[i]


def texts(column: ArrowArray) -> tuple[ArrowArray, DeviceInts] | None:
    """See `contract.keys.Keys.texts`."""
    found = strings.encode(column)
    if found is None:
        return None
    dictionary, indices = found
    first, places = distinct(indices, primitives.empty(0, np.bool_))
    return dictionary.take(primitives.to_host(first)), places
