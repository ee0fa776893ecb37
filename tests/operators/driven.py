"""An operator that a test drives step by step: rows, watermarks, processing time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpu_windows.functions.window import Collect, WindowFunction
from gpu_windows.operators.base import Emission, Operator, StatefulOperator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.options import Engine, Options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows import TimeWindow, WindowAssigner

SCHEMA = pa.schema(
    [("key", pa.string()), ("ts", pa.int64()), ("value", pa.int64()), ("gap", pa.int64())]
)

#: Key, start, end (None twice of the global window), what the function gave.
Result = tuple[Any, ...]


class Driven:
    """An operator of a stream, and the results that each step gives.

    Parameters
    ----------
    assigner : WindowAssigner
    put_away : bool
        Whether its state is saved after every step, and another operator goes on from there.
    engine : {"auto", "reference"}
    function : WindowFunction
        Default: the values of a window.
    **changes
        Other parts of the query.
    """

    def __init__(
        self,
        assigner: WindowAssigner,
        *,
        put_away: bool = False,
        engine: Engine = "auto",
        function: WindowFunction | None = None,
        **changes: Any,
    ) -> None:
        query = WindowQuery(
            schema=SCHEMA,
            time="ts",
            watermarks=WatermarkStrategy.for_monotonous_timestamps(),
            keys=("key",),
            assigner=assigner,
            function=function or Collect(("value",)),
            trigger=changes.pop("trigger", assigner.default_trigger()),
            options=Options(device="cpu", engine=engine),
        )
        self.plan = plan(replace(query, **changes), bounded=False)
        self.counters = Counters()
        self._put_away, self._store, self._seen = put_away, MemoryLog(), 0
        self.operator = self._fresh()

    def _fresh(self) -> Operator:
        if self._put_away:
            return restore_operator(self.plan, self._store)
        return build_operator(self.plan)

    def rows(self, *rows: Sequence[Any]) -> list[Result]:
        """Give it rows: key, time, value and perhaps a gap."""
        whole = [{**dict(zip(SCHEMA.names, row, strict=False)), ARRIVAL: self._seen + i}
                 for i, row in enumerate(rows)]  # fmt: skip
        self._seen += len(rows)
        schema = SCHEMA.append(pa.field(ARRIVAL, pa.int64()))
        return self._said(self.operator.process(pa.Table.from_pylist(whole, schema=schema)))

    def watermark(self, time: int) -> list[Result]:
        """Advance the watermark."""
        return self._said(self.operator.advance_watermark(time))

    def processing_time(self, time: int) -> list[Result]:
        """Set processing time."""
        return self._said(self.operator.advance_processing_time(time))

    @property
    def left(self) -> dict[str, int]:
        """What it still holds, of each kind."""
        return {name: count for name, count in self.operator.state_size().items() if count}

    def _said(self, emissions: Iterable[Emission]) -> list[Result]:
        found = list(self._results(emissions))
        if self._put_away:
            assert isinstance(self.operator, StatefulOperator)
            self.operator.save()
            self.operator = self._fresh()
        return found

    def _results(self, emissions: Iterable[Emission]) -> Iterator[Result]:
        for emission in emissions:
            self.counters += emission.counters
            for row in emission.results.to_pylist():
                bounds = row.pop(WINDOW_START), row.pop(WINDOW_END)
                yield (row.pop("key"), *bounds, *row.values())


class Fixed(WindowAssigner):
    """Puts every row into one window."""

    def __init__(self, start: int, end: int) -> None:
        self._window = TimeWindow(start, end)

    def assign_windows(
        self, row: Mapping[str, Any], timestamp: int, context: Any
    ) -> list[TimeWindow]:
        return [self._window]
