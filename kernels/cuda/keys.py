"""Codes of keys: the host gives one to each distinct value, a batch has it where its rows are.

A table has the first row of every value, at the value itself where those of a batch are close to
each other, else at a hash. A row looks at its place in the table and writes there only if it comes
before the row that it finds: once the first rows of all keys are known, which is soon, rows only
read. Which place a hash gives a value may depend on who comes first; which row is the first one
does not, and the values go to the host in the order of these.

The host waits once: what it must know (how many values there are, whether the table had room) comes
with the first values in one copy. If there are more of them, or too many for the table, it waits
again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import (
    ArrowArray,
    DeviceBools,
    DeviceFloats,
    DeviceInts,
    HostInts,
)
from gpu_windows.kernels.cuda import primitives, reach
from gpu_windows.kernels.cuda import texts as strings
from gpu_windows.kernels.cuda.blocks import sum_before
from gpu_windows.kernels.cuda.compiler import cuda, device_function, load_relaxed
from gpu_windows.kernels.cuda.grouping import key_begins
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import BOOLS, FLOATS, INT, INTS
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Places of a table: two for every row at least, and no more than a device's cache holds.
_MIN_SLOTS, _MAX_SLOTS = 1 << 10, 1 << 21
#: Places that a value looks at before there are too many values.
_MAX_PROBES = 32
#: Rows of the first launch that places keys.
_FIRST_WAVE = 1 << 12
#: What is in a place of no row.
_FREE = LONG_MAX
#: What is found of a batch: the least and the greatest value, whether there are too many, how many
#: there are; then the row and the value of the first `_NEAR`, in any order.
_LOW, _HIGH, _OVERFULL, _COUNT, _HEAD = range(5)
_NEAR = 1 << 10

_NONE, _ALL = np.empty(0, np.int64), np.empty(0, np.bool_)


def codes(
    values: DeviceInts, valid: DeviceBools, encode: Callable[[HostInts], HostInts]
) -> DeviceInts:
    """See `contract.keys.Keys.codes`."""
    count = len(values)
    if count == 0:
        encode(_NONE)
        return values
    size = min(max(1 << (2 * count - 1).bit_length(), _MIN_SLOTS), _MAX_SLOTS)
    max_entries = min(size, count)
    sizes = count, size, max_entries, _HEAD + 2 * _NEAR, reach.mark_count(count)
    places, table, rows, found, marks = primitives.empties(*((each, np.int64) for each in sizes))
    _place(values, valid, places, table, found, marks)
    _collect(size, values, table, rows, found)
    there: Any = primitives.to_host(found)
    if there[_OVERFULL]:
        firsts, places = _place_by_sort(values, valid)
        of_entries = _codes_of_rows(values, firsts, encode)
        _give(count, 0, _NONE, len(firsts), of_entries, places)
        return places
    entries = int(there[_COUNT])
    if _near_entries(entries):
        near = there[_HEAD : _HEAD + 2 * entries].reshape(-1, 2)
        of_entries = primitives.to_device(_codes_of_pairs(near, encode))
    else:
        of_entries = _codes_of_rows(values, rows[:entries], encode)
    _give(count, 1, table, size, of_entries, places)
    return places


def _near_entries(entries: int) -> bool:
    """Whether the first row and the value of all of them came at once."""
    return entries <= _NEAR


def _codes_of_pairs(pairs: Any, encode: Callable[[HostInts], HostInts]) -> HostInts:
    """Return the code of each pair of first row and value, and that of values that do not count."""
    order = np.argsort(pairs[:, 0])
    given = encode(pairs[order, 1])
    ordered = np.empty_like(given)
    ordered[order], ordered[-1] = given[:-1], given[-1]
    return ordered


def _codes_of_rows(values: Any, firsts: Any, encode: Callable[[HostInts], HostInts]) -> Any:
    """Return the same on the device, for the first row of each value."""
    order = primitives.argsort(firsts)
    distinct = primitives.gather(values, primitives.gather(firsts, order))
    given = primitives.to_device(encode(primitives.to_host(distinct)))
    ordered = primitives.empty(len(given), np.int64)
    _put_at(len(given), order, given, ordered)
    return ordered


@kernel((INTS, INTS, INTS))
def _put_at(order: Any, given: Any, out: Any) -> None:
    for i in range(cuda.grid(1), given.size, cuda.gridsize(1)):
        out[order[i] if i < order.size else i] = given[i]


@kernel((INT, INTS, INT, INTS, INTS))
def _give(mapped: Any, table: Any, nothing: Any, given: Any, places: Any) -> None:
    """Write into places the codes of what is there; ``nothing`` is the place of no value."""
    for i in range(cuda.grid(1), places.size, cuda.gridsize(1)):
        place = places[i]
        entry = given.size - 1
        if place != nothing:
            entry = table[place] if mapped else place
        places[i] = given[entry]


# ---- a table of first rows, int64[places], and where each row is in it, int64[n]; rows that are
# ---- not valid are after the last place


def _waves(rows: int) -> list[tuple[int, int]]:
    """Return the rows of the launches that place keys: a few first, then all others.

    All threads in flight, 100,000 and more, would find no key in its place at their first row, and
    each change it by an atomic: those of one key one after the other.
    """
    first = min(rows, _FIRST_WAVE)
    return [(0, first), (first, rows)]


def _place(values: Any, valid: Any, places: Any, table: Any, found: Any, marks: Any) -> None:
    masked = int(len(valid) > 0)
    _begin(len(values), values, masked, valid, table, found, marks)
    for begin, end in _waves(len(values)):
        _place_rows(
            end - begin, begin, end, values, masked, valid, _MAX_PROBES, marks, table, places, found
        )


@kernel((INTS, INT, BOOLS, INTS, INTS, INTS))
def _begin(values: Any, masked: Any, valid: Any, table: Any, found: Any, marks: Any) -> None:
    """Mark the reach of values, and make the table ready."""
    thread, threads = cuda.grid(1), cuda.gridsize(1)
    for place in range(thread, table.size, threads):
        table[place] = _FREE
    for place in range(thread, found.size, threads):
        found[place] = 0
    smallest, greatest = LONG_MAX, LONG_MIN
    for i in range(thread, values.size, threads):
        if not masked or valid[i]:
            smallest, greatest = min(smallest, values[i]), max(greatest, values[i])
    reach.mark(smallest, greatest, 0, marks)


@kernel((INT, INT, INTS, INT, BOOLS, INT, INTS, INTS, INTS, INTS))
def _place_rows(
    begin: Any, end: Any, values: Any, masked: Any, valid: Any, probes: Any, marks: Any,
    table: Any, places: Any, found: Any,
) -> None:  # fmt: skip
    if begin == 0:  # the first launch: nobody has put the marks together
        low, high, _ = reach.fold_marks(marks)
        if cuda.grid(1) == 0:
            found[_LOW], found[_HIGH] = low, high
    else:
        low, high = found[_LOW], found[_HIGH]
    # modulo 2**64: of values that are further apart it is negative
    is_near = 0 <= high - low < table.size
    for i in range(begin + cuda.grid(1), end, cuda.gridsize(1)):
        if masked and not valid[i]:
            places[i] = table.size
            continue
        if not is_near and load_relaxed(found, _OVERFULL):
            return
        place = values[i] - low if is_near else _place_by_hash(i, values, probes, table)
        if place < 0:
            cuda.atomic.max(found, _OVERFULL, 1)
            return
        places[i] = place
        if i < load_relaxed(table, place):
            cuda.atomic.min(table, place, i)


@device_function
def _place_by_hash(i: Any, values: Any, probes: Any, table: Any) -> Any:
    """Return the place of the value of a row, which is the value's for good; -1 if all are taken.

    Only the row that is in it may change.
    """
    value, mask = values[i], table.size - 1
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(mixed >> np.uint64(32)) & mask
    for _ in range(probes):
        row = load_relaxed(table, place)
        if row == _FREE:
            row = cuda.atomic.cas(table, place, _FREE, i)
        if row == _FREE or values[row] == value:
            return place
        place = (place + 1) & mask
    return -1


@kernel((INTS, INTS, INTS, INTS))
def _collect(values: Any, table: Any, rows: Any, found: Any) -> None:
    """Number the values that are in the table, and write their first rows."""
    occupied, thread, threads = 0, cuda.grid(1), cuda.gridsize(1)
    if found[_OVERFULL] == 0:
        for place in range(thread, table.size, threads):
            if table[place] != _FREE:
                occupied += 1
    at, total = sum_before(occupied)
    begin = cuda.shared.array(1, INT)
    if cuda.threadIdx.x == 0:
        begin[0] = cuda.atomic.add(found, _COUNT, total)
    cuda.syncthreads()
    if occupied == 0:
        return
    at += begin[0]
    for place in range(thread, table.size, threads):
        row = table[place]
        if row != _FREE:
            table[place] = at
            rows[at] = row
            if at < _NEAR:
                found[_HEAD + 2 * at], found[_HEAD + 2 * at + 1] = row, values[row]
            at += 1


def _place_by_sort(values: Any, valid: Any) -> tuple[Any, Any]:
    """Return the first row of each value, and which of these every row has."""
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


def texts(column: ArrowArray, encode: Callable[[ArrowArray], HostInts]) -> DeviceInts | None:
    """See `contract.keys.Keys.texts`."""
    found = strings.encode(column)
    if found is None:
        return None
    dictionary, indices = found

    def encode_indices(firsts: HostInts) -> HostInts:
        return np.append(encode(dictionary.take(firsts)), 0)  # every row has one

    return codes(indices, _ALL, encode_indices)


# ---- the rows of every key


def number(codes: DeviceInts, counts: DeviceInts) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.keys.Keys.number`."""
    numbers = primitives.empty(len(codes), np.int64)
    after = primitives.gather(counts, primitives.to_device(np.arange(len(counts))))
    if len(codes) == 0:
        return numbers, after
    order = primitives.argsort(codes)
    codes = primitives.gather(codes, order)
    begins = key_begins(codes)
    _number_rows(len(codes), codes, counts, order, begins, numbers)
    _count_rows(len(begins), codes, begins, after)
    return numbers, after


@kernel((INTS, INTS, INTS, INTS, INTS))
def _number_rows(codes: Any, counts: Any, order: Any, begins: Any, numbers: Any) -> None:
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        numbers[order[i]] = counts[codes[i]] + i - begins[owner(begins, i)]


@kernel((INTS, INTS, INTS))
def _count_rows(codes: Any, begins: Any, counts: Any) -> None:
    for g in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        end = begins[g + 1] if g + 1 < begins.size else codes.size
        counts[codes[begins[g]]] += end - begins[g]
