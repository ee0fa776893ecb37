"""Regular expressions: those of Java that mean the same in RE2, which Arrow has."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.expressions.functions.call import ArrowFunction, Call
from gpu_windows.expressions.functions.re2_patterns import Re2Pattern, re2_pattern

_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)


def _pattern(call: Call, index: int = 1) -> Re2Pattern:
    return re2_pattern(call.node, call.literal(index))


def _matches(call: Call) -> pa.Array:
    return pc.match_substring_regex(call.arrays[0], pattern=_pattern(call).text)


def _extract(call: Call) -> pa.Array:
    """Return a group of the first match; an empty text without a match."""
    group = call.literal(2, 1)
    found = pc.extract_regex(
        call.arrays[0], pattern=_pattern(call).with_group_name(group, call.node)
    )
    texts = pc.struct_field(found, ["wanted"])
    return pc.if_else(call.arrays[0].is_valid(), pc.if_else(found.is_valid(), texts, ""), None)


def _first(call: Call) -> pa.Array:
    """Return the first match; null without one."""
    found = pc.extract_regex(call.arrays[0], pattern=_pattern(call).with_group_name(0, call.node))
    texts = pc.struct_field(found, ["wanted"])
    return pc.if_else(found.is_valid(), texts, pa.scalar(None, pa.string()))


def _count(call: Call) -> pa.Array:
    pattern = _pattern(call).need_characters(call.node)
    return pc.count_substring_regex(call.arrays[0], pattern=pattern)


def _replace(call: Call) -> pa.Array:
    pattern = _pattern(call).need_characters(call.node)
    plain = _BACKSLASH.sub(lambda match: match[1], call.literal(2))
    replacement = plain.replace("\\", "\\\\")
    return pc.replace_substring_regex(call.arrays[0], pattern=pattern, replacement=replacement)


_TWO = ("text", "text")

#: The functions by Spark's names.
PATTERNS: Mapping[str, ArrowFunction] = {
    "REGEXP_LIKE": ArrowFunction(_TWO, _matches),
    "REGEXP_EXTRACT": ArrowFunction((*_TWO, "integer"), _extract, 2),
    "REGEXP_SUBSTR": ArrowFunction(_TWO, _first),
    "REGEXP_COUNT": ArrowFunction(_TWO, _count),
    "REGEXP_REPLACE": ArrowFunction((*_TWO, "text"), _replace),
}
