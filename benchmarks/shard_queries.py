"""Queries for every way in which a shard keeps state, and the entries that a row touches in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from benchmarks.contest import Window
from benchmarks.data import SCHEMA
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.triggers.base import AnyWindow, Row

_DAY, _HOUR, _SLIDING = Window.of("1 day"), Window.of("1 hour"), Window.of("1 hour", "1 minute")
#: More rows than a key ever has: what counts up to it never fires.
_NEVER = 1_000_000
_INPUT = SCHEMA.empty_table()

#: Makes a table of rows of `benchmarks.shard_data.COLUMNS`: input, or entries.
Making = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class ShardQuery:
    """A query whose state is looked at.

    Parameters
    ----------
    window : Window
        Its windows; of sessions the gap, of a join how far rows are apart at most.
    outputs : callable
        Writes it.
    entries : callable
        Makes the entries that rows touch, with the columns that a state has to keep of each.
    filled, given : callable, optional
        Make the input of the first micro-batch, and of the others; by default the rows are it.
    mergeable : bool
        Whether state can be added to without being read.
    is_flat : bool
        Whether the bytes of a micro-batch must stay the same; then there are twice as many.
    """

    window: Window
    outputs: Callable[[], gw.typing.Outputs]
    entries: Making
    filled: Making = field(default=lambda rows: rows)
    given: Making = field(default=lambda rows: rows)
    mergeable: bool = False
    is_flat: bool = False

    @property
    def times(self) -> int:
        """How many times the usual number of micro-batches it is given."""
        return 2 if self.is_flat else 1

    @property
    def plan(self) -> Plan:
        """The plan, as of a stream on Spark."""
        return plan(self.outputs().plan.query, bounded=False, spark=True)


# ---- queries


def _keyed() -> Any:
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    return gw.stream(_INPUT).event_time("ts", strategy).key_by("key")


def _days() -> Any:
    return _keyed().window(gw.TumblingEventTimeWindows.of(_DAY.size_delta))


def _sessions() -> Any:
    return _keyed().window(gw.EventTimeSessionWindows.with_gap(_HOUR.size_delta))


def _sums(windowed: Any) -> gw.typing.Outputs:
    made: gw.typing.Outputs = (
        windowed.options(device="cpu")
        .with_outputs()
        .aggregate(sum=gw.sum("value"), count=gw.count())
    )
    return made


def _joined(how: str) -> gw.typing.Outputs:
    hour = _HOUR.size_delta
    joined = _keyed().interval_join(_keyed()).between(-hour, hour).options(device="cpu")
    made: gw.typing.Outputs = joined.with_outputs().select(["value"], ["value"], how=how)
    return made


class CountingTrigger(gw.functions.Trigger):
    """A user's trigger: keeps how many rows a window has, and fires at its end."""

    state: ClassVar = {"rows": pa.int64()}

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        """Count the row."""
        context.put("rows", context.get("rows", 0) + 1)
        context.register_event_time_timer(window.max_timestamp)
        return gw.functions.TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: AnyWindow, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        """Fire."""
        return gw.functions.TriggerResult.FIRE

    def clear(self, window: AnyWindow, context: gw.typing.TriggerContext) -> None:
        """Forget the number."""
        context.remove("rows")


