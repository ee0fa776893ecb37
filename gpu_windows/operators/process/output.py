"""Gathers what a process function gives, main and side outputs, into emissions of bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import checked_column
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.keyed.values import arrow_array
from gpu_windows.operators.results import TRACE

#: Rows after which an emission is handed over.
EMISSION_ROWS = 1 << 16


class Gathered:
    """Rows of one output, each with its key.

    Parameters
    ----------
    schema : pyarrow.Schema
        Key columns, then those that were declared.
    keys : int
        How many columns are of the key.
    owner : str
        What errors call the function.

    Attributes
    ----------
    rows : list of mapping
        Those that are not taken yet.
    """

    def __init__(self, schema: pa.Schema, keys: int, owner: str) -> None:
        self._keys_schema, self._schema = pa.schema([*schema][:keys]), pa.schema([*schema][keys:])
        self._owner = owner
        self._names = frozenset(self._schema.names)
        self._keys: list[tuple[Hashable, ...]] = []
        self.rows: list[Mapping[str, object]] = []

    def add(self, key: tuple[Hashable, ...], row: Mapping[str, object]) -> None:
        """Add a row.

        Raises
        ------
        InvalidFunctionError
            If it is no mapping of just the columns that were declared.
        """
        if row.__class__ is not dict or row.keys() != self._names:
            self._check(row)
        self._keys.append(key)
        self.rows.append(row)

    def _check(self, row: Any) -> None:
        wanted = ", ".join(self._schema.names)
        rule = f"{self._owner} must give dicts of exactly {wanted}"
        if not isinstance(row, Mapping):
            raise InvalidFunctionError(rule, value=repr(row))
        if set(row) != self._names:
            raise InvalidFunctionError(rule, value=", ".join(map(str, row)) or "none")

    def take(self) -> pa.Table:
        """Return the rows, and begin anew."""
        parts: Sequence[Sequence[object]] = [*zip(*self._keys, strict=True)]
        keys = [
            arrow_array(parts[i] if parts else [], field.type)
            for i, field in enumerate(self._keys_schema)
        ]
        columns = [
            checked_column([row[field.name] for row in self.rows], field, self._owner)
            for field in self._schema
        ]
        self._keys, self.rows = [], []
        schema = pa.schema([*self._keys_schema, *self._schema])
        return pa.Table.from_arrays([*keys, *columns], schema=schema)


class ProcessOutput:
    """What one operator gives back: results, side outputs, counters of the user's.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the results.
    sides : mapping of str to pyarrow.Schema
        Of the side outputs, by tag.
    keys : int
        How many columns are of the key.
    owner : str
        What errors call the function.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(
        self,
        schema: pa.Schema,
        sides: Mapping[str, pa.Schema],
        keys: int,
        owner: str,
        *,
        trace: bool,
    ) -> None:
        self._main = Gathered(schema, keys, owner)
        #: Adds a result, given its key.
        self.emit = self._emit_traced if trace else self._main.add
        self._sides = {tag: Gathered(each, keys, owner) for tag, each in sides.items()}
        self._owner, self._trace = owner, trace
        self.counts: Counter[str] = Counter()
        self.cause: tuple[str, int | None] = ("element", None)
        self._causes: list[tuple[str, int | None]] = []
        self._aside = 0
        self._no_rows = pa.table({})

    def _emit_traced(self, key: tuple[Hashable, ...], row: Mapping[str, object]) -> None:
        self._main.add(key, row)
        self._causes.append(self.cause)

    def emit_aside(self, tag: str, key: tuple[Hashable, ...], row: Mapping[str, object]) -> None:
        """Add a row to a side output.

        Raises
        ------
        InvalidFunctionError
            If the tag was not declared, or the row is not as it was.
        """
        side = self._sides.get(tag)
        if side is None:
            names = ", ".join(self._sides) or "none"
            rule = f"{self._owner} must declare its side outputs; it declared {names}"
            raise InvalidFunctionError(rule, value=repr(tag))
        side.add(key, row)
        self._aside += 1

    @property
    def is_full(self) -> bool:
        """Whether it is time to hand over what was gathered."""
        return len(self._main.rows) + self._aside >= EMISSION_ROWS

    def rest(self) -> Iterator[Emission]:
        """Yield what was gathered, if anything was."""
        if self._main.rows or self._aside or self.counts:
            yield self.take()

    def take(self) -> Emission:
        """Return what was gathered, and begin anew."""
        fired, self._aside = len(self._main.rows), 0
        counters = Counters(fired=fired, user=tuple(sorted(self.counts.items())))
        results = self._main.take()
        if self._trace:
            for i, field in enumerate(TRACE):
                causes = [cause[i] for cause in self._causes]
                results = results.append_column(field, pa.array(causes, field.type))
            self._causes = []
        self.counts.clear()
        sides = {tag: side.take() for tag, side in self._sides.items()}
        return Emission(results, self._no_rows, counters, sides)
