"""Side outputs of functions of the user's: what is declared, and the rows that are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import checked_column
from gpu_windows.user_values import copy_values

_TAG = re.compile(r"[A-Za-z0-9_-]+")
#: What a row is of: a key, or the place of what it was made of.
Of = TypeVar("Of")


def check_side_outputs(declared: Any, owner: str) -> None:
    """Raise `InvalidFunctionError` for side outputs that are not declared as they have to be."""
    rule = f"{owner}.side_outputs maps tags to pyarrow schemas"
    if not isinstance(declared, Mapping):
        raise InvalidFunctionError(rule, value=repr(declared))
    for tag, schema in declared.items():
        if not (isinstance(tag, str) and isinstance(schema, pa.Schema)):
            raise InvalidFunctionError(rule, value=f"{tag!r}: {schema!r}")
        if not _TAG.fullmatch(tag):
            rule = "a tag of a side output has letters, digits, _ and -: it names a folder"
            raise InvalidFunctionError(rule, value=repr(tag))


def check_tag(tag: object, declared: Mapping[str, object], owner: str) -> None:
    """Raise `InvalidFunctionError` for a side output that was not declared."""
    if tag not in declared:
        rule = f"{owner} must declare its side outputs; it declared {', '.join(declared) or 'none'}"
        raise InvalidFunctionError(rule, value=repr(tag))


class GatheredRows(Generic[Of]):
    """Rows that a function gives to one output, and what each is of.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns that were declared.
    owner : str
        What errors call the function.

    Attributes
    ----------
    rows : list of tuple
        The values of those that are not taken yet: a function may change a row that it has given.
    """

    def __init__(self, schema: pa.Schema, owner: str) -> None:
        self._schema, self._owner = schema, owner
        self._names = frozenset(schema.names)
        self._values = _values_of(schema.names)
        self._of: list[Of] = []
        self.rows: list[tuple[object, ...]] = []

    def add(self, of: Of, row: Mapping[str, object]) -> None:
        """Add a row.

        Raises
        ------
        InvalidFunctionError
            If it is no mapping of just the columns that were declared.
        """
        if row.__class__ is not dict or len(row) != len(self._names):
            self._check(row)
        try:
            values = self._values(row)
        except KeyError:
            self._check(row)
            raise
        self._of.append(of)
        self.rows.append(copy_values(values))

    def _check(self, row: Any) -> None:
        wanted = ", ".join(self._schema.names)
        rule = f"{self._owner} must give dicts of exactly {wanted}"
        if not isinstance(row, Mapping):
            raise InvalidFunctionError(rule, value=repr(row))
        if set(row) != self._names:
            raise InvalidFunctionError(rule, value=", ".join(map(str, row)) or "none")

    def take(self) -> tuple[list[Of], pa.Table]:
        """Return what the rows are of, and the rows; begin anew.

        Raises
        ------
        InvalidFunctionError
            If a value is not of the declared type.
        """
        values = zip(*self.rows, strict=True) if self.rows else ([] for _ in self._schema)
        columns = [
            checked_column(each, field, self._owner)
            for each, field in zip(values, self._schema, strict=True)
        ]
        of, self._of, self.rows = self._of, [], []
        return of, pa.Table.from_arrays(columns, schema=self._schema)


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[object, ...]]:
    """Return what takes the values of these names from a mapping."""
    match names:
        case []:
            return lambda _: ()
        case [name]:
            return lambda row: (row[name],)
    return itemgetter(*names)


class GatheredSides(Generic[Of]):
    """Rows that a function gives to its side outputs.

    Parameters
    ----------
    declared : mapping of str to pyarrow.Schema
        The columns of each, by tag.
    owner : str
        What errors call the function.
    """

    def __init__(self, declared: Mapping[str, pa.Schema], owner: str) -> None:
        self._owner = owner
        self._sides = {tag: GatheredRows[Of](schema, owner) for tag, schema in declared.items()}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, tag: str, of: Of, row: Mapping[str, object]) -> None:
        """Add a row.

        Raises
        ------
        InvalidFunctionError
            If the tag was not declared, or the row is not as it was.
        """
        side = self._sides.get(tag)
        if side is None:
            check_tag(tag, self._sides, self._owner)
            return
        side.add(of, row)
        self._count += 1

    def take(self) -> dict[str, tuple[list[Of], pa.Table]]:
        """Return what the rows of each are of, and the rows, by tag; begin anew."""
        self._count = 0
        return {tag: side.take() for tag, side in self._sides.items()}
