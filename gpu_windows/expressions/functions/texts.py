"""String functions."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from string import ascii_lowercase, ascii_uppercase
from typing import Any
from urllib.parse import quote_plus, unquote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.arrays import (
    find_missing,
    map_distinct,
    map_distinct_rows,
    slice_characters,
    whole_numbers,
)
from gpu_windows.expressions.functions.call import UNLIMITED, ArrowFunction, Call
from gpu_windows.expressions.functions.lists import reverse_lists
from gpu_windows.expressions.sql_text import sql_error

_MAX_WIDTH = 10_000
_TEXT, _COUNT = pa.string(), pa.int32()


def _by_literals(
    plain: Callable[[Call], pa.Array],
    of_row: Callable[..., Any],
    dtype: pa.DataType,
    *indices: int,
) -> Callable[[Call], pa.Array]:
    """Return a function that Arrow has for literal arguments; for others, it is one of rows."""

    def compute(call: Call) -> pa.Array:
        if all(map(call.has_literal, indices)):
            return plain(call)
        return map_distinct_rows(call.arrays, of_row, dtype)

    return compute


def _substring(call: Call) -> pa.Array:
    if not (call.has_literal(1) and call.has_literal(2)):
        return _substring_of_rows(call)
    start, length = call.literal(1), call.literal(2)
    if start < 0:
        return _substring_of_rows(call)
    begin = max(start - 1, 0)
    if length is None:
        return pc.utf8_slice_codeunits(call.arrays[0], start=begin, stop=None)
    return pc.utf8_slice_codeunits(call.arrays[0], start=begin, stop=begin + max(length, 0))


def _substring_of_rows(call: Call) -> pa.Array:
    """Return parts with a start and a length for each row; a negative start is from the end."""
    of, start = call.arrays[0], whole_numbers(call.arrays[1])
    total = whole_numbers(pc.utf8_length(of))
    begin = np.where(start > 0, start - 1, np.where(start < 0, total + start, 0))
    end = total if len(call.arrays) < 3 else begin + whole_numbers(call.arrays[2])
    missing = find_missing(*call.arrays)
    return slice_characters(of, np.clip(begin, 0, total), np.clip(end, 0, total), missing)


def _left(call: Call) -> pa.Array:
    """Return a substring from the first character."""
    of, length = call.arrays
    if call.has_literal(1):
        return pc.utf8_slice_codeunits(of, start=0, stop=max(call.literal(1), 0))
    first = pa.repeat(pa.scalar(1, _COUNT), len(of))
    return _substring(Call(call.node, (of, first, length), (None, 1, None)))


def _right(call: Call) -> pa.Array:
    of, length = call.arrays
    if not call.has_literal(1):
        total = whole_numbers(pc.utf8_length(of))
        begin = total - np.clip(whole_numbers(length), 0, total)
        return slice_characters(of, begin, total, find_missing(of, length))
    if call.literal(1) <= 0:
        return pc.utf8_slice_codeunits(of, start=0, stop=0)
    return pc.utf8_slice_codeunits(of, start=-call.literal(1), stop=None)


def _trim(plain: Callable[..., pa.Array], strip: Callable[[str, str], str]) -> ArrowFunction:
    def compute(call: Call) -> pa.Array:
        characters = call.literal(1, " ")
        return plain(call.arrays[0], characters=characters) if characters else call.arrays[0]

    return ArrowFunction(("text", "text"), _by_literals(compute, strip, _TEXT, 1), 1)


def pad_left(text: str, width: int, pad: str = " ") -> str:
    """Return a text of a width, filled at its start."""
    missing = max(width - len(text), 0)
    return (pad * missing)[:missing] + text[: max(width, 0)]


def pad_right(text: str, width: int, pad: str = " ") -> str:
    """Return a text of a width, filled at its end."""
    missing = max(width - len(text), 0)
    return text[: max(width, 0)] + (pad * missing)[:missing]


def _pad(*, left: bool) -> ArrowFunction:
    def compute(call: Call) -> pa.Array:
        of, width, pad = call.arrays[0], call.literal(1), call.literal(2, " ")
        if width > _MAX_WIDTH:
            raise sql_error(call.node, f"over Arrow tables a width is up to {_MAX_WIDTH}")
        cut = pc.utf8_slice_codeunits(of, start=0, stop=max(width, 0))
        if width <= 0 or not pad:
            return cut
        whole = (pad * width)[:width]
        fillings = pa.array([whole[:length] for length in range(width + 1)], _TEXT)
        filling = fillings.take(pc.subtract(pa.scalar(width, _COUNT), pc.utf8_length(cut)))
        return pc.binary_join_element_wise(*((filling, cut) if left else (cut, filling)), "")

    of_row = pad_left if left else pad_right
    return ArrowFunction(("text", "integer", "text"), _by_literals(compute, of_row, _TEXT, 1, 2), 2)


def _repeat(call: Call) -> pa.Array:
    counts = pc.max_element_wise(
        call.arrays[1], pa.scalar(0, call.arrays[1].type), skip_nulls=False
    )
    return pc.binary_repeat(call.arrays[0], counts)


def _replace(call: Call) -> pa.Array:
    pattern = call.literal(1)
    if not pattern:
        return call.arrays[0]
    return pc.replace_substring(call.arrays[0], pattern=pattern, replacement=call.literal(2, ""))


def _replace_one(text: str, part: str, by: str = "") -> str:
    return text.replace(part, by) if part else text


def _translate(call: Call) -> pa.Array:
    letters, others = call.literal(1), call.literal(2)
    mapping: dict[int, str | None] = {}
    for at, letter in enumerate(letters):
        mapping.setdefault(ord(letter), others[at] if at < len(others) else None)
    return map_distinct(call.arrays[0], lambda text: text.translate(mapping), _TEXT)


def _position(of: pa.Array, part: str, start: int) -> pa.Array:
    """Return the index from 1 of the first occurrence from a start; 0 without one."""
    if start == 1 and pc.all(pc.string_is_ascii(of)).as_py() is not False:
        return pc.add(pc.find_substring(of, pattern=part), pa.scalar(1, _COUNT))
    return map_distinct(of, lambda text: text.find(part, start - 1) + 1, _COUNT)


def _locate_one(part: str, text: str, start: int = 1) -> int:
    return 0 if start < 1 else text.find(part, start - 1) + 1


def _instr(call: Call) -> pa.Array:
    return _position(call.arrays[0], call.literal(1), 1)


def _locate(call: Call) -> pa.Array:
    start = call.literal(2, 1)
    if start < 1:
        return pc.multiply(pc.utf8_length(call.arrays[1]), 0)
    return _position(call.arrays[1], call.literal(0), start)


def _starts_or_ends(
    plain: Callable[..., pa.Array], test: Callable[[str, str], bool]
) -> ArrowFunction:
    def compute(call: Call) -> pa.Array:
        return plain(call.arrays[0], pattern=call.literal(1))

    return ArrowFunction(("text", "text"), _by_literals(compute, test, pa.bool_(), 1))


def _concat_ws(call: Call) -> pa.Array:
    """Join the values that are not null; null where the separator is."""
    separator, *values = call.arrays
    texts = values[0]
    for value in values[1:]:
        both = pc.binary_join_element_wise(texts, value, separator)
        is_pair = pc.and_(pc.is_valid(texts), pc.is_valid(value))
        texts = pc.if_else(is_pair, both, pc.coalesce(texts, value))
    valid = pc.is_valid(separator)
    return pc.if_else(valid, pc.coalesce(texts, ""), pa.scalar(None, _TEXT))


def _initcap(text: str) -> str:
    """Return a text whose words, separated by spaces, begin with an upper case letter."""
    return " ".join(word[:1].title() + word[1:].lower() for word in text.split(" "))


_FIRST_LETTER = re.compile(r"(?<![A-Za-z0-9])[a-z]")
_TO_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def _initcap_of_flink(text: str) -> str:
    """Return a text whose words, of ASCII letters and digits, begin with an upper case letter."""
    return _FIRST_LETTER.sub(lambda match: match[0].upper(), text.translate(_TO_LOWER))


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _to_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _hash(name: str) -> Callable[[str | bytes], str]:
    return lambda value: hashlib.new(name, _to_bytes(value)).hexdigest()


def _sha2(call: Call) -> pa.Array:
    bits = call.literal(1)
    if bits not in (0, 224, 256, 384, 512):
        return pa.nulls(len(call.arrays[0]), _TEXT)
    return map_distinct(call.arrays[0], _hash(f"sha{bits or 256}"), _TEXT)


def _base64(value: str | bytes) -> str:
    return base64.b64encode(_to_bytes(value)).decode()


def _url_encode(text: str) -> str:
    return quote_plus(text, safe="*-._").replace("~", "%7E")


def _hex(call: Call) -> pa.Array:
    [of] = call.arrays
    if types.is_integer(of.type):
        return map_distinct(of, _digits("X"), _TEXT)
    return map_distinct(of, lambda value: _to_bytes(value).hex().upper(), _TEXT)


def _digits(base: str) -> Callable[[int], str]:
    """Return a function of the digits of a number of 64 bits."""
    return lambda number: format(number & (2**64 - 1), base)


def _chr(code: int) -> str:
    return "" if code < 0 else chr(code % 256)


def _of_one(kind: str, function: Callable[[Any], Any], dtype: pa.DataType = _TEXT) -> ArrowFunction:
    """Return a function of Python of one argument."""
    return ArrowFunction((kind,), lambda call: map_distinct(call.arrays[0], function, dtype))


def _encode(call: Call) -> pa.Array:
    charset = call.literal(1).lower()
    if charset not in ("utf-8", "utf-16be", "utf-16le"):
        raise sql_error(call.node, "over Arrow tables ENCODE takes UTF-8 or UTF-16", charset)
    return map_distinct(call.arrays[0], lambda text: text.encode(charset), pa.binary())


def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}")
    except ValueError:
        return None


_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def _url_decode(text: str) -> str | None:
    if "%" in _ESCAPED.sub("", text):
        return None
    return unquote_plus(text)


def _reverse(call: Call) -> pa.Array:
    [of] = call.arrays
    return reverse_lists(of) if types.is_list(of.type) else pc.utf8_reverse(of)


#: The functions by Spark's names.
TEXTS: Mapping[str, ArrowFunction] = {
    **dict.fromkeys(
        ("SUBSTRING", "SUBSTR"), ArrowFunction(("text", "integer", "integer"), _substring, 2)
    ),
    "LEFT": ArrowFunction(("text", "integer"), _left),
    "RIGHT": ArrowFunction(("text", "integer"), _right),
    **dict.fromkeys(("TRIM", "BTRIM"), _trim(pc.utf8_trim, str.strip)),
    "LTRIM": _trim(pc.utf8_ltrim, str.lstrip),
    "RTRIM": _trim(pc.utf8_rtrim, str.rstrip),
    "LPAD": _pad(left=True),
    "RPAD": _pad(left=False),
    "REPEAT": ArrowFunction(("text", "integer"), _repeat),
    "REVERSE": ArrowFunction(("texts or lists",), _reverse),
    "REPLACE": ArrowFunction(
        ("text", "text", "text"), _by_literals(_replace, _replace_one, _TEXT, 1, 2), 2
    ),
    "TRANSLATE": ArrowFunction(("text", "text", "text"), _translate),
    "LOCATE": ArrowFunction(
        ("text", "text", "integer"), _by_literals(_locate, _locate_one, _COUNT, 0, 2), 2
    ),
    "INSTR": ArrowFunction(
        ("text", "text"), _by_literals(_instr, lambda text, part: text.find(part) + 1, _COUNT, 1)
    ),
    "STARTSWITH": _starts_or_ends(pc.starts_with, str.startswith),
    "ENDSWITH": _starts_or_ends(pc.ends_with, str.endswith),
    "CONCAT_WS": ArrowFunction(("text",), _concat_ws, 2, UNLIMITED),
    "INITCAP": _of_one("text", _initcap),
    "FLINK_INITCAP": _of_one("text", _initcap_of_flink),
    "ASCII": _of_one("text", _ascii, _COUNT),
    "OCTET_LENGTH": ArrowFunction(("data",), lambda call: pc.binary_length(call.arrays[0])),
    "MD5": _of_one("data", _hash("md5")),
    "SHA1": _of_one("data", _hash("sha1")),
    "SHA2": ArrowFunction(("data", "integer"), _sha2),
    "BASE64": _of_one("data", _base64),
    "ENCODE": ArrowFunction(("text", "text"), _encode),
    "UNHEX": _of_one("text", _unhex, pa.binary()),
    "TRY_URL_DECODE": _of_one("text", _url_decode),
    "URL_ENCODE": _of_one("text", _url_encode),
    "HEX": ArrowFunction(("any",), _hex),
    "BIN": _of_one("integer", _digits("b")),
    **dict.fromkeys(("CHR", "CHAR"), _of_one("integer", _chr)),
}
