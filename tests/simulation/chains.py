"""``python -m tests.simulation.chains 0..2000``: queries of several stages, cut and crashing.

Rows go from stage to stage as in Spark: what the shards of a stage give in a micro-batch, before
its watermark and at it, is packed for the shards of the next one (`PackMicroBatch`). The truth are
reference operators, one a stage, that are never cut.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.runners.arrow_rows import with_result_time
from gpu_windows.spark_glue.contract.output_kinds import LATE, RESULT
from gpu_windows.spark_glue.tasks.fragments import join_fragments
from gpu_windows.spark_glue.tasks.micro_batch import PackMicroBatch
from gpu_windows.spark_glue.tasks.packing import from_ipc
from gpu_windows.spark_glue.tasks.shard_run import _in_order as in_order
from gpu_windows.spark_glue.tasks.workers import PackRows
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import stage_watermarks
from tests.reference.run import reference_operator, reference_plan
from tests.simulation.case import MicroBatch, Segment
from tests.simulation.differences import unmatched
from tests.simulation.drawn_chains import Chain, chain_of
from tests.simulation.execution import by_shard
from tests.simulation.fuses import CrashedError, Fuse
from tests.simulation.outcome import values_of
from tests.simulation.stage import Attempt, Stage, Times, state_folder

#: What a segment gives: (stage, kind) to rows.
Found = dict[tuple[int, int], Counter[Any]]
#: The rows of shards.
Rows = dict[int, list[pa.Table]]


def _add(found: Found, stage: int, emissions: Iterable[Emission]) -> None:
    for emission in emissions:
        found[stage, RESULT].update(values_of(emission.results))
        found[stage, LATE].update(values_of(emission.late))


def held_back(planned: Plan, watermark: int | None) -> int | None:
    """Return the watermark of a stage, given what the one before it has reached."""
    if watermark is None or watermark == LONG_MAX:
        return watermark
    (stage,) = stage_watermarks(planned.query.watermarks)
    return watermark - stage.behind


def _rows_for(planned: Plan, of: Plan, results: Iterable[pa.Table]) -> list[pa.Table]:
    """Return results as the next stage takes them."""
    times = of.query.results_in_time
    rows = (with_result_time(each, times) for each in results if len(each))
    return [each.select(planned.input_columns) for each in rows]


# ---- the truth


def expected(made: Chain) -> list[Found]:
    """Return what each segment gives: results and late rows of every stage."""
    queries = (replace(query, options=Options()) for query in made.queries)
    plans = [reference_plan(query, bounded=False, spark=True) for query in queries]
    operators = [reference_operator(each) for each in plans]
    found: list[Found] = []
    for segment in made.case.segments():
        found.append(defaultdict(Counter))
        rows = [made.case.table(segment.rows, plans[0], segment.now)] if segment.rows else []
        _truth(plans, operators, segment, rows, found[-1])
    return found


def _truth(
    plans: list[Plan], operators: list[Operator], segment: Segment, rows: list[pa.Table],
    found: Found,
) -> None:  # fmt: skip
    watermark = segment.after
    for number, (planned, operator) in enumerate(zip(plans, operators, strict=True)):
        given: list[Emission] = []
        if planned.query.reads_processing_time:
            given += operator.advance_processing_time(segment.now)
        if number:
            watermark = held_back(planned, watermark)
            rows = _sorted(planned, rows)
        for table in rows:
            given += operator.process(table)
        if watermark is not None:
            given += operator.advance_watermark(watermark)
        _add(found, number, given)
        if number + 1 < len(plans):
            rows = _rows_for(plans[number + 1], planned, (each.results for each in given))


def _sorted(planned: Plan, tables: list[pa.Table]) -> list[pa.Table]:
    """Return results in the order in which the next stage takes them: late rows meet sessions."""
    if not tables:
        return []
    batches = pa.concat_tables(tables).combine_chunks().to_batches()
    return [pa.Table.from_batches(in_order(planned, batches))]


# ---- the execution


class Execution:
    """A case as it is executed."""

    #: Makes the stages but the first.
    make_later = Stage

    def __init__(self, made: Chain) -> None:
        self._chain = made
        options = made.case.options
        self._plans = [
            plan(replace(query, options=options), bounded=False, spark=True)
            for query in made.queries
        ]
        self._watermarks: list[int | None] = [None] * len(self._plans)
        self.left = self.crashes = self.calls = 0

    def run(self) -> list[Found]:
        """Run all micro-batches, then the end of time."""
        with state_folder() as folder:
            first, *later = self._plans
            self._stages = [Stage(first, folder)]
            self._stages += (self.make_later(each, folder, n) for n, each in enumerate(later, 1))
            found = [*self._run()]
            self.left = sum(sum(each.state_size.values()) for each in self._stages[1:])
        return found

    def _run(self) -> Iterator[Found]:
        any_order = not self._plans[0].query.order_dependent(bounded=False)
        for segment in self._chain.case.segments():
            found: Found = defaultdict(Counter)
            for batch in segment.micro_batches(any_order=any_order):
                for number, attempt in enumerate(self._committed(segment, batch)):
                    _add(found, number, attempt.emissions)
            yield found

    def _committed(self, segment: Segment, batch: MicroBatch) -> list[Attempt]:
        """Run a micro-batch until it does not die."""
        times = Times(segment.now, batch.watermark)
        rows: Rows = {}
        if batch.rows:
            table = self._chain.case.table(batch.rows, self._plans[0], segment.now)
            rows = by_shard(self._plans[0], [table])
        for crash in batch.crashes:
            self.crashes += 1
            try:
                self._attempt(rows, times, Fuse(crash.after))
            except CrashedError:
                continue
        attempts, self._watermarks = self._attempt(rows, times, Fuse())
        for stage, attempt in zip(self._stages, attempts, strict=True):
            stage.commit(attempt.shards)
            self.calls += len(attempt.shards)
        return attempts

    def _attempt(
        self, rows: Rows, times: Times, fuse: Fuse
    ) -> tuple[list[Attempt], list[int | None]]:
        """Run all stages in a micro-batch; return what they make, and their watermarks after it."""
        attempts: list[Attempt] = []
        watermarks: list[int | None] = []
        for number, planned in enumerate(self._plans):
            if number:
                results = (each.results for each in attempts[-1].emissions)
                rows = self._packed(number, results)
                times = replace(times, watermark=held_back(planned, times.watermark))
            attempts.append(self._run_stage(number, rows, times, fuse))
            watermarks.append(times.watermark)
        return attempts, watermarks

    def _run_stage(self, number: int, rows: Rows, times: Times, fuse: Fuse) -> Attempt:
        return self._stages[number].attempt(rows, times, fuse)

    def _packed(self, number: int, results: Iterable[pa.Table]) -> Rows:
        """Return what goes to each shard of a stage of what the one before it gave."""
        planned, known = self._plans[number], self._watermarks[number]
        tables = _rows_for(planned, self._plans[number - 1], results)
        pack = PackMicroBatch(PackRows(planned), LONG_MIN if known is None else known)
        found: Rows = defaultdict(list)
        for packed in pack(batch for table in tables for batch in table.to_batches()):
            for shard, message in join_fragments([packed]):
                found[shard].append(from_ipc(message))
        return found


# ---- the command


def wrong(
    seed: int, make: Callable[[Chain], Execution] = Execution
) -> tuple[list[str], Counter[str]]:
    """Return how the execution of a seed differs from the truth, and what there was."""
    made = chain_of(seed)
    execution = make(made)
    wanted, got = expected(made), execution.run()
    facts = Counter(crashes=execution.crashes, calls=execution.calls)
    found = []
    for number, (ours, its) in enumerate(zip(wanted, got, strict=True)):
        for kind in sorted({*ours, *its}):
            what = "results" if kind[1] == RESULT else "late"
            facts[f"{what} of {kind[0]}"] += ours[kind].total()
            lacks, has = unmatched(ours[kind], its[kind])
            if lacks or has:
                found.append(f"seed {seed}, segment {number}, {kind}: lacks {lacks}, has {has}")
    if execution.left:
        found.append(f"seed {seed}: {execution.left} entries are left")
    return found, facts


def tried(
    seeds: range, make: Callable[[Chain], Execution] = Execution
) -> Iterator[tuple[int, list[str], Counter[str]]]:
    """Yield what `wrong` returns of each seed; whatever is raised is wrong."""
    for seed in seeds:
        try:
            yield (seed, *wrong(seed, make))
        except Exception as error:  # noqa: BLE001 - a failure is what is looked for
            yield seed, [f"seed {seed}:", *traceback.format_exception(error)[-3:]], Counter()


if __name__ == "__main__":
    first, last = map(int, sys.argv[1].split(".."))
    total: Counter[str] = Counter()
    failed = 0
    for _seed, _found, _facts in tried(range(first, last)):
        total += _facts
        failed += bool(_found)
        print(*_found[:4], sep="\n") if _found else None  # noqa: T201
    print(f"{last - first} seeds, {failed} failed", dict(total))  # noqa: T201
    sys.exit(failed > 0)
