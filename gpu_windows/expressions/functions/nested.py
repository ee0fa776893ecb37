"""Functions of lists and maps."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.functions.call import ArrowFunction, Call
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
    maps, key = call.arrays[0], call.literal(1)
    wanted = pa.scalar(key, maps.type.key_type)
    return pc.map_lookup(maps, query_key=wanted, occurrence="first")


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
