"""Functions of lists and maps."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.functions.call import ArrowFunction, Call
from gpu_windows.expressions.functions.lists import list_owners
from gpu_windows.expressions.sql_text import sql_error

_ESCAPED = re.compile(r"\\(.)|([\\^$.|?*+()\[\]{}])", re.DOTALL)


def _split(call: Call) -> pa.Array:
    """Split texts at a pattern that is an escaped text."""
    pattern = call.literal(1)
    if not pattern or any(match[2] for match in _ESCAPED.finditer(pattern)):
        rule = "over Arrow tables SPLIT takes a separator whose special characters are escaped"
        raise sql_error(call.node, rule, pattern)
    separator = _ESCAPED.sub(lambda match: match[1], pattern)
    return pc.split_pattern(call.arrays[0], pattern=separator)


def _lengths(lists: pa.Array) -> np.ndarray:
    plain = lists.cast(pa.list_(_entry(lists.type))) if types.is_map(lists.type) else lists
    found = pc.fill_null(pc.list_value_length(plain), 0)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _entry(dtype: pa.MapType) -> pa.DataType:
    return pa.struct([("key", dtype.key_type), ("value", dtype.item_type)])


def take_elements(lists: pa.Array, index: np.ndarray, missing: np.ndarray) -> pa.Array:
    """Return the element from 0 of each list; null where there is none."""
    lengths = _lengths(lists)
    offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)[:-1]
    outside = missing | lists.is_null().to_numpy(False) | (index < 0) | (index >= lengths)
    place = pa.array(np.where(outside, 0, offsets + index), pa.int64(), mask=outside)
    return lists.values.take(place)


def _get(call: Call) -> pa.Array:
    """Return ``GET(list, i)``, from 0; null where there is none."""
    lists, index = call.arrays
    missing = index.is_null().to_numpy(False)
    places = pc.fill_null(index.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return take_elements(lists, places, missing)


def _element_at(call: Call) -> pa.Array:
    """Return ``TRY_ELEMENT_AT(list, i)``, from 1, or the value of a key of a map."""
    owner, key = call.arrays
    if types.is_map(owner.type):
        return _value_of_key(call)
    if not types.is_list(owner.type) or not types.is_integer(key.type):
        raise sql_error(call.node, "an element is of a list by its index, or of a map by its key")
    missing = key.is_null().to_numpy(False)
    place = pc.fill_null(key.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    from_end = _lengths(owner) + place
    return take_elements(owner, np.where(place < 0, from_end, place - 1), missing | (place == 0))


def _value_of_key(call: Call) -> pa.Array:
    maps = call.arrays[0]
    if call.has_literal(1):
        wanted = pa.scalar(call.literal(1), maps.type.key_type)
        return pc.map_lookup(maps, query_key=wanted, occurrence="first")
    entries = maps.cast(pa.list_(_entry(maps.type)))
    owners, pairs = list_owners(entries), pc.list_flatten(entries)
    wanted = call.arrays[1].cast(maps.type.key_type).take(pa.array(owners))
    same = pc.fill_null(pc.equal(pc.struct_field(pairs, ["key"]), wanted), False)
    places = np.flatnonzero(np.asarray(same))[::-1]
    place = np.full(len(maps), -1)
    place[owners[places]] = places  # of equal keys, the first
    index = pa.array(np.maximum(place, 0), pa.int64(), mask=place < 0)
    return pc.struct_field(pairs, ["value"]).take(index)


def _size(call: Call) -> pa.Array:
    lists = call.arrays[0]
    counts = pa.array(_lengths(lists).astype(np.int32))
    return pc.if_else(lists.is_valid(), counts, pa.scalar(None, pa.int32()))


#: The functions by Spark's names.
NESTED: Mapping[str, ArrowFunction] = {
    "SPLIT": ArrowFunction(("text", "text"), _split),
    "GET": ArrowFunction(("list", "integer"), _get),
    "TRY_ELEMENT_AT": ArrowFunction(("nested", "any"), _element_at),
    "ARRAY_SIZE": ArrowFunction(("list",), _size),
    "SIZE": ArrowFunction(("nested",), _size),
}
