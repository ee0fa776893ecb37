"""The scalar functions by name, and those with a grammar of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.json_calls import JsonCall
from gpu_windows.sql.syntax.functions.building import Function, UnsupportedCallError
from gpu_windows.sql.syntax.functions.json_texts import json_call
from gpu_windows.sql.syntax.functions.nested import NESTED
from gpu_windows.sql.syntax.functions.numbers import NUMBERS
from gpu_windows.sql.syntax.functions.patterns import PATTERNS
from gpu_windows.sql.syntax.functions.texts import (
    TEXTS,
    overlay_node,
    position_node,
    substring_node,
    trim_node,
)
from gpu_windows.sql.syntax.functions.times import TIMES, extract_node, floor_or_ceil_time

#: The functions by name.
FUNCTIONS: Mapping[str, Function] = {**TEXTS, **PATTERNS, **NUMBERS, **TIMES, **NESTED}


def _floor_or_ceil(node: exp.Floor | exp.Ceil) -> exp.Expr:
    if node.args.get("to") is not None:
        return floor_or_ceil_time(node)
    if node.args.get("decimals") is not None:
        raise UnsupportedCallError("takes one number")
    return node


#: Functions with a grammar of their own, by class of node.
SPECIAL: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.Substring: substring_node,
    exp.StrPosition: position_node,
    **dict.fromkeys((exp.Floor, exp.Ceil), _floor_or_ceil),
    exp.Extract: extract_node,
    exp.Trim: trim_node,
    exp.Overlay: overlay_node,
    JsonCall: json_call,
    **dict.fromkeys((exp.If, exp.Case, exp.Cast, exp.TryCast), lambda node: node),
}
