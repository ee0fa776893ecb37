"""Parts of queries as users would write them, over the columns of `tests.simulation.script`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.windows.base import AssignerContext, TimeWindow, Window
from tests.datastream import custom_parts as examples

#: Times for which the ends of windows fit int64.
FITS = (LONG_MIN + 100, LONG_MAX - 100)


class Uneven(gw.functions.WindowAssigner):
    """Two windows a row, of different sizes: they overlap, and share no grid."""

    columns: ClassVar = ("small",)
    usable_ticks = FITS

    def assign_windows(
        self, row: Mapping[str, Any], timestamp: int, context: AssignerContext
    ) -> Sequence[Window]:
        wide = 7 + (row["small"] or 0) % 5
        begin = timestamp // wide * wide
        return [TimeWindow(begin, begin + wide), TimeWindow(timestamp, timestamp + 4)]


class SessionsUpTo(examples.SessionsUpTo):
    """Sessions that are cut where they would last longer than a limit."""

    usable_ticks = FITS


class GeometricMean(examples.GeometricMean):
    """The n-th root of the product; NaN where an evictor took all rows."""

    def get_result(self, accumulator: dict[str, Any]) -> float:
        return super().get_result(accumulator) if accumulator["count"] else float("nan")


class EveryOther(gw.functions.Trigger):
    """Fires at every other row, and purges; at the end of the window too."""

    state: ClassVar = {"odd": pa.bool_()}

    def on_element(
        self, row: Mapping[str, Any], timestamp: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        context.register_event_time_timer(window.max_timestamp)
        odd = not context.get("odd", False)
        context.put("odd", odd)
        context.count("seen")
        return (
            gw.functions.TriggerResult.CONTINUE
            if odd
            else gw.functions.TriggerResult.FIRE_AND_PURGE
        )

    def on_event_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        ended = time == window.max_timestamp
        return gw.functions.TriggerResult.FIRE if ended else gw.functions.TriggerResult.CONTINUE

    def clear(self, window: Any, context: gw.typing.TriggerContext) -> None:
        context.remove("odd")
        context.delete_event_time_timer(window.max_timestamp)


class SomeTimeAfter(gw.functions.Trigger):
    """Fires a while after each row: timers of processing time, several a window."""

    uses_processing_time = True

    def __init__(self, pause: int) -> None:
        self.pause = pause

    def on_element(
        self, row: Mapping[str, Any], timestamp: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        context.register_processing_time_timer(context.current_processing_time + self.pause)
        return gw.functions.TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Any, context: gw.typing.TriggerContext
    ) -> gw.functions.TriggerResult:
        context.count("pauses")
        return gw.functions.TriggerResult.FIRE

    def clear(self, window: Any, context: gw.typing.TriggerContext) -> None:
        context.delete_processing_time_timer(context.current_processing_time + self.pause)

    def describe(self) -> str:
        return f"{self.pause} after each row"


class Numbered(gw.functions.ProcessWindowFunction):
    """How many rows there are, and which firing of the window and window of the key this is."""

    window_state: ClassVar = {"firing": pa.int64()}
    key_state: ClassVar = {"seen": pa.int64(), "values": pa.list_(pa.float64())}
    output = pa.schema(
        [
            *((name, pa.int64()) for name in ("n", "last", "nth", "seen")),
            ("values", pa.list_(pa.float64())),
        ]
    )

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterable[Mapping[str, object]]:
        nth = context.window_state.get("firing", 0)
        context.window_state.put("firing", nth + 1)
        seen = context.key_state.get("seen", 0) + len(rows)
        context.key_state.put("seen", seen)
        values = [*context.key_state.get("values", []), *rows["f"].to_pylist()]
        context.key_state.put("values", values[-3:])
        last = rows["i"][-1].as_py() if len(rows) else None
        yield {"n": len(rows), "last": last, "nth": nth, "seen": seen, "values": values}


class Spread(gw.functions.ProcessWindowFunction):
    """How far values are apart, and the times at which it is asked; nothing of one value only."""

    output = pa.schema([("spread", pa.float64()), ("at", pa.int64()), ("now", pa.int64())])

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterable[Mapping[str, object]]:
        (row,) = rows.to_pylist()
        if row["most"] != row["least"]:  # both are None where an evictor took all rows
            spread = row["most"] - row["least"]
            times = {"at": context.current_watermark, "now": context.current_processing_time}
            yield {"spread": spread, **times}


class Totals(gw.functions.VectorWindowFunction):
    """The sum of a column, of many windows at once; some may have lost all of their rows."""

    order_free: ClassVar[bool] = True
    output = pa.schema([("total", pa.float64())])

    def process(self, batch: gw.typing.WindowBatch) -> pa.Table:
        values = batch.rows["value"].to_numpy()
        return pa.table({"total": np.bincount(batch.places, values, len(batch))})


class LastOfEach(gw.functions.CoGroupFunction):
    """The last value of each side, and how many rows it has."""

    output = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("n", pa.int64())])

    def co_group(
        self, key: Mapping[str, Any], context: Any, left: pa.Table, right: pa.Table
    ) -> Iterable[Mapping[str, object]]:
        last = [side["i"][-1].as_py() if len(side) else None for side in (left, right)]
        yield {"left": last[0], "right": last[1], "n": len(left) + len(right)}


def later(earlier: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """A reduce function: sums, and the later text."""
    total = (earlier["i"] or 0) + (row["i"] or 0)
    return {"i": total, "text": row["text"] or earlier["text"]}


FirstAndEveryHundred = examples.FirstAndEveryHundred
Jumps = examples.Jumps
WithoutOutliers = examples.WithoutOutliers
