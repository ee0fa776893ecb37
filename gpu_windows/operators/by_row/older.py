"""What the row-at-a-time operator remembers, as it was stored until it was kept by key.

One table of one row, with a list of structs for each kind of entry.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.by_row.entries import KINDS, TIMES, entries_of, state_column
from gpu_windows.operators.by_row.memory import Memory
from gpu_windows.operators.state.store import Contents

#: What a store calls it, and where it is.
KIND = "memory"
WHERE = (KIND, 0)
#: Lists that had another name.
_NAMED = {"processing_timers": "clock_timers"}


def is_one(table: pa.Table) -> bool:
    """Whether this is a table of all that an operator remembered."""
    return "contents" in table.column_names


def restore(memory: Memory, table: pa.Table) -> None:
    """Give a memory what a table holds."""
    memory.watermark, memory.processing_time = (
        table.column(name)[0].as_py() for name in ("watermark", "clock")
    )
    kinds = [kind for kind in KINDS if _NAMED.get(kind, kind) in table.column_names]
    memory.restore(pa.concat_tables([_entries(table, kind, memory.types) for kind in kinds]))
    for kind in TIMES:
        queue = getattr(memory, kind)
        queue.next_number = len(queue)


def _entries(table: pa.Table, kind: str, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the entries of a kind."""
    entries = _listed(table, _NAMED.get(kind, kind))
    fields = zip(entries.type, entries.flatten(), strict=True)
    columns = {field.name: values for field, values in fields}
    columns |= {state_column(kind, name): values for name, values in columns.items()}
    if kind in TIMES:  # they are in the order in which they fire
        columns[TIMES[kind]] = columns["time"]
        columns["number"] = pa.array(np.arange(len(entries)))
    plain = {n: values.cast(types[n]) for n, values in columns.items() if n in types}
    return entries_of(kind, plain, types)


def _listed(table: pa.Table, name: str) -> pa.StructArray:
    """Return the entries of a list."""
    return table.column(name).combine_chunks().flatten()


def memory_contents(table: pa.Table) -> Contents:
    """Tell what a table holds: windows with contents, their keys and time; timers of all."""
    windows = _listed(table, "contents")
    names = [field.name for field in windows.type]
    timers = (_listed(table, _NAMED.get(kind, kind)) for kind in TIMES)
    counts = {"windows": len(windows), "timers": sum(map(len, timers))}
    if "rows" in names:
        counts["rows"] = len(windows.field("rows").flatten())
    return Contents(
        counts,
        [windows.field(name) for name in names[: names.index("start")]],
        pc.min(windows.field("start")).as_py(),
        pc.max(windows.field("end")).as_py(),
    )
