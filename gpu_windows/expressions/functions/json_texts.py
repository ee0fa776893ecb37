"""Functions of JSON texts, computed once for each distinct text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.functions.call import ArrowFunction, Call, map_distinct
from gpu_windows.expressions.functions.lists import list_lengths
from gpu_windows.expressions.sql_text import sql_error

_PATH = re.compile(r"\$(?:\.\w+|\[\d+\]|\['[^']+'\])*")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']+)'\]")
_MISSING = object()


class _Number(str):
    """A number, as it is written."""

    __slots__ = ()


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _parse(text: str) -> Any:
    """Return a document; raise ValueError if it is not JSON."""
    return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant)


def _steps(call: Call) -> list[str | int]:
    path = call.literal(1)
    if not _PATH.fullmatch(path):
        raise sql_error(call.node, "over Arrow tables a path has names and indexes alone", path)
    return [int(step[2]) if step[2] else step[1] or step[3] for step in _STEP.finditer(path)]


def _part(text: str, steps: list[str | int]) -> Any:
    """Return the part of a document at a path; `_MISSING` if it does not exist."""
    try:
        found = _parse(text)
    except (ValueError, RecursionError):
        return _MISSING
    for step in steps:
        if isinstance(step, int):
            is_there = type(found) is list and step < len(found)
        else:
            is_there = isinstance(found, dict) and step in found
        if not is_there:
            return _MISSING
        found = found[step]
    return found


def _get(call: Call) -> pa.Array:
    steps = _steps(call)

    def get(text: str) -> str | None:
        part = _part(text, steps)
        if part is _MISSING or part is None:
            return None
        return part if isinstance(part, str) else _document(part)

    return map_distinct(call.arrays[0], get, pa.string())


def _document(part: Any) -> str:
    """Return a document without spaces, its numbers as they were written."""
    if isinstance(part, dict):
        items = (f"{json.dumps(k, ensure_ascii=False)}:{_document(v)}" for k, v in part.items())
        return f"{{{','.join(items)}}}"
    if isinstance(part, list):
        return f"[{','.join(map(_document, part))}]"
    return str(part) if isinstance(part, _Number) else json.dumps(part, ensure_ascii=False)


#: The first word of the schema of a variant.
_KINDS: Mapping[type, str] = {
    dict: "OBJECT",
    list: "ARRAY",
    bool: "BOOLEAN",
    _Number: "DECIMAL",
    str: "STRING",
    type(None): "VOID",
}


def _kind(call: Call) -> pa.Array:
    steps = _steps(call)

    def kind(text: str) -> str | None:
        part = _part(text, steps)
        return None if part is _MISSING else _KINDS[type(part)]

    return map_distinct(call.arrays[0], kind, pa.string())


_CONTROL = re.compile(r"\\u00[0-9a-f]{2}")


def _quote(text: str) -> str:
    """Return a text as a JSON string, as Jackson writes it."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda match: match[0][:2] + match[0][2:].upper(), quoted)


def _to_json(call: Call) -> pa.Array:
    """Return lists of strings as JSON."""
    [lists] = call.arrays
    if not types.is_string(lists.type.value_type):
        raise sql_error(call.node, "over Arrow tables TO_JSON takes a list of strings")
    quoted = pc.fill_null(map_distinct(pc.list_flatten(lists), _quote, pa.string()), "null")
    ends = np.concatenate([[0], np.cumsum(list_lengths(lists))]).astype(np.int32)
    parts = pa.ListArray.from_arrays(pa.array(ends), quoted, mask=lists.is_null())
    return pc.binary_join_element_wise("[", pc.binary_join(parts, ","), "]", "")


#: The kind of a part of a text: SCHEMA_OF_VARIANT(TRY_VARIANT_GET(TRY_PARSE_JSON(text), path)).
KIND_FUNCTION = "SCHEMA_OF_VARIANT"
#: The functions within it, by the one around them.
KIND_PARTS: Mapping[str, str] = {
    "TRY_VARIANT_GET": KIND_FUNCTION,
    "TRY_PARSE_JSON": "TRY_VARIANT_GET",
}

#: The functions by Spark's names.
JSON: Mapping[str, ArrowFunction] = {
    "GET_JSON_OBJECT": ArrowFunction(("text", "text"), _get),
    KIND_FUNCTION: ArrowFunction(("text", "text"), _kind),
    "TO_JSON": ArrowFunction(("list",), _to_json),
}
