"""Functions of lists and maps, computed on their elements and the lists that these are of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.arrays import find_missing, whole_numbers
from gpu_windows.expressions.functions.call import UNLIMITED, ArrowFunction, Call
from gpu_windows.expressions.sql_text import sql_error

_LONG = pa.int64()
#: Parts of a pattern: escaped characters, and those with a meaning of their own.
_ESCAPED = re.compile(r"\\(.)|([\\^$.|?*+()\[\]{}])", re.DOTALL)


def list_owners(lists: pa.Array) -> np.ndarray:
    """Return the list that each element is of, without elements behind a null."""
    owners: np.ndarray = np.arange(len(lists)).repeat(list_lengths(lists))
    return owners


def list_lengths(lists: pa.Array) -> np.ndarray:
    """Return the numbers of elements; 0 for null."""
    return whole_numbers(pc.list_value_length(lists))


def make_lists(values: pa.Array, owners: np.ndarray, missing: np.ndarray) -> pa.Array:
    """Return lists of values, which are in the order of the lists that they are of."""
    counts = np.bincount(owners, minlength=len(missing))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(missing))


def _take(lists: pa.Array, places: np.ndarray, *others: pa.Array) -> pa.Array:
    """Return lists of some elements; null where a list, or one of others, is null.

    ``places``: their places in the order of the results, or a mask of them.
    """
    elements, owners = pc.list_flatten(lists), list_owners(lists)
    choose = elements.filter if places.dtype == np.bool_ else elements.take
    missing = find_missing(lists, *others)
    return make_lists(choose(pa.array(places)), owners[places], missing)


def _common(call: Call, *arrays: pa.Array) -> Sequence[pa.Array]:
    """Return lists, and values like their elements, with elements of one type.

    Raises
    ------
    SqlError
        If their types differ.
    """
    element = arrays[0].type.value_type
    wanted = [pa.list_(element) if types.is_list(each.type) else element for each in arrays]
    for each, to in zip(arrays, wanted, strict=True):
        if not _fits(each.type, to):
            rule = "over Arrow tables lists and their elements must have one type: cast them before"
            raise sql_error(call.node, rule, f"{arrays[0].type}, {each.type}")
    return [each.cast(to) for each, to in zip(arrays, wanted, strict=True)]


def _fits(of: pa.DataType, to: pa.DataType) -> bool:
    if types.is_list(of) and types.is_list(to):
        return _fits(of.value_type, to.value_type)
    both_whole = types.is_integer(of) and types.is_integer(to) and of.bit_width <= to.bit_width
    return bool(of == to or types.is_null(of) or both_whole)


def _codes(*arrays: pa.Array) -> list[np.ndarray]:
    """Return numbers that are equal for equal values; of null, a number of its own."""
    whole = pa.concat_arrays(arrays)
    if types.is_floating(whole.type):  # -0.0 equals 0.0
        whole = pc.add(whole, pa.scalar(0.0, whole.type))
    coded = whole.dictionary_encode(null_encoding="encode")
    numbers = np.asarray(coded.indices, np.int64)
    ends = np.cumsum([len(each) for each in arrays])[:-1]
    return np.split(numbers, ends)


def _matches(call: Call) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Return the lists, the owners of elements, and which elements equal the value of their row."""
    lists, value = _common(call, *call.arrays)
    owners, elements = list_owners(lists), pc.list_flatten(lists)
    of_elements, of_values = _codes(elements, value)
    is_valid = np.asarray(elements.is_valid())
    return lists, owners, (of_elements == of_values[owners]) & is_valid


def _contains(call: Call) -> pa.Array:
    """Return whether a value is in a list; null if it is not and the list has nulls, or is null."""
    lists, owners, same = _matches(call)
    found = np.bincount(owners[same], minlength=len(lists)) > 0
    is_null = np.asarray(pc.list_flatten(lists).is_null())
    has_null = np.bincount(owners[is_null], minlength=len(lists)) > 0
    return pa.array(found, mask=find_missing(*call.arrays) | (has_null & ~found))


