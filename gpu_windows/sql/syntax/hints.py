"""Hints of statements: those that change no result have no effect, all others are refused."""

from __future__ import annotations

import re

from gpu_windows.expressions.dialect import blank_text
from gpu_windows.expressions.sql_text import error_at

#: Hints, and what looks like one: strings and quoted names.
_HINT = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|/\*\+(?P<hints>.*?)\*/", re.DOTALL)
_CALL = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<arguments>(?:'(?:[^']|'')*'|[^'()])*)\))?\s*,?")
_JOINS = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
_TTL = (
    "it drops state, which changes results: state of windows ends with them; for versions there is "
    ".valid_for(...) of the API"
)


def without_hints(text: str) -> str:
    """Return a statement with its hints blanked out, so that positions stay the same.

    How a join is run (`_JOINS`), options of connectors of tables, which are streams given by name
    here, and how a lookup is run change no result.

    Raises
    ------
    SqlError
        For a hint that would change results, or is not known.
    """

    def blank(found: re.Match[str]) -> str:
        if found["hints"] is None:
            return found[0]
        _check(text, found["hints"], found.start("hints"))
        return blank_text(found[0])

    return _HINT.sub(blank, text)


def _check(text: str, hints: str, offset: int) -> None:
    at = 0
    while at < len(hints.rstrip()):
        call = _CALL.match(hints, at)
        if call is None:
            raise error_at(text, offset + at, "a hint is a name with options", hints[at:].strip())
        name, arguments = call["name"].upper(), (call["arguments"] or "").lower()
        place = offset + call.start("name")
        if name == "STATE_TTL":
            raise error_at(text, place, f"STATE_TTL is not covered: {_TTL}", call[0].strip())
        if name == "LOOKUP" and "'retry" in arguments:
            rule = "a lookup is not tried again for a row without a match: the table is a snapshot"
            raise error_at(text, place, rule, call[0].strip())
        if name not in (*_JOINS, "LOOKUP", "OPTIONS"):
            names = ", ".join((*_JOINS, "LOOKUP", "OPTIONS"))
            raise error_at(text, place, f"there is no hint of this name; there are {names}", name)
        at = call.end()
