"""Rows that are too far in the future: they go past the watermark and the operators.

Spark marks them, before it looks at their time (`gpu_windows.spark_glue.contract.watermarks`). A
packing task sets them aside, their shard gives them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.query import REASON

#: Name of the column that says of a row that it is too far in the future.
FUTURE = "__future"
_REASON = "future_timestamp"


def set_aside(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables without the rows that `FUTURE` marks, and these, which `are_rejected`."""
    for table in tables:
        if FUTURE not in table.column_names:
            yield table
            continue
        marked, rows = table[FUTURE], table.drop_columns([FUTURE])
        aside = rows.filter(marked)
        if len(aside) == 0:
            yield rows
            continue
        yield rows.filter(pc.invert(marked))
        yield aside.append_column(REASON, pa.repeat(pa.scalar(_REASON), len(aside)))


def are_rejected(table: pa.Table) -> bool:
    """Whether a table that was sent holds rows that were set aside."""
    return REASON in table.column_names


def given_back(tables: Sequence[pa.Table], results: pa.Schema) -> Emission:
    """Return rows that were set aside, for an operator with such results: one table at least."""
    late = pa.concat_tables(tables, promote_options="default")
    counters = Counters(rows=len(late), future_timestamp=len(late))
    return Emission(results.empty_table(), late, counters)
