"""Groups of regular expressions that are written out."""

from __future__ import annotations

from dataclasses import dataclass

_MAYBE = ("?", "*", "{0")


def groups_of(pattern: str) -> list[bool]:
    """Return for each group of a pattern, the whole first, whether every match has it.

    One that may be left out, ``(a)?`` or ``(a)|b``, or that never matches, ``(?!(a))``, is NULL in
    Flink and an empty text in Spark.
    """
    found, levels = [True], [_Level()]
    opened: list[int] = []
    place = 0
    while place < len(pattern):
        one = pattern[place]
        if one == "\\":
            place += _escape_length(pattern, place)
            continue
        if one == "[":
            place = _class_end(pattern, place)
            continue
        if one == "(":
            captures = not pattern.startswith("(?", place) or _is_named(pattern, place)
            is_negative = pattern.startswith(("(?!", "(?<!"), place)
            levels.append(_Level(len(found) if captures else None, len(found), is_negative))
            found += [True] if captures else []
        elif one == "|":
            levels[-1].has_alternatives = True
        elif one == ")" and len(levels) > 1:
            level = levels.pop()
            first = level.first + (level.group is not None)
            if level.has_alternatives:
                opened += range(first, len(found))
            if level.is_negative or pattern.startswith(_MAYBE, place + 1):
                opened += range(level.first, len(found))
        place += 1
    if levels[0].has_alternatives:
        opened += range(1, len(found))
    return [each and place not in opened for place, each in enumerate(found)]


@dataclass
class _Level:
    """Parentheses that are open, the number of their group, and the first group within them."""

    group: int | None = None
    first: int = 1
    is_negative: bool = False
    has_alternatives: bool = False


def _is_named(pattern: str, place: int) -> bool:
    behind = pattern[place + 2 : place + 4]
    return behind.startswith("<") and behind not in ("<=", "<!")


def _escape_length(pattern: str, place: int) -> int:
    if pattern.startswith("\\Q", place):
        end = pattern.find("\\E", place)
        return (len(pattern) if end < 0 else end + 2) - place
    return 2


def _class_end(pattern: str, place: int) -> int:
    """Return the place behind ``[...]``, in which a first ``]`` is a letter."""
    depth = 0
    while place < len(pattern):
        one = pattern[place]
        if one == "\\":
            place += 1
        elif one == "[":
            depth += 1
            place += pattern.startswith("^", place + 1)
            place += pattern.startswith("]", place + 1)
        elif one == "]" and depth:
            depth -= 1
            if not depth:
                return place + 1
        place += 1
    return place