def _position(call: Call) -> pa.Array:
    """Return the place of the first equal element, from 1; 0 without one."""
    lists, owners, same = _matches(call)
    places = np.flatnonzero(same)
    first = np.zeros(len(lists), np.int64)
    starts = np.concatenate([[0], np.cumsum(list_lengths(lists))])
    of = owners[places][::-1]
    first[of] = places[::-1] - starts[of] + 1
    return pa.array(first, _LONG, mask=find_missing(*call.arrays))


def _remove(call: Call) -> pa.Array:
    lists, _, same = _matches(call)
    return _take(lists, ~same, call.arrays[1])


def compact_lists(lists: pa.Array) -> pa.Array:
    """Return lists without their null elements."""
    return _take(lists, np.asarray(pc.list_flatten(lists).is_valid()))


def _concat(call: Call) -> pa.Array:
    return _concatenate(_common(call, *call.arrays))


def _concatenate(lists: Sequence[pa.Array]) -> pa.Array:
    """Return the elements of several lists of each row, in their order."""
    owners = np.concatenate([list_owners(each) for each in lists])
    elements = pa.concat_arrays([pc.list_flatten(each) for each in lists])
    order = np.argsort(owners, kind="stable")
    return make_lists(elements.take(pa.array(order)), owners[order], find_missing(*lists))


def _add(*, at_end: bool) -> Callable[[Call], pa.Array]:
    def compute(call: Call) -> pa.Array:
        lists, value = _common(call, *call.arrays)
        single = _list_values([value])
        return _concatenate([lists, single] if at_end else [single, lists])

    return compute


