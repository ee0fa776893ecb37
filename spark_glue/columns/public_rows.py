"""Arrow tables of an operator, with the names and types that users see."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa


def public_rows(
    rows: pa.Table,
    public: Mapping[str, str],
    times: Mapping[str, pa.DataType],
    own: Collection[str],
) -> pa.Table:
    """Return rows with the columns that users see.

    Parameters
    ----------
    rows : pyarrow.Table
    public : mapping of str to str
        Names of columns to those that the user gave them.
    times : mapping of str to pyarrow.DataType
        Columns of ticks, and what they become.
    own : collection of str
        Internal columns, which are left out.
    """
    columns = {
        name: rows[name].cast(times[name]) if name in times else rows[name]
        for name in rows.column_names
        if name not in own
    }
    return pa.table({public.get(name, name): found for name, found in columns.items()})
