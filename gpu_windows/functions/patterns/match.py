"""A pattern to match, and the measures of each match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.functions.patterns.automaton import State
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.functions.patterns.program import Conditions, RowReference
from gpu_windows.rules.pattern_matching import layout
from gpu_windows.vocabulary.options import show_ticks


class Skip(Enum):
    """Where the search resumes after a match (SQL: AFTER MATCH SKIP)."""

    TO_NEXT_ROW = layout.TO_NEXT_ROW
    PAST_LAST_ROW = layout.PAST_LAST_ROW
    TO_FIRST = layout.TO_FIRST
    TO_LAST = layout.TO_LAST


@dataclass(frozen=True)
class After:
    """Where the search resumes after a match, with the variable.

    Parameters
    ----------
    skip : Skip
    variable : int, optional
        The variable of `Skip.TO_FIRST` and `Skip.TO_LAST`.
    """

    skip: Skip
    variable: int | None = None

    def describe(self, names: tuple[str, ...]) -> str:
        """Return it as SQL writes it."""
        words = f"skip {self.skip.name.lower().replace('_', ' ')}"
        return words if self.variable is None else f"{words} {names[self.variable]}"


@dataclass(frozen=True)
class RowValue:
    """A column of one row of a match.

    Parameters
    ----------
    name : str
        Of the result.
    row : RowReference
    column : str
    """

    name: str
    row: RowReference
    column: str


@dataclass(frozen=True)
class VariableAggregate:
    """An aggregate over the rows of a variable.

    Parameters
    ----------
    variable : int
        `gpu_windows.rules.pattern_matching.layout.EVERY` means all rows.
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
class VariableExtreme:
    """The minimum or maximum of a column over the rows of a variable, of any type with an order.

    Parameters
    ----------
    name : str
        Of the result.
    variable : int
        See `VariableAggregate`.
    column : str
    greatest : bool
    """

    name: str
    variable: int
    column: str
    greatest: bool


Measure = RowValue | VariableAggregate | VariableExtreme


@dataclass(frozen=True)
class Match:
    """A pattern of rows, and the measures of each match.

    Parameters
    ----------
    pattern : Pattern
    states : tuple of State
        Its automaton.
    conditions : Conditions
        Of each variable.
    measures : tuple of RowValue, VariableAggregate or VariableExtreme
        Columns of results in addition to the keys.
    after : After
    within : int, optional
        Exclusive upper bound of the time from the first to the last row of a match, in ticks.
    measure_texts : mapping of str to str
        SQL of the measures, by name.
    then : tuple of (str, bool)
        Columns that order rows of equal time, and whether each is descending.
    then_texts : tuple of str
        The same, for descriptions.
    """

    pattern: Pattern
    states: tuple[State, ...]
    conditions: Conditions
    measures: tuple[Measure, ...]
    after: After
    within: int | None
    measure_texts: Mapping[str, str]
    then: tuple[tuple[str, bool], ...] = ()
    then_texts: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that state stores, without duplicates."""
        read = [*self.conditions.columns]
        for each in self.measures:
            read += each.bound.columns if isinstance(each, VariableAggregate) else [each.column]
        return tuple(dict.fromkeys(read))

    def fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the result columns after the keys."""
        return tuple(
            pa.field(each.name, each.bound.result_type)
            if isinstance(each, VariableAggregate)
            else pa.field(each.name, schema.field(each.column).type)
            for each in self.measures
        )

    @property
    def facts(self) -> Mapping[str, object]:
        """The parts of the query that state depends on, as text."""
        names = self.pattern.names
        definitions = dict(zip(names, self.conditions.texts, strict=True))
        return {
            "pattern": self.pattern.describe(),
            "define": {name: text for name, text in definitions.items() if text},
            "after": self.after.describe(names),
            "within": self.within,
            "then": self.then_texts or None,
        }

    def describe(self) -> str:
        """Return the pattern, its conditions and options."""
        names = self.pattern.names
        parts = [f"pattern ({self.pattern.describe()})"]
        if self.within is not None:
            parts.append(f"within {show_ticks(self.within)}")
        texts = zip(names, self.conditions.texts, strict=True)
        definitions = [f"{name} as {text}" for name, text in texts if text]
        if definitions:
            parts.append(f"define {', '.join(definitions)}")
        if self.then:
            parts.append(f"rows of one time by {', '.join(self.then_texts)}")
        return f"{', '.join(parts)}, after a match {self.after.describe(names)}"
