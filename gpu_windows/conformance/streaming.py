"""The streaming runner of scenarios: the processor that Spark runs, driven by PySpark's tester.

A part of a scenario is a micro-batch: a watermark, or the rows between two. What came of each part
is compared as a multiset, for the rows of a micro-batch have no order between keys; of a statement
in SQL, what came of all. Where rows are broadcast each row is a part, for a micro-batch takes those
that are broadcast first; and where results are changes, of which those of several rows are fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import TimerValues
from pyspark.sql.streaming.tws_tester import TwsTester

from gpu_windows.conformance.cases import Case
from gpu_windows.conformance.compare import (
    Difference,
    compare_part,
    compare_sides,
    compare_statement,
)
from gpu_windows.conformance.replay import Piece, elements_of, parts_of
from gpu_windows.conformance.scenario import (
    Fields,
    ProcessingTime,
    Restart,
    Scenario,
    Watermark,
)
from gpu_windows.conformance.spark_times import why_not
from gpu_windows.conformance.verdict import Run
from gpu_windows.operators.build import build_operator, restored_operator
from gpu_windows.operators.slices.timely import TimelyStage
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.options import Options
from gpu_windows.planning.plan import Plan, WindowPlan
from gpu_windows.planning.planner import plan as make_plan
from gpu_windows.query.base import REASON
from gpu_windows.query.window import WindowQuery
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.packing import BLOB, SHARD, from_ipc, to_ipc
from gpu_windows.spark_glue.processor import STATE, WindowProcessor, from_text
from gpu_windows.spark_glue.tagged import KIND, LATE, RESULT, SIDES
from gpu_windows.spark_glue.times import END_MS, SparkClock, Times

#: Where tick 0 is for Spark, so that no watermark of a scenario is before 1970.
_CLOCK = SparkClock(ticks_a_ms=1, base_ms=1 << 61)


class StreamingRunner:
    """Runs scenarios through the stateful processor, whose state is put away after every call.

    Parameters
    ----------
    options : Options
    """

    #: A tick is a millisecond.
    ticks_per_ms = 1

    def __init__(self, options: Options) -> None:
        self._options = replace(options, shards=1)

    def skips(self, scenario: Scenario) -> str | None:
        """Return why a scenario that we could run is not run."""
        return why_not(scenario)

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Replay a scenario and compare, part by part.

        Twice where rows in time may become partials before the shuffle: without and with that.
        """
        query = case.query(self._options)
        if isinstance(query, WindowQuery):  # where the order of rows means nothing
            query = replace(query, order_by=query.order_by or ("seq",))
        planned = make_plan(query, bounded=False, spark=True)
        replayed = _Replay(planned)
        differences = self._compare(scenario, case, replayed)
        if planned.makes_partials and not differences:
            assert isinstance(planned, WindowPlan)
            differences = self._compare(scenario, case, _EarlyReplay(planned))
        return Run(planned.strategy, tuple(differences), frozenset(replayed.reasons))

    def _compare(self, scenario: Scenario, case: Case, replayed: _Replay) -> list[Difference]:
        differences: list[Difference] = []
        emissions: list[Fields] = []
        tags = [*replayed.plan.query.side_outputs]
        by_row = case.is_changelog or scenario.operator.kind == "broadcast_process"
        split = 1 if by_row else None
        for steps, parts in groupby(parts_of(elements_of(scenario), split), _steps):
            rows, back = [], []
            sides: dict[str, list[Fields]] = {tag: [] for tag in tags}
            for part in parts:
                found = replayed.given(part, case)
                for kind, tag in enumerate(tags, SIDES):
                    sides[tag] += [
                        case.emission(row) for t in found.get(kind, ()) for row in t.to_pylist()
                    ]
                rows += [row for table in found.get(RESULT, ()) for row in table.to_pylist()]
                back += [row for table in found.get(LATE, ()) for row in table.to_pylist()]
            replayed.reasons.update(row[REASON] for row in back)
            late = [case.seq_of(row) for row in back]
            part_of = [case.emission(row) for row in rows]
            if scenario.is_statement:
                emissions += [{"step": min(steps), **emission} for emission in part_of]
            else:
                differences += compare_part(scenario, steps, part_of, late)
                differences += compare_sides(scenario, steps, sides)
        if scenario.is_statement:
            differences += compare_statement(scenario, emissions)
        left = replayed.left()
        if left and replayed.plan.query.ends_with_time:
            differences.append(Difference("state left at the end", None, left))
        return differences