class Highest(gw.functions.ProcessWindowFunction):
    """A user's function: keeps the highest sum that a key's windows had at any firing."""

    key_state: ClassVar = {"highest": pa.float64()}

    def process(
        self, key: Row, context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterable[Mapping[str, object]]:
        """Return the highest sum so far."""
        now = rows.column("value")[0].as_py()
        highest = max(now, context.key_state.get("highest", now))
        context.key_state.put("highest", highest)
        return [{"highest": highest}]


def _added(earlier: Row, later: Row) -> Row:
    return {"value": earlier["value"] + later["value"]}  # type: ignore[operator]


def _highest() -> gw.typing.Outputs:
    """Write a query with a function that is called at every row."""
    output = pa.schema({"highest": pa.float64()})
    windowed = _days().trigger(gw.CountTrigger.of(1)).options(device="cpu").with_outputs()
    made: gw.typing.Outputs = windowed.process(Highest(), ("value",), output=output, reduce=_added)
    return made


def _lists() -> gw.typing.Outputs:
    made: gw.typing.Outputs = (
        _sessions().options(device="cpu").with_outputs().collect_lists("value")
    )
    return made


# ---- input of joins


def _side(rows: pa.Table, *, is_left: bool) -> pa.Table:
    nothing = pa.nulls(len(rows), pa.float64())
    values = (rows["value"], nothing) if is_left else (nothing, rows["value"])
    sides = pa.array(np.full(len(rows), is_left))
    names = ["key", TIME, SIDE, "left_value", "right_value"]
    return pa.table([rows["key"], rows["ts"], sides, *values], names=names)


def _left(rows: pa.Table) -> pa.Table:
    return _side(rows, is_left=True)


def _both(rows: pa.Table) -> pa.Table:
    """Return a left row and a right one for each row."""
    return pa.concat_tables([_left(rows), _side(rows, is_left=False)])


# ---- entries: every row is of another key, so each touches entries of its own


def _partials(unit: int, rows: pa.Table) -> pa.Table:
    """Return (key, slice of ``unit`` ticks, rows, sum)."""
    slices = rows["ts"].to_numpy() // unit
    return _entries(rows, slice=slices, rows=_each(rows, 1), sum=rows["value"])


def _session_partials(rows: pa.Table) -> pa.Table:
    return _entries(rows, **_bounds_of_sessions(rows), rows=_each(rows, 1), sum=rows["value"])


def _session_rows(rows: pa.Table) -> pa.Table:
    return _entries(rows, **_bounds_of_sessions(rows), ts=rows["ts"], value=rows["value"])


def _bounds_of_sessions(rows: pa.Table) -> dict[str, Any]:
    ts = rows["ts"].to_numpy()
    return {"start": ts, "end": ts + _HOUR.size}


def _window_rows(rows: pa.Table) -> pa.Table:
    """Return (key, window, the row): the windows and the rows that state holds for them."""
    return _entries(rows, **_bounds_of_days(rows), ts=rows["ts"], value=rows["value"])


def _window_partials(rows: pa.Table) -> pa.Table:
    """Return (key, window, rows, sum, the state of a trigger or a function)."""
    parts = {"rows": _each(rows, 1), "sum": rows["value"], "user": rows["value"]}
    return _entries(rows, **_bounds_of_days(rows), **parts)


def _bounds_of_days(rows: pa.Table) -> dict[str, Any]:
    start = rows["ts"].to_numpy() // _DAY.size * _DAY.size
    return {"start": start, "end": start + _DAY.size}


def _count_partials(rows: pa.Table) -> pa.Table:
    return _entries(rows, number=_each(rows, 0), rows=_each(rows, 1), sum=rows["value"])


def _join_rows(rows: pa.Table) -> pa.Table:
    """Return (side, key, time, value, whether it has met a partner) of both sides."""
    parts = [
        _entries(
            rows, side=_each(rows, side), ts=rows["ts"], value=rows["value"], met=_each(rows, True)
        )
        for side in (False, True)
    ]
    return pa.concat_tables(parts)


def _each(rows: pa.Table, value: int) -> Any:
    return np.full(len(rows), value)


def _entries(table: pa.Table, /, **columns: Any) -> pa.Table:
    return pa.table({"key": table["key"], **columns})


# ---- all of them

#: Name, as words, to query.
QUERIES: Mapping[str, ShardQuery] = {
    "slices tumbling": ShardQuery(
        _DAY, lambda: _sums(_days()), partial(_partials, _DAY.size), mergeable=True
    ),
    "slices sliding": ShardQuery(
        _SLIDING,
        lambda: _sums(
            _keyed().window(
                gw.SlidingEventTimeWindows.of(_SLIDING.size_delta, _SLIDING.slide_delta)
            )
        ),
        partial(_partials, _SLIDING.slide),
        mergeable=True,
    ),
    "sessions partials": ShardQuery(
        _HOUR, lambda: _sums(_sessions()), _session_partials, is_flat=True
    ),
    "sessions evictor": ShardQuery(
        _HOUR,
        lambda: _sums(_sessions().evictor(gw.CountEvictor.of(10))),
        _session_rows,
        is_flat=True,
    ),
    "sessions function": ShardQuery(_HOUR, _lists, _session_rows, is_flat=True),
    "panes trigger": ShardQuery(
        _DAY, lambda: _sums(_days().trigger(gw.CountTrigger.of(_NEVER))), _window_partials
    ),
    "panes evictor": ShardQuery(
        _DAY, lambda: _sums(_days().evictor(gw.CountEvictor.of(10))), _window_rows
    ),
    "counts tumbling": ShardQuery(
        _DAY, lambda: _sums(_keyed().count_window(_NEVER)), _count_partials
    ),
    "counts sliding": ShardQuery(
        _DAY, lambda: _sums(_keyed().count_window(_NEVER, _NEVER // 2)), _count_partials
    ),
    **{
        f"join {how}": ShardQuery(_HOUR, partial(_joined, how), _join_rows, _left, _both)
        for how in ("inner", "full")
    },
    "user trigger": ShardQuery(
        _DAY, lambda: _sums(_days().trigger(CountingTrigger())), _window_partials
    ),
    "user function": ShardQuery(_DAY, _highest, _window_partials),
}
