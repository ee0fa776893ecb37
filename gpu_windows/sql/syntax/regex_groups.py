"""Groups of literal regular expressions."""

from __future__ import annotations

from dataclasses import dataclass

_MAYBE = ("?", "*", "{0")


def groups_in_every_match(pattern: str) -> list[bool]:
    """Return for each group of a pattern, the whole first, whether every match has it.

    A group that is optional, ``(a)?`` or ``(a)|b``, or never matches, ``(?!(a))``, is NULL in Flink
    and an empty string in Spark.
    """
    found, levels = [True], [_Level()]
    opened: list[int] = []
    index = 0
    while index < len(pattern):
        one = pattern[index]
        if one == "\\":
            index += _escape_length(pattern, index)
            continue
        if one == "[":
            index = _class_end(pattern, index)
            continue
        if one == "(":
            captures = not pattern.startswith("(?", index) or _is_named(pattern, index)
            is_negative = pattern.startswith(("(?!", "(?<!"), index)
            levels.append(_Level(len(found) if captures else None, len(found), is_negative))
            found += [True] if captures else []
        elif one == "|":
            levels[-1].has_alternatives = True
        elif one == ")" and len(levels) > 1:
            level = levels.pop()
            first = level.first + (level.group is not None)
            if level.has_alternatives:
                opened += range(first, len(found))
            if level.is_negative or pattern.startswith(_MAYBE, index + 1):
                opened += range(level.first, len(found))
        index += 1
    if levels[0].has_alternatives:
        opened += range(1, len(found))
    return [each and index not in opened for index, each in enumerate(found)]


@dataclass
class _Level:
    """An open parenthesis: the number of its group, and of the first group within it."""

    group: int | None = None
    first: int = 1
    is_negative: bool = False
    has_alternatives: bool = False


def _is_named(pattern: str, index: int) -> bool:
    following = pattern[index + 2 : index + 4]
    return following.startswith("<") and following not in ("<=", "<!")


def _escape_length(pattern: str, index: int) -> int:
    if pattern.startswith("\\Q", index):
        end = pattern.find("\\E", index)
        return (len(pattern) if end < 0 else end + 2) - index
    return 2


def _class_end(pattern: str, index: int) -> int:
    """Return the index after ``[...]``, in which a leading ``]`` is a literal."""
    depth = 0
    while index < len(pattern):
        one = pattern[index]
        if one == "\\":
            index += 1
        elif one == "[":
            depth += 1
            index += pattern.startswith("^", index + 1)
            index += pattern.startswith("]", index + 1)
        elif one == "]" and depth:
            depth -= 1
            if not depth:
                return index + 1
        index += 1
    return index
