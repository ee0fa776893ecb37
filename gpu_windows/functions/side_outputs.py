"""Side outputs of users' functions: checks of their declarations, and buffers of their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import check_row, checked_column
from gpu_windows.functions.declarations import check_names
from gpu_windows.user_values import copy_values

_TAG = re.compile(r"[A-Za-z0-9_-]+")
#: The origin of a row: a key, or the index of an input.
Origin = TypeVar("Origin")


def check_side_outputs(schemas: Any, owner: str) -> None:
    """Raise `InvalidFunctionError` unless tags are mapped to Arrow schemas."""
    rule = f"{owner}.side_outputs maps tags to pyarrow schemas"
    check_names(schemas, pa.Schema, rule)
    for tag in schemas:
        if not _TAG.fullmatch(tag):
            rule = "a tag of a side output has letters, digits, _ and -: it names a folder"
            raise InvalidFunctionError(rule, value=repr(tag))


def check_tag(tag: object, tags: Collection[str], owner: str) -> None:
    """Raise `InvalidFunctionError` unless a tag is one of the declared ones."""
    if tag not in tags:
        rule = f"{owner} must declare its side outputs; it declared {', '.join(tags) or 'none'}"
        raise InvalidFunctionError(rule, value=repr(tag))


class GatheredRows(Generic[Origin]):
    """Rows that a function emits to one output, and the origin of each.

    Parameters
    ----------
    schema : pyarrow.Schema
        The declared columns.
    owner : str
        The name of the function for errors.

    Attributes
    ----------
    rows : list of tuple
        Values of the rows since the last `take`; copies, as a function may change a row later.
    """

    def __init__(self, schema: pa.Schema, owner: str) -> None:
        self._schema, self._owner = schema, owner
        self._names = frozenset(schema.names)
        self._values = _values_of(schema.names)
        self._origins: list[Origin] = []
        self.rows: list[tuple[object, ...]] = []

    def add(self, origin: Origin, row: Mapping[str, object]) -> None:
        """Add a row.

        Raises
        ------
        InvalidFunctionError
            If it is not a mapping of exactly the declared columns.
        """
        if row.__class__ is not dict or len(row) != len(self._names):
            self._check(row)
        try:
            values = self._values(row)
        except KeyError:
            self._check(row)
            raise
        self._origins.append(origin)
        self.rows.append(copy_values(values))

    def _check(self, row: Any) -> None:
        rule = f"{self._owner} must give dicts of exactly {', '.join(self._schema.names)}"
        check_row(row, self._schema.names, rule)

    def take(
        self, describe: Callable[[Origin], str] | None = None
    ) -> tuple[list[Origin], pa.Table]:
        """Remove and return the origins of the rows, and the rows.

        ``describe``: returns, for messages, what an origin is.

        Raises
        ------
        InvalidFunctionError
            If a value is not of the declared type.
        """
        values = zip(*self.rows, strict=True) if self.rows else ([] for _ in self._schema)
        origins = self._origins
        of_row = None if describe is None else partial(self._describe_row, describe)
        columns = [
            checked_column(each, field, self._owner, of_row)
            for each, field in zip(values, self._schema, strict=True)
        ]
        self._origins, self.rows = [], []
        return origins, pa.Table.from_arrays(columns, schema=self._schema)

    def _describe_row(self, describe: Callable[[Origin], str], number: int) -> str:
        row = dict(zip(self._schema.names, self.rows[number], strict=True))
        return f"{describe(self._origins[number])}, which gave {row!r}"


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[object, ...]]:
    """Return a function from a mapping to its values of these names."""
    match names:
        case []:
            return lambda _: ()
        case [name]:
            return lambda row: (row[name],)
    return itemgetter(*names)


class GatheredSides(Generic[Origin]):
    """Rows that a function emits to its side outputs.

    Parameters
    ----------
    schemas : mapping of str to pyarrow.Schema
        The columns of each, by tag.
    owner : str
        The name of the function for errors.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema], owner: str) -> None:
        self._owner = owner
        self._sides = {tag: GatheredRows[Origin](schema, owner) for tag, schema in schemas.items()}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, tag: str, origin: Origin, row: Mapping[str, object]) -> None:
        """Add a row.

        Raises
        ------
        InvalidFunctionError
            If the tag is not declared, or the row is not as declared.
        """
        side = self._sides.get(tag)
        if side is None:
            check_tag(tag, self._sides, self._owner)
            return
        side.add(origin, row)
        self._count += 1

    def take(
        self, describe: Callable[[Origin], str] | None = None
    ) -> dict[str, tuple[list[Origin], pa.Table]]:
        """Remove and return the origins of the rows, and the rows, by tag."""
        self._count = 0
        return {tag: side.take(describe) for tag, side in self._sides.items()}
