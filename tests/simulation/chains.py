"""``python -m tests.simulation.chains 0..2000``: queries of several stages, cut and crashing.

Rows go from stage to stage as in Spark: what a shard gives becomes the physical output, its blobs
become rows (`Forward`), and these are packed for the shards of the next stage (`PackRows`). The
truth are reference operators, one a stage, that are never cut: each takes what the one before it
gave up to a watermark, then that watermark, then what came after it.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator, restored_operator
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.options import Options
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.runners.result_rows import timed_results
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.micro_batch import _in_order as in_order
from gpu_windows.spark_glue.packing import BLOB, Room, dealt, from_ipc
from gpu_windows.spark_glue.passed import CARRIED, STRIDE, Forward, rows_of
from gpu_windows.spark_glue.tagged import AFTER, KIND, LATE, RESULT, pack_emissions
from gpu_windows.spark_glue.times import END_MS, SparkClock
from gpu_windows.spark_glue.workers import PackRows
from tests.simulation.case import MicroBatch, Segment
from tests.simulation.differences import unmatched
from tests.simulation.drawn_chains import Chain, chain_of
from tests.simulation.execution import CrashedError, Fuse, FusedStore, State
from tests.simulation.outcome import values_of

_MEASURED = pa.struct([("rows", pa.int64()), ("user", pa.map_(pa.string(), pa.int64()))])
_PHYSICAL = pa.schema([(KIND, pa.int32()), (BLOB, pa.binary()), ("__measured", _MEASURED)])
#: What a segment gives: (stage, kind) to rows.
Found = dict[tuple[int, int], Counter[Any]]


# ---- the truth


def expected(made: Chain) -> list[Found]:
    """Return what each segment gives: results and late rows of every stage."""
    plans = [
        plan(replace(query, options=Options(engine="reference")), bounded=False, spark=True)
        for query in made.queries
    ]
    operators = [build_operator(each) for each in plans]
    found: list[Found] = []
    for segment in made.case.segments():
        found.append(defaultdict(Counter))
        rows = [made.case.table(segment.rows, plans[0], segment.now)] if segment.rows else []
        _truth(plans, operators, made.clocks, segment, rows, found[-1])
    return found


def _truth(
    plans: list[Plan], operators: list[Operator], clocks: list[SparkClock], segment: Segment,
    rows: list[pa.Table], found: Found,
) -> None:  # fmt: skip
    before: list[pa.Table] = []
    after = rows
    for number, (planned, operator, clock) in enumerate(zip(plans, operators, clocks, strict=True)):
        watermark = clock.watermark(segment.watermark)
        if planned.query.reads_processing_time:
            found[number, RESULT].update(
                row
                for emission in operator.advance_processing_time(clock.time(segment.now))
                for row in values_of(emission.results)
            )
        advanced = iter(()) if watermark is None else operator.advance_watermark(watermark)
        taken = (operator.process(table) for table in _sorted(planned, before))
        first = [*chain.from_iterable(taken), *advanced]
        later = _sorted(planned, after) if number else after
        last = [*chain.from_iterable(operator.process(table) for table in later)]
        for emission in (*first, *last):
            found[number, RESULT].update(values_of(emission.results))
            found[number, LATE].update(values_of(emission.late))
        if number + 1 < len(plans):
            before, after = (
                [_rows_for(plans[number + 1], planned, e.results) for e in each if len(e.results)]
                for each in (first, last)
            )


def _sorted(planned: Plan, tables: list[pa.Table]) -> list[pa.Table]:
    """Return results in the order in which the next stage takes them: late rows meet sessions."""
    if not tables:
        return []
    batches = pa.concat_tables(tables).combine_chunks().to_batches()
    return [pa.Table.from_batches(in_order(planned, batches))]


def _rows_for(planned: Plan, of: Plan, results: pa.Table) -> pa.Table:
    """Return results as the next stage takes them."""
    times = of.query.results_in_time
    return timed_results(results, times).select(planned.input_columns)


# ---- the execution


class Execution:
    """A case as it is executed."""

    def __init__(self, made: Chain) -> None:
        self._chain = made
        options = made.case.options
        self._plans = [
            plan(replace(query, options=options), bounded=False, spark=True)
            for query in made.queries
        ]
        self._states = [State() for _ in self._plans]
        self.crashes = self.calls = 0

    def run(self) -> list[Found]:
        """Run all micro-batches, then the end of time."""
        found: list[Found] = []
        any_order = not self._plans[0].query.order_dependent(bounded=False)
        for segment in self._chain.case.segments():
            found.append(defaultdict(Counter))
            for batch in segment.micro_batches(any_order=any_order):
                for kind, rows in self._committed(segment, batch).items():
                    found[-1][kind].update(rows)
        return found

    @property
    def left(self) -> int:
        """How much is held of stages but the first."""
        sizes = (
            restored_operator(planned, MemoryStore(dict(blobs))).state_size()
            for planned, state in zip(self._plans[1:], self._states[1:], strict=True)
            for blobs in state.blobs.values()
        )
        return sum(sum(each.values()) for each in sizes)

    def _committed(self, segment: Segment, batch: MicroBatch) -> Found:
        for crash in batch.crashes:
            self.crashes += 1
            try:
                self._attempt(segment, batch, [s.copy() for s in self._states], Fuse(crash.after))
            except CrashedError:
                continue
        states = [state.copy() for state in self._states]
        found = self._attempt(segment, batch, states, Fuse())
        self._states = states
        return found

    def _attempt(
        self, segment: Segment, batch: MicroBatch, states: list[State], fuse: Fuse
    ) -> Found:
        sent = self._first_rows(segment, batch)
        frames: list[pd.DataFrame] = []
        for number in range(len(self._plans)):
            frames = self._stage(number, segment, sent, states[number], fuse)
            if number + 1 < len(self._plans):
                sent = self._packed(number, frames)
        return self._read(frames)

    def _first_rows(self, segment: Segment, batch: MicroBatch) -> dict[int, list[Any]]:
        if not batch.rows:
            return {}
        table = self._chain.case.table(batch.rows, self._plans[0], segment.now)
        rows, shards = dealt(self._plans[0], table)
        return {s: [rows.filter(pa.array(shards == s))] for s in sorted({*shards.tolist()})}

    def _stage(
        self, number: int, segment: Segment, sent: dict[int, list[Any]], state: State, fuse: Fuse
    ) -> list[pd.DataFrame]:
        is_stage = number + 1 < len(self._plans)
        shard = Shard(self._plans[number], self._chain.clocks[number], is_stage=is_stage)
        due = {s for s, time in state.timers.items() if time <= segment.watermark}
        if segment.watermark == END_MS:
            due |= {*state.blobs}
        frames: list[pd.DataFrame] = []
        names = tuple(f"stage_{n + 1}" for n in range(number))
        for place in sorted({*sent, *due}):
            fuse.burn()
            store = FusedStore(state.blobs.setdefault(place, {}), fuse)
            batch = shard.begin(store, segment.now, segment.watermark)
            blobs = sent.get(place, [])
            tables = batch.unmarked(blobs) if number else iter(blobs)
            after = AFTER if is_stage else RESULT
            phases = ((after if late else RESULT, each) for late, each in batch.phases(tables))
            frames += pack_emissions(phases, Room(1 << 12))
            frames += rows_of(batch.messages, names)
            fuse.burn()
            state.timers.pop(place, None)
            if (call := batch.finish().next_call) is not None:
                state.timers[place] = call
            self.calls += 1
        return frames

    def _packed(self, number: int, frames: list[pd.DataFrame]) -> dict[int, list[bytes]]:
        """Return what goes to each shard of the next stage."""
        planned, after = self._plans[number], self._plans[number + 1]
        names = tuple(f"stage_{n + 1}" for n in range(number))
        forward = Forward(f"stage_{number + 1}", True, planned.result_schema, names)
        physical = (pa.RecordBatch.from_pandas(f, _PHYSICAL, preserve_index=False) for f in frames)
        rows = [self._in_time(planned, after, batch) for batch in forward(physical)]
        found: dict[int, list[bytes]] = defaultdict(list)
        for batch in PackRows(after)(rows):
            for shard, blob in zip(*(column.to_pylist() for column in batch), strict=True):
                found[shard].append(blob)
        return found

    @staticmethod
    def _in_time(planned: Plan, after: Plan, batch: pa.RecordBatch) -> pa.RecordBatch:
        table = timed_results(pa.Table.from_batches([batch]), planned.query.results_in_time)
        (made,) = table.select([*after.input_columns, CARRIED]).combine_chunks().to_batches()
        return made

    def _read(self, frames: list[pd.DataFrame]) -> Found:
        """Return the rows of all outputs in the last stage's."""
        found: Found = defaultdict(Counter)
        last = len(self._plans) - 1
        for kind, blob in chain.from_iterable(zip(f[KIND], f[BLOB], strict=True) for f in frames):
            stage, own = divmod(int(kind), STRIDE)
            if own in (RESULT, LATE):
                found[stage - 1 if stage else last, own].update(values_of(from_ipc(blob)))
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
