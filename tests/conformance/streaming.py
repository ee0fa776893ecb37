"""The streaming runner of scenarios: what a shard does in micro-batches, without Spark.

A part of a scenario is a micro-batch: a watermark, or the rows between two. What came of each part
is compared as a multiset, for the rows of a micro-batch have no order between keys; of a statement
in SQL, what came of all. Some rows are parts of their own: see `replay.most_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from uuid import uuid4

import pyarrow as pa

from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.slices.preaggregation import OnTimePreaggregation
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.planning.planner import plan as make_plan
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.tasks.packing import from_ipc, to_ipc
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from gpu_windows.vocabulary.options import Options
from tests.conformance.cases import Case
from tests.conformance.compare import (
    Difference,
    compare_part,
    compare_sides,
    compare_statement,
)
from tests.conformance.micro_batch_times import why_not
from tests.conformance.replay import Piece, elements_of, most_rows, parts_of
from tests.conformance.scenario import (
    Fields,
    ProcessingTime,
    Restart,
    Scenario,
    Watermark,
)
from tests.conformance.verdict import Run


class StreamingRunner:
    """Runs scenarios on one shard, whose state is put away after every micro-batch.

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
            query = replace(query, arrival_order=query.arrival_order or ("seq",))
        planned = make_plan(query, bounded=False, spark=True)
        replayed = _Replay(planned)
        differences = self._compare(scenario, case, replayed)
        if planned.makes_partials and not differences:
            assert is_plan_of(planned, WindowQuery)
            differences = self._compare(scenario, case, _EarlyReplay(planned))
        return Run(planned.strategy, tuple(differences), frozenset(replayed.reasons))

    def _compare(self, scenario: Scenario, case: Case, replayed: _Replay) -> list[Difference]:
        differences: list[Difference] = []
        emissions: list[Fields] = []
        tags = replayed.plan.query.side_outputs
        for steps, parts in groupby(parts_of(elements_of(scenario), most_rows(scenario)), _steps):
            rows, back = [], []
            sides: dict[str, list[Fields]] = {tag: [] for tag in tags}
            for part in parts:
                for emission in replayed.run_part(part, case):
                    rows += emission.results.to_pylist()
                    back += emission.late.to_pylist()
                    for tag, table in emission.sides.items():
                        sides[tag] += map(case.emission, table.to_pylist())
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


class _Replay:
    """One shard of a query, and its times in ticks; ``reasons``: why rows were given back."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.reasons: set[str] = set()
        self._log = MemoryLog()
        self._watermark = LONG_MIN
        self._now = 0

    def run_part(self, part: Piece, case: Case) -> Iterator[Emission]:
        """Run the micro-batch of a part of a scenario; yield what it gives."""
        match part:
            case Watermark():
                yield from self._run((), part.time)
            case ProcessingTime():
                self._now = max(self._now, part.time)
                yield from self._run((), self._watermark)
            case Restart():
                self._restart()
            case _:
                rows = self._sent(case.batch(part, self.plan))
                yield from self._run(rows, self._watermark)

    def _run(self, tables: Iterable[pa.Table], watermark: int) -> Iterator[Emission]:
        """Run a micro-batch of tables; after them comes a watermark, unless there is none yet."""
        self._watermark = max(self._watermark, watermark)
        after = None if self._watermark == LONG_MIN else self._watermark
        run = ShardRun(self.plan, self._log, self._now)
        yield from run.emissions(map(from_ipc, _packed(tables)), lambda: after)
        run.finish(uuid4().hex)
        self._log = self._log.copy()

    def _restart(self) -> None:
        """Go on in another process, from the state: functions are opened anew there."""
        build_operator(self.plan).close()
        self._log = self._log.copy()

    def _sent(self, rows: pa.Table) -> Iterable[pa.Table]:
        """Return what of rows is shuffled."""
        return [rows]

    def left(self) -> dict[str, int]:
        """Return how many windows, rows and slices are still in the state."""
        operator = restore_operator(self.plan, self._log.copy())
        return {name: n for name, n in operator.state_size().items() if n}


class _EarlyReplay(_Replay):
    """The same, of rows of which those in time become partials before the shuffle."""

    def __init__(self, plan: WindowPlan) -> None:
        super().__init__(plan)
        self._windows = plan

    def _sent(self, rows: pa.Table) -> Iterable[pa.Table]:
        return OnTimePreaggregation(self._windows, self._watermark, max_share=math.inf).run(
            rows.to_batches()
        )


def _packed(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """Yield tables as they are shuffled."""
    return map(to_ipc, tables)
