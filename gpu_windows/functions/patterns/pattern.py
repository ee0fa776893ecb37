"""A pattern: variables in order, and how many rows each takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gpu_windows.errors import InvalidPatternError

#: Variables of a pattern at most: an automaton notes in a bit of an integer which a row is for.
MOST = 60
#: Rows that a bound of a quantifier tells at most: each is a state of the automaton.
_MOST_ROWS = 1_000

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
        None: any number.
    greedy : bool
        Whether a row is for this variable as long as it may be; else what comes after it may take
        the row, too.
    """

    name: str
    least: int
    most: int | None
    greedy: bool

    @property
    def is_loop(self) -> bool:
        """Whether it may take another number of rows than it must, and more than one."""
        return self.most != self.least and self.most != 1

    def describe(self) -> str:
        """Return it as SQL writes it."""
        bounds = {b: text for text, b in _BOUNDS.items()}
        text = bounds.get((self.least, self.most))
        if text is None:
            most = "" if self.most is None else self.most
            text = f"{{{self.least}}}" if most == self.least else f"{{{self.least},{most}}}"
        return f"{self.name}{text}{'' if self.greedy else '?'}"


@dataclass(frozen=True)
class Pattern:
    """Variables, in order; between the rows of a match there are no others.

    Parameters
    ----------
    variables : tuple of Variable
    """

    variables: tuple[Variable, ...]

    @classmethod
    def of(cls, text: str) -> Pattern:
        """Read a pattern, such as ``"A B+ C{2,3}? D"``.

        Raises
        ------
        InvalidPatternError
            If it cannot be read, or is none that Flink has.
        """
        pattern = cls(tuple(_variables(text)))
        pattern._check(text)
        return pattern

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(each.name for each in self.variables)

    def place(self, name: str) -> int | None:
        """Return which variable has a name, in any case; None if there is none."""
        lower = [each.lower() for each in self.names]
        return lower.index(name.lower()) if name.lower() in lower else None

    def describe(self) -> str:
        """Return it as SQL writes it."""
        return " ".join(each.describe() for each in self.variables)

    def _check(self, text: str) -> None:
        if not self.variables or len(self.variables) > MOST:
            raise InvalidPatternError(f"a pattern has 1 to {MOST} variables", value=text)
        if len({name.lower() for name in self.names}) < len(self.names):
            rule = "each variable is once in a pattern, by names that differ in more than case"
            raise InvalidPatternError(rule, value=text)
        if all(each.least == 0 for each in self.variables):
            rule = "a match has at least one row: some variable must be there"
            raise InvalidPatternError(rule, value=text)
        for before, each in pairwise(self.variables):
            if before.greedy and before.is_loop and each.least == 0:
                rule = (
                    f"after the greedy {before.describe()} comes a variable that must be there, or "
                    f"it is reluctant: {before.describe()}?"
                )
                raise InvalidPatternError(rule, value=each.describe())
        last = self.variables[-1]
        if last.greedy and last.is_loop:
            rule = (
                "the last variable takes one row, a fixed number, or is reluctant: a greedy one "
                f"would never be known to be over; say {last.describe()}? or a variable after it"
            )
            raise InvalidPatternError(rule, value=last.describe())


def _variables(text: object) -> Iterator[Variable]:
    if not isinstance(text, str):
        raise InvalidPatternError("a pattern is a text, such as 'A B+ C'", value=repr(text))
    place = 0
    while text[place:].strip():
        found = _VARIABLE.match(text, place)
        if found is None or (found.end() < len(text) and _goes_on(text, found.end())):
            rule = (
                "a pattern is names of variables, each with *, +, ?, {n}, {n,} or {n,m}, and "
                "? after it if it is reluctant; groups, alternatives and exclusions are not there"
            )
            at = place if found is None else found.end()
            raise InvalidPatternError(rule, value=text[at:].strip())
        yield _variable(found)
        place = found.end()


def _goes_on(text: str, place: int) -> bool:
    """Whether something follows without a space that is no variable."""
    return not (text[place].isspace() or text[place - 1] in "*+?}")


def _variable(found: re.Match[str]) -> Variable:
    quantifier = "".join((found["quantifier"] or "").split())
    bounds = _BOUNDS.get(quantifier) or _numbers(quantifier)
    reluctant = found["reluctant"] is not None
    if bounds == (0, 1) and reluctant:
        rule = "a variable that may be left out is not reluctant"
        raise InvalidPatternError(rule, value=found[0].strip())
    # of a fixed number of rows there is nothing to be reluctant about
    return Variable(found["name"], *bounds, greedy=bounds[0] == bounds[1] or not reluctant)


def _numbers(quantifier: str) -> tuple[int, int | None]:
    least, comma, most = quantifier[1:-1].partition(",")
    if not least:
        rule = "a quantifier in braces begins with a number: {2}, {2,}, {2,3}, {0,3}"
        raise InvalidPatternError(rule, value=quantifier)
    low = int(least)
    high = low if not comma else (int(most) if most else None)
    if max(low, high or 0) > _MOST_ROWS:
        rule = f"a quantifier has numbers up to {_MOST_ROWS}"
        raise InvalidPatternError(rule, value=quantifier)
    if high is not None and (high == 0 or high < low):
        rule = "a quantifier is from a number to one that is not less, and greater than 0"
        raise InvalidPatternError(rule, value=quantifier)
    return low, high
