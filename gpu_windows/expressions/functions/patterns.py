r"""Regular expressions: those of Java as those of RE2, which Arrow has, where both mean the same.

Refused are parts that RE2 lacks (lookaround, back references, possessive quantifiers), parts whose
meaning differs (``\b``, ``$`` but for the last one, flags but for ``(?i)`` at the beginning,
classes of classes), and repeated groups that may match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from gpu_windows.expressions.functions.call import ArrowFunction, Call
from gpu_windows.expressions.sql_text import sql_error

#: Ends of lines, which a dot does not match in Java.
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
#: Classes of characters by their letters, and what letters after a backslash mean.
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\x0B\f\r "}
_IN_CLASS = {**_CLASSES, "t": r"\t", "n": r"\n", "r": r"\r"}
_ESCAPES = {
    **{letter: f"\\{letter}" for letter in "tnrfAz"},
    **{letter: f"[{members}]" for letter, members in _CLASSES.items()},
    **{letter.upper(): f"[^{members}]" for letter, members in _CLASSES.items()},
}
_PROPERTY = re.compile(r"\\[pP]\{(L|Lu|Ll|N|Nd|P|S|Z)\}")
_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(,(\d*))?\}")
_MAX_REPEATS = 1_000
#: What ``$`` matches: the end, also before a last line end.
_END = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_IGNORE_CASE = "(?i)"
_SAFE_ESCAPE = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True)
class Re2Pattern:
    """A pattern of RE2.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        For the position of errors.
    text : str
        Groups that capture are those of the pattern in Java.
    groups : tuple of int
        Where each of these groups begins in the text.
    may_be_empty : bool
        Whether it may match no character.
    end : int, optional
        Where the text begins that stands for a last ``$``, which matches no character itself.
    has_alternatives : bool
        Whether it is one of several alternatives.
    """

    node: exp.Expr
    text: str
    groups: tuple[int, ...]
    may_be_empty: bool
    end: int | None = None
    has_alternatives: bool = False

    def with_group_name(self, index: int) -> str:
        """Return the pattern with the name ``wanted`` for a group, 0 for the whole match.

        Raises
        ------
        SqlError
            For the whole match of alternatives that end with ``$``.
        """
        if index:
            return self._without_groups(index - 1)
        text = self._without_groups(None)
        if self.end is None:
            return f"(?P<wanted>{text})"
        if self.has_alternatives:
            raise self._end_error()
        tail = len(self.text) - self.end
        return f"(?P<wanted>{text[:-tail]}){text[-tail:]}"

    def _without_groups(self, wanted: int | None) -> str:
        """Return the pattern in which no other group captures: Arrow needs names for all."""
        text = self.text
        for index, start in reversed([*enumerate(self.groups)]):
            mark = "(?P<wanted>" if index == wanted else "(?:"
            text = f"{text[:start]}{mark}{text[start + 1 :]}"
        return text

    def need_characters(self) -> str:
        """Return the pattern; raise `SqlError` if it may match no character."""
        if self.end is not None:
            raise self._end_error()
        if self.may_be_empty:
            rule = "over Arrow tables this pattern must match a character at least"
            raise sql_error(self.node, rule)
        return self.text

    def _end_error(self) -> Exception:
        rule = "over Arrow tables $, which also matches before a last line end, is not covered here"
        return sql_error(self.node, f"{rule}: use \\z, or query a Spark DataFrame")


def re2_pattern(node: exp.Expr, pattern: str) -> Re2Pattern:
    """Return a pattern of Java for RE2.

    Raises
    ------
    SqlError
        If RE2 lacks a part of it, or gives it another meaning.
    """
    reader = _Reader(node, pattern)
    text, may_be_empty = reader.alternatives()
    if reader.at < len(pattern):
        raise reader.refusal("a closing parenthesis without an opening one")
    groups = tuple(reader.groups)
    return Re2Pattern(node, text, groups, may_be_empty, reader.end, reader.has_alternatives)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, node: exp.Expr, pattern: str) -> None:
        self._node, self._pattern = node, pattern
        self.ignores_case = pattern.startswith(_IGNORE_CASE)
        self.at = len(_IGNORE_CASE) if self.ignores_case else 0
        self.groups: list[int] = []
        self.end: int | None = None
        self.has_alternatives = False
        self._depth = 0
        self._length = 0  # of the text so far

    def refusal(self, part: str) -> Exception:
        """Return the error for a part of the pattern."""
        rule = f"over Arrow tables a regular expression cannot have {part}: query a Spark DataFrame"
        return sql_error(self._node, rule, self._pattern)

    def _next(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def _emit(self, text: str) -> str:
        self._length += len(text)
        return text

    def alternatives(self) -> tuple[str, bool]:
        """Return alternatives up to the end of a group, and whether they may be empty."""
        text, may_be_empty = self._sequence()
        while self._next() == "|":
            self.at += 1
            self.has_alternatives |= self._depth == 0
            text += self._emit("|")
            other, is_empty = self._sequence()
            text, may_be_empty = text + other, may_be_empty or is_empty
        return text, may_be_empty

    def _sequence(self) -> tuple[str, bool]:
        text, may_be_empty = "", True
        while self._next() not in ("", "|", ")"):
            part, is_empty = self._repetition()
            text, may_be_empty = text + part, may_be_empty and is_empty
        return text, may_be_empty

    def _repetition(self) -> tuple[str, bool]:
        text, is_empty = self._atom()
        match = _QUANTIFIER.match(self._pattern, self.at)
        if match is None:
            return text, is_empty
        self.at = match.end()
        if is_empty:
            raise self.refusal("a repeated part that may match nothing")
        counts = [int(each) for each in (match[1], match[3]) if each]
        if any(each > _MAX_REPEATS for each in counts):
            raise self.refusal(f"more than {_MAX_REPEATS} repetitions")
        if self._next() == "+":
            raise self.refusal("possessive quantifiers")
        mark = match[0]
        if self._next() == "?":
            self.at, mark = self.at + 1, mark + "?"
        if _QUANTIFIER.match(self._pattern, self.at):
            raise self.refusal("two quantifiers")
        return text + self._emit(mark), match[0] in ("*", "?") or match[1] == "0"

    def _atom(self) -> tuple[str, bool]:
        one = self._next()
        if one == "(":
            return self._group()
        if one == "[":
            return self._emit(self._class()), False
        if one == "\\":
            return self._emit(self._escape(_ESCAPES)), False
        self.at += 1
        if one == ".":
            return self._emit(f"[^{_LINE_ENDS}]"), False
        if one == "^":
            return self._emit(r"\A"), True
        if one == "$":
            if self._depth or self.at < len(self._pattern):
                raise self.refusal("$ before its end, which also matches before a last line end")
            self.end = self._length
            return self._emit(_END), True
        if one in "*+?{":
            raise self.refusal("a quantifier without a part before it")
        if self.ignores_case and one.isascii() and one.isalpha():
            return self._emit(f"[{one}{one.swapcase()}]"), False
        return self._emit(re.escape(one) if one in "]}" else one), False

    def _group(self) -> tuple[str, bool]:
        rest, start = self._pattern[self.at :], self._length
        if rest.startswith("(?s:.*)"):
            self.at += len("(?s:.*)")
            return self._emit("(?s:.*)"), True
        if rest.startswith("(?:"):
            self.at, mark = self.at + 3, "(?:"
        elif rest.startswith("(?"):
            raise self.refusal("flags, names and lookaround: (?")
        else:
            self.at, mark = self.at + 1, "("
            self.groups.append(start)
        opened = self._emit(mark)
        self._depth += 1
        inner, is_empty = self.alternatives()
        self._depth -= 1
        if self._next() != ")":
            raise self.refusal("a parenthesis that is not closed")
        self.at += 1
        return opened + inner + self._emit(")"), is_empty

    def _escape(self, meanings: Mapping[str, str], place: str = "") -> str:
        """Return what a backslash and what follows it match; place: for messages."""
        found = _PROPERTY.match(self._pattern, self.at)
        if found is not None:
            if self.ignores_case:
                raise self.refusal("(?i) with classes of letters")
            self.at = found.end()
            return found[0]
        one = self._pattern[self.at + 1 : self.at + 2]
        self.at += 2
        if one in meanings:
            return meanings[one]
        if one and _SAFE_ESCAPE.fullmatch(one):
            return re.escape(one)
        raise self.refusal(f"\\{one}{place}")

    def _class(self) -> str:
        """Return a class of characters, ranges and escapes."""
        self.at += 1
        text = "["
        if self._next() == "^":
            self.at, text = self.at + 1, "[^"
        members: list[str] = []
        while True:
            one = self._next()
            if not one:
                raise self.refusal("a class that is not closed")
            if one == "]" and members:
                self.at += 1
                return f"{text}{''.join(members)}{self._other_case(members)}]"
            if one in "[]" or self._pattern.startswith("&&", self.at):
                raise self.refusal("classes within classes: escape [ and ]")
            if one == "\\":
                members.append(self._escape(_IN_CLASS, " in a class"))
            else:
                self.at += 1
                members.append(one)

    def _other_case(self, members: list[str]) -> str:
        """Return the members of the other case in a class that ignores case."""
        if not self.ignores_case:
            return ""
        single = [each for each in members if len(each) == 1 and each.isascii()]
        if "-" in members[1:-1] and len(single) < len(members):
            raise self.refusal("(?i) with ranges and escapes in one class")
        letters = "".join(each.swapcase() for each in single if each.isalpha() or each == "-")
        return letters.strip("-") if "-" in members[1:-1] else letters.replace("-", "")


# ---- functions

_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)


def _pattern(call: Call) -> Re2Pattern:
    return re2_pattern(call.node, call.literal(1))


def _matches(call: Call) -> pa.Array:
    return pc.match_substring_regex(call.arrays[0], pattern=_pattern(call).text)


def _first(call: Call, group: int = 0) -> pa.Array:
    """Return the first match, or a group of it; null without one."""
    found = pc.extract_regex(call.arrays[0], pattern=_pattern(call).with_group_name(group))
    texts = pc.struct_field(found, ["wanted"])
    return pc.if_else(found.is_valid(), texts, pa.scalar(None, pa.string()))


def _extract(call: Call) -> pa.Array:
    """Return a group of the first match; an empty text without a match."""
    texts = pc.coalesce(_first(call, call.literal(2, 1)), "")
    return pc.if_else(call.arrays[0].is_valid(), texts, None)


def _count(call: Call) -> pa.Array:
    return pc.count_substring_regex(call.arrays[0], pattern=_pattern(call).need_characters())


def _replace(call: Call) -> pa.Array:
    pattern = _pattern(call).need_characters()
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
