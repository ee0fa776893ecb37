"""Rows joined with a table that does not change while they are read: a lookup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.widening import common_type
from gpu_windows.errors import ColumnTypeError, QueryError
from gpu_windows.planning.validation import check_new, require_column


@dataclass(frozen=True)
class Lookup:
    """How rows get columns of the rows of a table that have the same key.

    Parameters
    ----------
    keys : mapping of str to str
        Columns of the rows to columns of the table: all are equal. Nulls equal nothing.
    columns : mapping of str to str
        New names to columns of the table.
    keep_unmatched : bool
        Whether a row without a match stays, with nulls.
    """

    keys: Mapping[str, str]
    columns: Mapping[str, str]
    keep_unmatched: bool = False

    def check(self, rows: pa.Schema, table: pa.Schema) -> None:
        """Raise unless columns exist, keys can be compared, and new names are free.

        Raises
        ------
        ColumnTypeError
            If a key is a float, or the types of both sides have no common one.
        QueryError
            If there are no keys, a column does not exist or a name is picked.
        """
        if not self.keys:
            raise QueryError("a lookup needs a key: on={'column': 'column of the table'}")
        for own, other in self.keys.items():
            require_column(rows, own)
            require_column(table, other)
            one, two = rows.field(own).type, table.field(other).type
            if types.is_floating(one) or types.is_nested(one) or common_type(one, two) is None:
                rule = "keys of a lookup have one type, neither floats nor lists nor structs"
                raise ColumnTypeError(rule, value=f"{one} = {two}", column=own)
        for other in self.columns.values():
            require_column(table, other)
        check_new(rows, [*self.columns])


def look_up(rows: pa.Table, table: pa.Table, lookup: Lookup) -> pa.Table:
    """Return the rows with the columns of each row of the table that has their key.

    Raises
    ------
    QueryError
        See `Lookup.check`.
    """
    lookup.check(rows.schema, table.schema)
    codes, is_valid = _codes(rows, table, lookup.keys)
    count = len(rows)
    own, other = codes[:count], codes[count:]
    places = np.flatnonzero(is_valid[count:])
    places = places[np.argsort(other[places], kind="stable")]
    ordered = other[places]
    first = np.searchsorted(ordered, own, "left")
    matches = np.where(is_valid[:count], np.searchsorted(ordered, own, "right") - first, 0)
    counts = np.maximum(matches, 1) if lookup.keep_unmatched else matches
    left = np.repeat(np.arange(count), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_missing = np.repeat(matches == 0, counts)
    index = np.where(is_missing, 0, np.repeat(first, counts) + within)
    right = places[index] if len(places) else np.zeros(len(index), np.int64)
    picked = pa.array(right, pa.int64(), mask=is_missing)
    found = rows.take(pa.array(left, pa.int64()))
    for name, column in lookup.columns.items():
        field = pa.field(name, table.schema.field(column).type)
        found = found.append_column(field, table.column(column).combine_chunks().take(picked))
    return found


def _codes(
    rows: pa.Table, table: pa.Table, keys: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of the keys of the rows, then of the table, and which are not null."""
    size = len(rows) + len(table)
    codes, is_valid = np.zeros(size, np.int64), np.ones(size, bool)
    for own, other in keys.items():
        dtype = common_type(rows.schema.field(own).type, table.schema.field(other).type)
        chunks = [each.cast(dtype) for each in (rows.column(own), table.column(other))]
        both = pa.chunked_array([part for each in chunks for part in each.chunks], dtype)
        encoded = both.combine_chunks().dictionary_encode()
        is_valid &= np.asarray(encoded.is_valid())
        numbers = np.asarray(encoded.indices.fill_null(0), np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + numbers, return_inverse=True)
    return codes, is_valid
