"""Hints for statements that cannot be parsed."""

from __future__ import annotations

import re

from gpu_windows.errors import did_you_mean
from gpu_windows.expressions.dialect import WINDOW_FUNCTIONS, without_quoted

_TABLE_FUNCTION = re.compile(r"\b(\w+)\s*\(\s*TABLE\b(?!\s*\()", re.IGNORECASE)
_CLAUSE = re.compile(r"\b(SELECT|FROM|WHERE|GROUP|HAVING|ORDER|ON|OVER)\b", re.IGNORECASE)
_FIRST_WORDS = ("SELECT", "INSERT", "CREATE", "SET", "WITH", "EXECUTE", "DROP", "EXPLAIN")


def table_function_rule(text: str) -> tuple[int, str, str] | None:
    """Return the offset and the rule for a table function that does not exist, and its name."""
    for found in _TABLE_FUNCTION.finditer(without_quoted(text)):
        name = found[1]
        if name.upper() not in (*WINDOW_FUNCTIONS, "TABLE", "DATA"):
            near = did_you_mean(name, WINDOW_FUNCTIONS)
            rule = f"there is no such table function; there are {', '.join(WINDOW_FUNCTIONS)}{near}"
            return found.start(1), rule, name
    return None


def missing_sign(text: str, word: str, line: int, position: int) -> str:
    """Return a hint at a sign that may be missing before a word; empty if none may be."""
    if word.upper() in _FIRST_WORDS:
        return ": maybe a ; is missing before it"
    start = sum(len(each) for each in text.splitlines(keepends=True)[: line - 1]) + position - 1
    clauses = _CLAUSE.findall(without_quoted(text)[:start])
    is_name = re.fullmatch(r"[^\W\d]\w*|`.*`", word) is not None
    is_item = is_name and clauses[-1:] and clauses[-1].upper() == "SELECT"
    return ": maybe a , is missing before it" if is_item and word.upper() != "FROM" else ""
