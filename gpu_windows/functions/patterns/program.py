"""Conditions as instructions, and references to rows of a match."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowReference:
    """A reference to a row of a match.

    Parameters
    ----------
    variable : int
        `EVERY` means all rows.
    from_first : bool
        Whether rows are counted from the first one; else from the last one, backwards.
    offset : int
    """

    variable: int
    from_first: bool = False
    offset: int = 0


@dataclass(frozen=True)
class Instruction:
    """An instruction of a stack machine; see `gpu_windows.rules.pattern_matching.layout`."""

    does: int
    first: int = 0
    second: int = 0
    column: int = 0


@dataclass(frozen=True)
class RunningAggregate:
    """An aggregate over the rows of a variable so far.

    Parameters
    ----------
    variable : int
    keeps : int
        Of `gpu_windows.rules.pattern_matching.layout`.
    column : int
        Index of the column that it reads; -1 counts all rows.
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
    programs : tuple of tuple of Instruction
        Instructions of each variable's condition; empty means always true.
    texts : tuple of str
        SQL of each variable's condition; empty without one.
    columns : tuple of str
        The columns that they read.
    ranked : frozenset of int
        Indices of columns that are read as ranks of their values, one ranking for each type.
    constants : tuple of (int, float, bool)
        Integer or float, and whether it is null.
    aggregates : tuple of RunningAggregate
    """

    programs: tuple[tuple[Instruction, ...], ...]
    texts: tuple[str, ...]
    columns: tuple[str, ...]
    ranked: frozenset[int]
    constants: tuple[tuple[int, float, bool], ...]
    aggregates: tuple[RunningAggregate, ...]

    @property
    def depth(self) -> int:
        """Maximum number of values on the stack."""
        return 2 + max(map(len, self.programs), default=0)
