"""Rows too far in the future, which bypass watermarks and operators and are rejected.

Spark marks them (`gpu_windows.spark_glue.contract.watermarks`), a packing task splits them from the
other rows, and their shard emits them as rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.own_columns import REASON

#: Name of the column of a row's mark: whether it is too far in the future.
FUTURE = "__future"
_REASON = "future_timestamp"


def split_future_rows(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of each table that are not too far in the future, then those that are.

    The latter are a table with the column `REASON`: see `are_rejected`.
    """
    for table in tables:
        if FUTURE not in table.column_names:
            yield table
            continue
        marked, rows = table[FUTURE], table.drop_columns([FUTURE])
        future = rows.filter(marked)
        if len(future) == 0:
            yield rows
            continue
        yield rows.filter(pc.invert(marked))
        yield future.append_column(REASON, pa.repeat(pa.scalar(_REASON), len(future)))


def are_rejected(table: pa.Table) -> bool:
    """Whether a table holds the rejected rows that `split_future_rows` split off."""
    return REASON in table.column_names


def emit_rejected(tables: Sequence[pa.Table], results: pa.Schema) -> Emission:
    """Return the emission of rejected rows: at least one table. ``results``: schema of results."""
    late = pa.concat_tables(tables, promote_options="default")
    counters = Counters(rows=len(late), future_timestamp=len(late))
    return Emission(results.empty_table(), late, counters)
