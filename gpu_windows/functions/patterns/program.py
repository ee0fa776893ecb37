"""Conditions as instructions, and the rows of a match that they and results name."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.rules.pattern_matching.layout import EVERY


@dataclass(frozen=True)
class Place:
    """Which row of a match is meant.

    Parameters
    ----------
    variable : int
        `EVERY`: of all rows.
    from_first : bool
        Whether rows are counted from the first one; else from the last one, backwards.
    offset : int
    """

    variable: int
    from_first: bool = False
    offset: int = 0

    def describe(self, names: tuple[str, ...]) -> str:
        """Return it in words of SQL, without the column."""
        name = "*" if self.variable == EVERY else names[self.variable]
        return f"{'FIRST' if self.from_first else 'LAST'}({name}, {self.offset})"


@dataclass(frozen=True)
class Instruction:
    """What is done next, in postfix notation; see `gpu_windows.rules.pattern_matching.layout`."""

    does: int
    first: int = 0
    second: int = 0
    column: int = 0


@dataclass(frozen=True)
class Kept:
    """An aggregate over the rows of a variable until now.

    Parameters
    ----------
    variable : int
    keeps : int
        Of `gpu_windows.rules.pattern_matching.layout`.
    column : int
        Which column it reads; -1: all rows count.
    is_float : bool
    """

    variable: int
    keeps: int
    column: int
    is_float: bool


@dataclass(frozen=True)
class Conditions:
    """The conditions of all variables.

    Parameters
    ----------
    of : tuple of tuple of Instruction
        Of each variable; none: it is true.
    texts : tuple of str
        Of each variable; empty where it has none.
    columns : tuple of str
        The columns that they read.
    ranked : frozenset of int
        Which of these are read as the ranks of their values, all of one type together.
    constants : tuple of (int, float, bool)
        What they compute with, and whether it is null.
    kept : tuple of Kept
    """

    of: tuple[tuple[Instruction, ...], ...]
    texts: tuple[str, ...]
    columns: tuple[str, ...]
    ranked: frozenset[int]
    constants: tuple[tuple[int, float, bool], ...]
    kept: tuple[Kept, ...]

    @property
    def depth(self) -> int:
        """Values that wait on the stack, at most."""
        return 2 + max(map(len, self.of), default=0)
