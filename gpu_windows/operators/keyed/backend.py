"""State and timers of keys in memory, and their entries in a log.

Entries are an Arrow table: a row each, flat columns, of several kinds. An entry has the columns of
its kind; the others are null. Those of a kind and a key are in the operator's own order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import CONVERSION_ERRORS
from gpu_windows.operators.keyed.values import key_part, plain_type, stored_type
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN

Key: TypeAlias = tuple[Hashable, ...]

#: Column of the kind of an entry, as a number.
KIND = "kind"


class Numbered(Protocol):
    """A set of timers that numbers them in the order in which they are set."""

    next_number: int

    def __len__(self) -> int:
        """Return the number of timers."""


class KeyedBackend(ABC):
    """Keyed state of an operator in memory.

    Parameters
    ----------
    query : Query
    kinds : sequence of str
        The names under which entries are counted, by the number of their kind.

    Attributes
    ----------
    watermark, processing_time : int
        In ticks.
    event_timers, processing_timers : Numbered
    key_columns : list of str
        The key columns of entries.
    """

    event_timers: Numbered
    processing_timers: Numbered

    def __init__(self, query: Query, kinds: Sequence[str]) -> None:
        self._query, self._kinds = query, kinds
        self.watermark, self.processing_time = LONG_MIN, 0
        self.key_columns = [f"key{number}" for number in range(len(query.keys))]

    @abstractmethod
    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind in memory."""

    # ---- as entries

    @abstractmethod
    def entries(self) -> pa.Table:
        """Return the entries of all keys in memory.

        Raises
        ------
        InvalidFunctionError
            If state of user code is not of its declared type.
        """

    @abstractmethod
    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""

    @property
    @abstractmethod
    def _columns(self) -> Mapping[str, pa.DataType]:
        """The columns of entries beside kind, key and `TIMERS`, and their types."""

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns of entries, and their types."""
        keys = (stored_type(self._query.schema.field(name).type) for name in self._query.keys)
        columns = {
            KIND: pa.int8(),
            **dict(zip(self.key_columns, keys, strict=True)),
            **dict.fromkeys(TIMERS, pa.int64()),
            **self._columns,
        }
        return {name: plain_type(dtype) for name, dtype in columns.items()}

    def counts(self, entries: pa.Table) -> Counter[str]:
        """Return the number of entries of each kind in a table."""
        numbers = np.bincount(entries.column(KIND).to_numpy(), minlength=len(self._kinds))
        return Counter(dict(zip(self._kinds, numbers.tolist(), strict=True)))

    def _concat(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Return the entries of several kinds as one table."""
        return pa.concat_tables([pa.schema(self.types.items()).empty_table(), *tables])

    def _table(self, kind: int, columns: Mapping[str, pa.Array]) -> pa.Table:
        """Return entries of a kind, given its columns; the other columns of entries are null."""
        count = len(columns[self.key_columns[0]])
        known_columns = {
            **dict.fromkeys(TIMERS, pa.array(np.full(count, LONG_MAX))),
            KIND: pa.array(np.full(count, kind, np.int8)),
            **columns,
        }
        return pa.table(
            {
                name: known_columns[name] if name in known_columns else pa.nulls(count, dtype)
                for name, dtype in self.types.items()
            }
        )

    def _table_of(
        self, kind: int, name: str, keys: Iterable[Key], columns: Mapping[str, Sequence[Any]]
    ) -> pa.Table:
        """Return entries of a kind, given by Python values; ``name``: of the kind, in errors."""
        parts = zip(self.key_columns, zip(*keys, strict=True), strict=True)
        try:
            arrays = {
                column: pa.array(values, self.types[column])
                for column, values in {**dict(parts), **columns}.items()
            }
        except CONVERSION_ERRORS as error:
            rule = f"state of user code must have its declared types: {error}"
            raise InvalidFunctionError(rule, value=name) from error
        return self._table(kind, arrays)

    def _keys_of(self, entries: pa.Table) -> list[Key]:
        """Return the key of each entry."""
        columns = (map(key_part, entries.column(name).to_pylist()) for name in self.key_columns)
        return [*zip(*columns, strict=True)]


def select(entries: pa.Table, kind: int) -> pa.Table:
    """Return the entries of a kind."""
    return entries.filter(pc.equal(entries.column(KIND), kind))