def _first_of_each(owners: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the places at which an element is the first that is equal in its list."""
    pairs = owners * (codes.max(initial=0) + 1) + codes
    return np.sort(np.unique(pairs, return_index=True)[1])


def _distinct(lists: pa.Array) -> pa.Array:
    [codes] = _codes(pc.list_flatten(lists))
    return _take(lists, _first_of_each(list_owners(lists), codes))


def _choose(*, is_in_other: bool) -> Callable[[Call], pa.Array]:
    """Return a function of the distinct elements that another list has, or lacks."""

    def compute(call: Call) -> pa.Array:
        one, other = _common(call, *call.arrays)
        owners = list_owners(one)
        codes, others = _codes(pc.list_flatten(one), pc.list_flatten(other))
        size = max(codes.max(initial=0), others.max(initial=0)) + 1
        in_other = np.isin(owners * size + codes, list_owners(other) * size + others)
        places = _first_of_each(owners, codes)
        return _take(one, places[in_other[places] == is_in_other], other)

    return compute


def reverse_lists(lists: pa.Array) -> pa.Array:
    """Return lists with their elements in reverse order."""
    owners = list_owners(lists)
    return _take(lists, np.lexsort((-np.arange(len(owners)), owners)))


def _sort(lists: pa.Array, *, descending: bool, nulls_first: bool) -> pa.Array:
    elements, owners = pc.list_flatten(lists), list_owners(lists)
    table = pa.table({"owner": owners, "element": elements, "null": elements.is_null()})
    keys = [
        ("owner", "ascending"),
        ("null", "descending" if nulls_first else "ascending"),
        ("element", "descending" if descending else "ascending"),
    ]
    return _take(lists, np.asarray(pc.sort_indices(table, sort_keys=keys)))


def _sort_array(call: Call) -> pa.Array:
    ascending = bool(call.literal(1, True))
    return _sort(call.arrays[0], descending=not ascending, nulls_first=ascending)


def _extreme(*, is_greatest: bool) -> Callable[[pa.Array], pa.Array]:
    """Return a function of the greatest or the least element that is not null."""

    def compute(lists: pa.Array) -> pa.Array:
        ordered = _sort(lists, descending=is_greatest, nulls_first=False)
        starts = np.asarray(ordered.offsets, np.int64)[:-1]
        is_empty = (list_lengths(ordered) == 0) | find_missing(ordered)
        return ordered.values.take(pa.array(np.where(is_empty, 0, starts), mask=is_empty))

    return compute


def _slice(call: Call) -> pa.Array:
    """Return ``SLICE(list, start, length)``, from 1, or from the end for a negative start."""
    lists, start, length = call.arrays
    begin, count = (whole_numbers(pc.fill_null(each, 1)) for each in (start, length))
    if (begin == 0).any() or (count < 0).any():
        raise pa.ArrowInvalid("SLICE takes a start other than 0, and a length that is not negative")
    lengths, owners = list_lengths(lists), list_owners(lists)
    begin = np.where(begin < 0, lengths + begin, begin - 1)
    count = np.where(begin < 0, 0, count)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    place = np.arange(len(owners)) - starts[owners]
    within = (place >= begin[owners]) & (place < begin[owners] + count[owners])
    return _take(lists, within, start, length)


def _of_map(part: str) -> Callable[[Call], pa.Array]:
    """Return a function of the keys or the items of maps."""

    def compute(call: Call) -> pa.Array:
        [maps] = call.arrays
        entries = _list_entries(maps)
        elements = pc.struct_field(pc.list_flatten(entries), [part])
        return make_lists(elements, list_owners(entries), find_missing(maps))

    return compute


def _list_entries(maps: pa.Array) -> pa.Array:
    """Return maps as lists of structs of a key and a value."""
    entry = pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)])
    return maps.cast(pa.list_(entry))


def _list_values(arrays: Sequence[pa.Array]) -> pa.ListArray:
    """Return a list of the values of each row."""
    count, rows = len(arrays), len(arrays[0])
    places = np.arange(count * rows).reshape(count, rows).T.ravel()
    values = pa.concat_arrays(arrays).take(pa.array(places))
    ends = pa.array(np.arange(rows + 1, dtype=np.int32) * count)
    return pa.ListArray.from_arrays(ends, values)


def _make_map(call: Call) -> pa.Array:
    """Return a map of keys and items in turn."""
    keys, items = call.arrays[::2], call.arrays[1::2]
    for at, each in enumerate(keys):
        if each.null_count:
            raise pa.ArrowInvalid("a key of a map must not be NULL")
        for other in keys[:at]:
            if pc.any(pc.equal(each, other)).as_py():
                raise pa.ArrowInvalid("a map must not have a key twice")
    of_keys, of_items = _list_values(keys), _list_values(items)
    return pa.MapArray.from_arrays(of_keys.offsets, of_keys.values, of_items.values)


def _make_struct(call: Call) -> pa.Array:
    names = [call.literal(at) for at in range(0, len(call.arrays), 2)]
    return pa.StructArray.from_arrays(call.arrays[1::2], names=names)


def _split(call: Call) -> pa.Array:
    """Split texts at a pattern that is an escaped text."""
    pattern = call.literal(1)
    if not pattern or any(match[2] for match in _ESCAPED.finditer(pattern)):
        rule = "over Arrow tables SPLIT takes a separator whose special characters are escaped"
        raise sql_error(call.node, rule, pattern)
    separator = _ESCAPED.sub(lambda match: match[1], pattern)
    return pc.split_pattern(call.arrays[0], pattern=separator)


def _take_elements(lists: pa.Array, index: np.ndarray, missing: np.ndarray) -> pa.Array:
    """Return the element from 0 of each list; null where there is none."""
    offsets = whole_numbers(lists.offsets)[:-1]
    outside = missing | (index < 0) | (index >= list_lengths(lists))
    place = pa.array(np.where(outside, 0, offsets + index), pa.int64(), mask=outside)
    return lists.values.take(place)


def _get(call: Call) -> pa.Array:
    """Return ``GET(list, i)``, from 0; null where there is none."""
    lists, index = call.arrays
    return _take_elements(lists, whole_numbers(index), find_missing(lists, index))


def _element_at(call: Call) -> pa.Array:
    """Return ``TRY_ELEMENT_AT(list, i)``, from 1, or the value of a key of a map."""
    owner, key = call.arrays
    if types.is_map(owner.type):
        return _value_of_key(call)
    if not types.is_list(owner.type) or not types.is_integer(key.type):
        raise sql_error(call.node, "an element is of a list by its index, or of a map by its key")
    place = whole_numbers(key)
    index = np.where(place < 0, list_lengths(owner) + place, place - 1)
    return _take_elements(owner, index, find_missing(owner, key) | (place == 0))


def _value_of_key(call: Call) -> pa.Array:
    maps = call.arrays[0]
    if call.has_literal(1):
        wanted = pa.scalar(call.literal(1), maps.type.key_type)
        return pc.map_lookup(maps, query_key=wanted, occurrence="first")
    entries = _list_entries(maps)
    owners, pairs = list_owners(entries), pc.list_flatten(entries)
    wanted = call.arrays[1].cast(maps.type.key_type).take(pa.array(owners))
    same = pc.fill_null(pc.equal(pc.struct_field(pairs, ["key"]), wanted), False)
    places = np.flatnonzero(np.asarray(same))[::-1]
    place = np.full(len(maps), -1)
    place[owners[places]] = places  # of equal keys, the first
    index = pa.array(np.maximum(place, 0), pa.int64(), mask=place < 0)
    return pc.struct_field(pairs, ["value"]).take(index)


def _size(call: Call) -> pa.Array:
    [of] = call.arrays
    return pc.list_value_length(_list_entries(of) if types.is_map(of.type) else of)


_LIST, _LISTS, _WITH_VALUE = ("list",), ("list", "list"), ("list", "any")


def _of_lists(function: Callable[[pa.Array], pa.Array]) -> ArrowFunction:
    return ArrowFunction(_LIST, lambda call: function(call.arrays[0]))


#: The functions by Spark's names; REVERSE and CONCAT are of strings, too.
LISTS: Mapping[str, ArrowFunction] = {
    "ARRAY_CONTAINS": ArrowFunction(_WITH_VALUE, _contains),
    "ARRAY_POSITION": ArrowFunction(_WITH_VALUE, _position),
    "ARRAY_REMOVE": ArrowFunction(_WITH_VALUE, _remove),
    "ARRAY_APPEND": ArrowFunction(_WITH_VALUE, _add(at_end=True)),
    "ARRAY_PREPEND": ArrowFunction(_WITH_VALUE, _add(at_end=False)),
    "ARRAY_COMPACT": _of_lists(compact_lists),
    "ARRAY_DISTINCT": _of_lists(_distinct),
    "ARRAY_UNION": ArrowFunction(_LISTS, lambda call: _distinct(_concat(call))),
    "ARRAY_EXCEPT": ArrowFunction(_LISTS, _choose(is_in_other=False)),
    "ARRAY_INTERSECT": ArrowFunction(_LISTS, _choose(is_in_other=True)),
    "ARRAY_SORT": _of_lists(partial(_sort, descending=False, nulls_first=False)),
    "SORT_ARRAY": ArrowFunction(_WITH_VALUE, _sort_array, 1),
    "ARRAY_MAX": _of_lists(_extreme(is_greatest=True)),
    "ARRAY_MIN": _of_lists(_extreme(is_greatest=False)),
    "SLICE": ArrowFunction(("list", "integer", "integer"), _slice),
    "MAP_KEYS": ArrowFunction(("map",), _of_map("key")),
    "MAP_VALUES": ArrowFunction(("map",), _of_map("value")),
    "ARRAY": ArrowFunction(("any",), lambda call: _list_values(call.arrays), 1, UNLIMITED),
    "MAP": ArrowFunction(("any",), _make_map, 2, UNLIMITED),
    "NAMED_STRUCT": ArrowFunction(("any",), _make_struct, 2, UNLIMITED),
    "CONCAT": ArrowFunction(_LIST, _concat, 1, UNLIMITED),
    "SPLIT": ArrowFunction(("text", "text"), _split),
    "GET": ArrowFunction(("list", "integer"), _get),
    "TRY_ELEMENT_AT": ArrowFunction(("nested", "any"), _element_at),
    "ARRAY_SIZE": ArrowFunction(_LIST, _size),
    "SIZE": ArrowFunction(("nested",), _size),
}
