"""Functions of JSON texts, computed once for each distinct text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.arrays import find_missing, map_distinct
from gpu_windows.expressions.functions.call import ArrowFunction, Call
from gpu_windows.expressions.functions.lists import list_owners, make_lists
from gpu_windows.expressions.sql_text import sql_error

_PATH = re.compile(r"\$(?:\.\w+|\[\d+\]|\['[^']+'\])*")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']+)'\]")
_MISSING = object()


class _Number(str):
    """A number, as it is written."""

    __slots__ = ()


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


_DECODER = json.JSONDecoder(
    parse_int=lambda text: _Number("0" if text == "-0" else text),
    parse_float=_Number,
    parse_constant=_refuse_constant,
)
#: What is before a document; what is after a number or a word at the root, which must end there.
_SPACES = re.compile(r"[ \t\r\n]*")
_NUMBER_END = re.compile(r"[ \t\r\n]|\Z")
_ANY_END = re.compile("")
_WORD_END = re.compile(r"(?![\w$])")


def _parse(text: str) -> Any:
    """Return the document with which a text begins; raise ValueError if it is not JSON.

    Text after it is ignored, as by Jackson, the library of both Flink and Spark.
    """
    found, end = _DECODER.raw_decode(text, _SPACES.match(text).end())  # type: ignore[union-attr]
    is_word = found is None or isinstance(found, bool)
    ends = _WORD_END if is_word else _NUMBER_END if isinstance(found, _Number) else _ANY_END
    if not ends.match(text, end):
        raise ValueError(text)
    return found


#: The most characters of texts whose documents an evaluation holds; others are parsed again.
_MAX_HELD = 4_000_000


class _Documents:
    """Documents by their texts."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._size = 0

    def get(self, text: str) -> Any:
        """Return a document; `_MISSING` for a text that is not JSON."""
        if text in self._found:
            return self._found[text]
        try:
            document = _parse(text)
        except (ValueError, RecursionError):
            document = _MISSING
        if self._size + len(text) <= _MAX_HELD:
            self._found[text] = document
            self._size += len(text)
        return document


_DOCUMENTS: ContextVar[_Documents | None] = ContextVar("documents", default=None)


@contextmanager
def one_evaluation() -> Iterator[None]:
    """Parse a text once, however many functions of how many columns read it, while this is open."""
    if _DOCUMENTS.get() is not None:
        yield
        return
    token = _DOCUMENTS.set(_Documents())
    try:
        yield
    finally:
        _DOCUMENTS.reset(token)


def _steps(call: Call) -> list[str | int]:
    path = call.literal(1)
    if not _PATH.fullmatch(path):
        raise sql_error(call.node, "over Arrow tables a path has names and indexes alone", path)
    return [int(step[2]) if step[2] else step[1] or step[3] for step in _STEP.finditer(path)]


def _part(documents: _Documents, text: str, steps: list[str | int]) -> Any:
    """Return the part of a document at a path; `_MISSING` if it does not exist."""
    found = documents.get(text)
    for step in steps:
        if isinstance(step, int):
            is_there = type(found) is list and step < len(found)
        else:
            is_there = isinstance(found, dict) and step in found
        if not is_there:
            return _MISSING
        found = found[step]
    return found


def _of_part(read: Callable[[Any], str | None]) -> Callable[[Call], pa.Array]:
    """Return a function of the part of a text at a path; null if it does not exist."""

    def compute(call: Call) -> pa.Array:
        steps, documents = _steps(call), _DOCUMENTS.get() or _Documents()

        def of_text(text: str) -> str | None:
            part = _part(documents, text, steps)
            return None if part is _MISSING else read(part)

        return map_distinct(call.arrays[0], of_text, pa.string())

    return compute


def _text(part: Any) -> str | None:
    """Return a string as it is, and other parts as documents; None for null."""
    return part if part is None or isinstance(part, str) else _document(part)


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
    parts = make_lists(quoted, list_owners(lists), find_missing(lists))
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
    "GET_JSON_OBJECT": ArrowFunction(("text", "text"), _of_part(_text)),
    KIND_FUNCTION: ArrowFunction(("text", "text"), _of_part(lambda part: _KINDS[type(part)])),
    "TO_JSON": ArrowFunction(("list",), _to_json),
}
