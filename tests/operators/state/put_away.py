"""An operator that is put away in a store after every call, beside one that is not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from tests.datastream import custom_parts as custom
from tests.operators.panes.queries import ends, run
from tests.operators.slices.tasks import with_arrival
from tests.planning.queries import SCHEMA, rows_of

#: "rows", "watermark" or "processing_time", and which.
Named = tuple[str, Any]
#: Rows, or a watermark.
Step = Any


def take(operator: Operator, step: Step) -> list[Emission]:
    """Do a step with an operator."""
    return [
        *(operator.advance_watermark(step) if isinstance(step, int) else operator.process(step))
    ]


def call(planned: Plan, store: MemoryLog, *steps: Step) -> list[Any]:
    """Do what a micro-batch does; return the results."""
    operator = restore_operator(planned, store)
    found = [row for step in steps for e in take(operator, step) for row in rows_of(e.results)]
    operator.save()
    return found


def put_away_after_each(
    planned: Plan, steps: list[Named], *, in_order: bool = False
) -> dict[str, int]:
    """Compare with an operator that is never put away; return what is left of windows that end.

    ``in_order``: whether the results of all keys come in the same order too.
    """
    store, whole = MemoryLog(), run(build_operator(planned), steps)
    for step, wanted in zip(steps, whole, strict=True):
        operator = restore_operator(planned, store)
        due = dict(zip(("watermark", "processing_time"), operator.next_timers(), strict=True))
        (got,) = run(operator, [step])
        operator.save()
        assert (by_key(got[0]), *got[1:]) == (by_key(wanted[0]), *wanted[1:])
        assert not in_order or got[0] == wanted[0]
        if step[0] in due and step[1] < LONG_MAX:
            waits = due[step[0]]
            assert not got[0] or (waits is not None and waits <= step[1])
    last = restore_operator(planned, store)
    has_end = not isinstance(planned.query, WindowQuery) or ends(planned.query, steps)
    return last.state_size() if has_end else {}


def by_key(results: list[Any]) -> list[Any]:
    """Return the results of one key after the other, each key's in their order.

    Timers of several keys that are due at one time have no order in a machine.
    """
    return sorted(results, key=lambda row: repr(row[:2]))


def cut(made: Query) -> list[Named]:
    """Return the rows of the examples of user code, a few at a time, and watermarks."""
    table = to_ticks_of(custom.table())
    steps: list[Named] = []
    for begin in range(0, len(table), 3):
        batch = table.slice(begin, 3)
        latest = batch["ts"][-1].as_py()
        steps += [("rows", batch), ("watermark", made.watermarks.watermark(latest))]
    return [*steps, ("watermark", LONG_MAX)]


def to_ticks_of(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("ts")
    return with_arrival(table.set_column(at, "ts", table["ts"].cast(pa.int64())))


def rows(*times: int) -> pa.Table:
    named = [{"key": "a", "part": 1, "ts": ts, "i": ts} for ts in times]
    return with_arrival(pa.Table.from_pylist(named, schema=SCHEMA))
