"""Statements as other people would write them: other cases, spaces and comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from gpu_windows.expressions.sql_text import parse_tree

#: Quoted parts, words, and what is neither.
_PARTS = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|\w+|\s+|.", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")


def spelled(text: str, case: Callable[[str], str]) -> str:
    """Return a statement whose keywords and functions are in another case.

    Names, literals and variables of patterns stay as they are.
    """
    tree = parse_tree(text)
    names = {each.name for each in tree.find_all(exp.Identifier)}
    names |= {word for each in tree.find_all(exp.Var) for word in _WORD.findall(_variables(each))}
    parts = _PARTS.findall(text)
    return "".join(
        case(part) if _WORD.fullmatch(part) and part not in names else part for part in parts
    )


def _variables(node: exp.Var) -> str:
    """Return the variables of a pattern, and of where a match goes on."""
    if not isinstance(node.parent, exp.MatchRecognize):
        return ""
    if node.arg_key == "pattern":
        return node.name
    last = node.name.split()[-1]
    return last if node.arg_key == "after" and last not in ("ROW", "FIRST", "LAST") else ""


def _between(text: str, gap: str) -> str:
    """Return a statement with something else where it has spaces, outside of quotes."""
    return "".join(gap if part.isspace() else part for part in _PARTS.findall(text))


#: Ways to write a statement that mean the same.
SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "lower case": lambda text: spelled(text, str.lower),
    "upper case": lambda text: spelled(text, str.upper),
    "mixed case": lambda text: spelled(text, str.capitalize),
    "one line": lambda text: _between(text, " "),
    "many lines": lambda text: f"\n\t{_between(text, chr(10) * 2)}\n",
    "comments of lines": lambda text: _between(text, " -- it's `one` /*\n") + " -- the end",
    "comments between": lambda text: "/* a */" + _between(text, " /* a -- 'b' */ "),
    "a byte order mark": lambda text: f"\ufeff{text}",
    "semicolon": lambda text: f"{text} ;\n-- the end",
}
