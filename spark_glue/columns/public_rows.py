"""Arrow tables of an operator, with the names and types that users see."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

#: What Spark's TIMESTAMP is in Arrow.
_TIMESTAMP = pa.timestamp("us", "UTC")


def public_rows(
    rows: pa.Table, public: Mapping[str, str], ticks: Collection[str], own: Collection[str]
) -> pa.Table:
    """Return rows with the columns that users see.

    Parameters
    ----------
    rows : pyarrow.Table
    public : mapping of str to str
        Names of columns to those that the user gave them.
    ticks : collection of str
        Columns of ticks, which become timestamps.
    own : collection of str
        Internal columns, which are left out.
    """
    columns = {
        name: rows[name].cast(_TIMESTAMP) if name in ticks else rows[name]
        for name in rows.column_names
        if name not in own
    }
    return pa.table({public.get(name, name): found for name, found in columns.items()})
