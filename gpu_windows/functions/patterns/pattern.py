"""A pattern: variables in order, and how many rows each takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gpu_windows.errors import InvalidPatternError

#: Maximum variables of a pattern: each is a bit of a 64-bit integer in an automaton.
MAX_VARIABLES = 60
#: Maximum bound of a quantifier: each row is a state of the automaton.
_MAX_ROWS = 1_000

_VARIABLE = re.compile(
    r"\s*(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"(?P<quantifier>\s*[*+?]|\s*\{\s*\d*\s*(?:,\s*\d*\s*)?\})?"
    r"(?P<reluctant>\s*\?)?"
)
_BOUNDS = {"": (1, 1), "*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class Variable:
    """A variable of a pattern, and how many rows it takes.

    Parameters
    ----------
    name : str
    least : int
    most : int, optional
        None is unlimited.
    greedy : bool
        Whether the variable takes each row that it can; else the next variable may take it, too.
    """

    name: str
    min_rows: int
    max_rows: int | None
    greedy: bool

    @property
    def is_loop(self) -> bool:
        """Whether it takes a variable number of rows, and may take more than one."""
        return self.max_rows != self.min_rows and self.max_rows != 1

    def describe(self) -> str:
        """Return it as SQL writes it."""
        bounds = {b: text for text, b in _BOUNDS.items()}
        text = bounds.get((self.min_rows, self.max_rows))
        if text is None:
            max_rows = "" if self.max_rows is None else self.max_rows
            low = self.min_rows
            text = f"{{{low}}}" if max_rows == low else f"{{{low},{max_rows}}}"
        return f"{self.name}{text}{'' if self.greedy else '?'}"


@dataclass(frozen=True)
class Pattern:
    """Variables, in order; a match is contiguous rows.

    Parameters
    ----------
    variables : tuple of Variable
    """

    variables: tuple[Variable, ...]

    @classmethod
    def of(cls, text: str) -> Pattern:
        """Parse a pattern, such as ``"A B+ C{2,3}? D"``.

        Raises
        ------
        InvalidPatternError
            If it cannot be parsed, or Flink does not support it.
        """
        pattern = cls(tuple(_variables(text)))
        pattern._check(text)
        return pattern

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(each.name for each in self.variables)

    def index_of(self, name: str) -> int | None:
        """Return the index of the variable with a name, in any case; None if it does not exist."""
        lower = [each.lower() for each in self.names]
        return lower.index(name.lower()) if name.lower() in lower else None

    def describe(self) -> str:
        """Return it as SQL writes it."""
        return " ".join(each.describe() for each in self.variables)

    def _check(self, text: str) -> None:
        if not self.variables or len(self.variables) > MAX_VARIABLES:
            raise InvalidPatternError(f"a pattern needs 1 to {MAX_VARIABLES} variables", value=text)
        if len({name.lower() for name in self.names}) < len(self.names):
            rule = "variables of a pattern must have names that differ in more than case"
            raise InvalidPatternError(rule, value=text)
        if all(each.min_rows == 0 for each in self.variables):
            rule = "a match needs at least one row: one variable must not be optional"
            raise InvalidPatternError(rule, value=text)
        for before, each in pairwise(self.variables):
            if before.greedy and before.is_loop and each.min_rows == 0:
                rule = (
                    f"the variable after the greedy {before.describe()} must not be optional; or "
                    f"make it reluctant: {before.describe()}?"
                )
                raise InvalidPatternError(rule, value=each.describe())
        last = self.variables[-1]
        if last.greedy and last.is_loop:
            rule = (
                "the last variable must take a fixed number of rows or be reluctant: a greedy one "
                f"would never end; use {last.describe()}? or a variable after it"
            )
            raise InvalidPatternError(rule, value=last.describe())


def _variables(text: object) -> Iterator[Variable]:
    if not isinstance(text, str):
        raise InvalidPatternError("a pattern must be a string, such as 'A B+ C'", value=repr(text))
    index_of = 0
    while text[index_of:].strip():
        found = _VARIABLE.match(text, index_of)
        if found is None or (found.end() < len(text) and _continues(text, found.end())):
            rule = (
                "a pattern takes variables, each with *, +, ?, {n}, {n,} or {n,m}, and ? after it "
                "if it is reluctant; groups, alternatives and exclusions are not covered"
            )
            at = index_of if found is None else found.end()
            raise InvalidPatternError(rule, value=text[at:].strip())
        yield _variable(found)
        index_of = found.end()


def _continues(text: str, index_of: int) -> bool:
    """Whether a character follows that cannot begin the next variable."""
    return not (text[index_of].isspace() or text[index_of - 1] in "*+?}")


def _variable(found: re.Match[str]) -> Variable:
    quantifier = "".join((found["quantifier"] or "").split())
    bounds = _BOUNDS.get(quantifier) or _numbers(quantifier)
    reluctant = found["reluctant"] is not None
    if bounds == (0, 1) and reluctant:
        rule = "an optional variable cannot be reluctant"
        raise InvalidPatternError(rule, value=found[0].strip())
    # reluctance makes no difference for a fixed number of rows
    return Variable(found["name"], *bounds, greedy=bounds[0] == bounds[1] or not reluctant)


def _numbers(quantifier: str) -> tuple[int, int | None]:
    min_rows, comma, max_rows = quantifier[1:-1].partition(",")
    if not min_rows:
        rule = "a quantifier in braces must begin with a number: {2}, {2,}, {2,3}, {0,3}"
        raise InvalidPatternError(rule, value=quantifier)
    low = int(min_rows)
    high = low if not comma else (int(max_rows) if max_rows else None)
    if max(low, high or 0) > _MAX_ROWS:
        rule = f"a quantifier can have numbers up to {_MAX_ROWS}"
        raise InvalidPatternError(rule, value=quantifier)
    if high is not None and (high == 0 or high < low):
        rule = "the upper bound of a quantifier must be positive, and not below the lower bound"
        raise InvalidPatternError(rule, value=quantifier)
    return low, high
