"""The functions by Spark's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from gpu_windows.errors import ExpressionError
from gpu_windows.expressions.functions.call import ArrowFunction, Call
from gpu_windows.expressions.functions.json_texts import JSON, KIND_FUNCTION, KIND_PARTS
from gpu_windows.expressions.functions.lists import LISTS
from gpu_windows.expressions.functions.numbers import NUMBERS
from gpu_windows.expressions.functions.patterns import PATTERNS
from gpu_windows.expressions.functions.texts import TEXTS
from gpu_windows.expressions.functions.times import TIMES
from gpu_windows.expressions.spark_literals import UNIT_FUNCTIONS
from gpu_windows.expressions.sql_text import sql_error


def _raise_error(call: Call) -> pa.Array:
    """Raise the first message; rows whose message is null have none, which Spark does not allow."""
    messages = call.arrays[0].drop_null()
    if len(messages):
        raise ExpressionError(str(messages[0]))
    return pa.nulls(len(call.arrays[0]))


#: The functions that are evaluated over Arrow tables, but for those with a node of their own.
FUNCTIONS: Mapping[str, ArrowFunction] = {
    **TEXTS,
    **PATTERNS,
    **NUMBERS,
    **TIMES,
    **LISTS,
    **JSON,
    "RAISE_ERROR": ArrowFunction(("text",), _raise_error),
}
#: Functions whose arguments are widened to their common type.
OF_ONE_TYPE = ("GREATEST", "LEAST", "ARRAY")
#: A map of keys, which are widened to their common type, and items, which are to theirs.
MAP_FUNCTION = "MAP"
#: Functions that fail for a literal argument, too, in the rows that are evaluated.
RAISING = ("RAISE_ERROR",)
#: The texts of a list, connected by a literal.
LIST_TO_TEXT = "ARRAY_JOIN"
_TRIMS = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}


def is_covered_call(node: exp.Anonymous) -> bool:
    """Whether a call is evaluated, alone or as a part of the call around it."""
    name, around = node.name.upper(), node.parent
    if name in KIND_PARTS:
        return isinstance(around, exp.Anonymous) and around.name.upper() == KIND_PARTS[name]
    return name == LIST_TO_TEXT or name in FUNCTIONS


def plain_call(node: exp.Func) -> tuple[str, Sequence[exp.Expr]]:
    """Return the name and the arguments of a call, as they are evaluated.

    Raises
    ------
    SqlError
        If a node with a grammar of its own stands for no function, or a part of the call has no
        value of its own.
    """
    if isinstance(node, exp.Anonymous):
        return node.name.upper(), _arguments(node)
    if isinstance(node, exp.Substring):
        given = (node.this, node.args.get("start"), node.args.get("length"))
        return "SUBSTRING", [each for each in given if each is not None]
    if isinstance(node, exp.Trim):
        name = _TRIMS.get(str(node.args.get("position") or "").upper(), "TRIM")
        return name, [each for each in (node.this, node.expression) if each is not None]
    if isinstance(node, exp.Chr):
        return "CHR", node.expressions
    if isinstance(node, exp.Extract) and node.name.upper() == "YEAROFWEEK":
        return "YEAROFWEEK", [node.expression]
    raise sql_error(node, "over Arrow tables use YEAR, MONTH, ... for EXTRACT")


def _arguments(node: exp.Anonymous) -> Sequence[exp.Expr]:
    name, arguments = node.name.upper(), node.expressions
    if name in UNIT_FUNCTIONS and isinstance(arguments[0], exp.Column | exp.Var):
        return [exp.Literal.string(arguments[0].name.upper()), *arguments[1:]]
    if name != KIND_FUNCTION:
        return list(arguments)
    part = arguments[0]
    is_part = isinstance(part, exp.Anonymous) and part.name.upper() == "TRY_VARIANT_GET"
    document = part.expressions[0] if is_part else None
    if not isinstance(document, exp.Anonymous) or document.name.upper() != "TRY_PARSE_JSON":
        raise sql_error(
            node, f"over Arrow tables {name} takes TRY_VARIANT_GET(TRY_PARSE_JSON(...))"
        )
    return [document.expressions[0], part.expressions[1]]