def _steps(part: Piece) -> frozenset[int]:
    """Return the elements of the input that a part is."""
    return frozenset({each.seq for each in part} if isinstance(part, list) else {part.seq})


class _Tester(TwsTester):
    """Spark's tester, which tells its processor of only one of the times."""

    now = watermark = 0

    def _getTimerValues(self) -> TimerValues:  # noqa: N802
        return TimerValues(self.now, self.watermark)


class _Replay:
    """One shard of a query in Spark's tester; ``reasons``: why rows were given back."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.reasons: set[str] = set()
        self._times = Times(plan.query, _CLOCK)
        self._tester = _Tester(
            WindowProcessor(plan, _CLOCK),
            timeMode=self._times.mode,
            eventTimeExtractor=lambda _: END_MS + 1,  # it would drop what it thinks is late
        )
        self._no_rows = plan.query.schema.empty_table().select(plan.input_columns)

    def given(self, part: Piece, case: Case) -> dict[int, list[pa.Table]]:
        """Return what a part of a scenario gave."""
        match part:
            case Watermark():
                return self.advance(part.time)
            case ProcessingTime():
                return self.advance_processing_time(part.time)
            case Restart():
                self._restart()
                return {}
            case _:
                return self.take(case.batch(part, self.plan))

    def _restart(self) -> None:
        """Go on in another worker, from the state and with the times that Spark has kept."""
        build_operator(self.plan).close()
        self._tester.processor = WindowProcessor(self.plan, _CLOCK)
        self._tester.processor.init(self._tester.handle)

    def advance(self, watermark: int) -> dict[int, list[pa.Table]]:
        """Return what the timers of a watermark gave, and what the end of the input gives."""
        ms = END_MS if watermark == LONG_MAX else _CLOCK.first_watermark(watermark)
        if watermark == LONG_MIN or ms <= self._tester.watermark:
            return {}
        self._tester.watermark = ms
        found = [] if self._times.in_processing_time else [self._tester.setWatermark(ms)]
        if watermark == LONG_MAX or self._times.in_processing_time:  # else Spark need not call
            found.append(self._tester.testInPandas(0, _packed([self._no_rows])))
        return _unpacked(found)

    def advance_processing_time(self, time: int) -> dict[int, list[pa.Table]]:
        """Return what the timers of a processing time gave."""
        ms = _CLOCK.first_time(time)
        if not self._times.in_processing_time or ms <= self._tester.now:
            return {}
        self._tester.now = ms
        return _unpacked([self._tester.setProcessingTime(ms)])

    def take(self, rows: pa.Table) -> dict[int, list[pa.Table]]:
        """Return what rows gave."""
        return _unpacked([self._tester.testInPandas(0, _packed(self._sent(rows)))])

    def _sent(self, rows: pa.Table) -> Iterable[pa.Table]:
        """Return what of rows is shuffled."""
        return [rows]

    def left(self) -> dict[str, int]:
        """Return how many windows, rows and slices are still in the state."""
        state: Mapping[Any, Any] = self._tester.peekMapState(STATE, 0)
        blobs = {where: from_text(value[0]) for where, value in state.items()}
        operator = restored_operator(self.plan, MemoryStore(blobs))
        stored = {f"{kind} {bucket}": 1 for kind, bucket in blobs if kind == "slices"}
        return {name: n for name, n in (operator.state_size() | stored).items() if n}


class _EarlyReplay(_Replay):
    """The same, of rows of which those in time become partials before the shuffle."""

    def __init__(self, plan: WindowPlan) -> None:
        super().__init__(plan)
        self._windows = plan

    def _sent(self, rows: pa.Table) -> Iterable[pa.Table]:
        watermark = _CLOCK.watermark(self._tester.watermark)
        latest = LONG_MIN if watermark is None else watermark
        return TimelyStage(self._windows, latest, worth=math.inf).run(rows.to_batches())


def _packed(tables: Iterable[pa.Table]) -> pd.DataFrame:
    blobs = [to_ipc(table) for table in tables]
    return pd.DataFrame({SHARD: [0] * len(blobs), BLOB: blobs})


def _unpacked(frames: Iterable[Any]) -> dict[int, list[pa.Table]]:
    found: dict[int, list[pa.Table]] = {}
    for frame in frames:
        if len(frame):
            for kind, blob in frame[[KIND, BLOB]].dropna().itertuples(index=False):
                found.setdefault(int(kind), []).append(from_ipc(blob))
    return found
