"""What is matched, and what is told of a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.functions.patterns.automaton import State
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.functions.patterns.program import Conditions, Place
from gpu_windows.rules.pattern_matching import layout
from gpu_windows.vocabulary.options import show_ticks


class Skip(Enum):
    """Where the search goes on after a match (SQL: AFTER MATCH SKIP)."""

    TO_NEXT_ROW = layout.TO_NEXT_ROW
    PAST_LAST_ROW = layout.PAST_LAST_ROW
    TO_FIRST = layout.TO_FIRST
    TO_LAST = layout.TO_LAST


@dataclass(frozen=True)
class After:
    """Where the search goes on after a match.

    Parameters
    ----------
    skip : Skip
    variable : int, optional
        Of which the first or last row is meant.
    """

    skip: Skip
    variable: int | None = None

    def describe(self, names: tuple[str, ...]) -> str:
        """Return it as SQL writes it."""
        words = f"skip {self.skip.name.lower().replace('_', ' ')}"
        return words if self.variable is None else f"{words} {names[self.variable]}"


@dataclass(frozen=True)
class Picked:
    """A column of one row of a match.

    Parameters
    ----------
    name : str
        Of the result.
    place : Place
    column : str
    """

    name: str
    place: Place
    column: str


@dataclass(frozen=True)
class Folded:
    """An aggregate over the rows of a variable.

    Parameters
    ----------
    variable : int
        `gpu_windows.rules.pattern_matching.layout.EVERY`: all rows.
    bound : BoundAggregate
        Its name is that of the result.
    """

    variable: int
    bound: BoundAggregate

    @property
    def name(self) -> str:
        """Name of the result."""
        return self.bound.name


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest value of a column of the rows of a variable, of any order.

    Parameters
    ----------
    name : str
        Of the result.
    variable : int
        See `Folded`.
    column : str
    greatest : bool
    """

    name: str
    variable: int
    column: str
    greatest: bool


Measure = Picked | Folded | Extreme


@dataclass(frozen=True)
class Match:
    """A pattern of rows, and what is told of each match.

    Parameters
    ----------
    pattern : Pattern
    states : tuple of State
        Its automaton.
    conditions : Conditions
        Of each variable.
    measures : tuple of Picked, Folded or Extreme
        What results have besides the keys.
    after : After
    within : int, optional
        Ticks: the last row of a match is less than so much after the first one.
    told : mapping of str to str
        What results are, as it was said.
    then : tuple of (str, bool)
        What orders rows of one time: columns, and whether each descends.
    then_told : tuple of str
        The same, as it was said.
    """

    pattern: Pattern
    states: tuple[State, ...]
    conditions: Conditions
    measures: tuple[Measure, ...]
    after: After
    within: int | None
    told: Mapping[str, str]
    then: tuple[tuple[str, bool], ...] = ()
    then_told: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that are kept, each once."""
        read = [*self.conditions.columns]
        for each in self.measures:
            read += each.bound.columns if isinstance(each, Folded) else [each.column]
        return tuple(dict.fromkeys(read))

    def fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the result columns after the keys."""
        return tuple(
            pa.field(each.name, each.bound.result_type)
            if isinstance(each, Folded)
            else pa.field(each.name, schema.field(each.column).type)
            for each in self.measures
        )

    @property
    def facts(self) -> Mapping[str, object]:
        """What state depends on, in the words in which it was said."""
        names = self.pattern.names
        defined = dict(zip(names, self.conditions.texts, strict=True))
        return {
            "pattern": self.pattern.describe(),
            "define": {name: text for name, text in defined.items() if text},
            "after": self.after.describe(names),
            "within": self.within,
            "then": self.then_told or None,
        }

    def describe(self) -> str:
        """Return what is matched."""
        names = self.pattern.names
        parts = [f"pattern ({self.pattern.describe()})"]
        if self.within is not None:
            parts.append(f"within {show_ticks(self.within)}")
        texts = zip(names, self.conditions.texts, strict=True)
        defined = [f"{name} as {text}" for name, text in texts if text]
        if defined:
            parts.append(f"define {', '.join(defined)}")
        if self.then:
            parts.append(f"rows of one time by {', '.join(self.then_told)}")
        return f"{', '.join(parts)}, after a match {self.after.describe(names)}"
