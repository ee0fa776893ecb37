"""The runner of scenarios on real streaming queries, which are interrupted and started again.

A micro-batch holds the rows between two watermarks and carries the second one: on its last row, or
on a row of its own where there is none. So it gives what its rows do under the first watermark,
then what the second one fires, and that is compared with what the recorded run gave at these steps.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import gpu_windows as gw
from gpu_windows.planning.own_columns import REASON
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.session.settings import SETTINGS
from gpu_windows.vocabulary.options import Options
from tests.conformance.cases import INSTANT, Case
from tests.conformance.compare import (
    Difference,
    compare_part,
    compare_sides,
    compare_statement,
)
from tests.conformance.frames import SharedSession, emissions_of
from tests.conformance.processed import tells_the_clock
from tests.conformance.replay import elements_of, most_rows
from tests.conformance.scenario import Part, Record, Scenario, Watermark
from tests.conformance.verdict import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CARRIER = "watermark"
#: The first and the last time of a row, in milliseconds, which Python's dates can tell.
_DATES = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_SCHEMA = "key string, ts timestamp, value double, seq long, gap long, at long, watermark timestamp"


class StreamingQueryRunner:
    """Runs each scenario as a streaming query over files, one a micro-batch.

    One of at least three micro-batches is stopped after the first half of them. When it goes on
    from its checkpoint, it dies within the next micro-batch, after the results were computed and
    before Spark has noted the micro-batch as done, and is started once more.

    Parameters
    ----------
    options : Options
        Engine and device.
    """

    #: A microsecond of Spark's TIMESTAMP stands for a millisecond of the scenario; see
    #: `tests.conformance.batch.BatchRunner`.
    ticks_per_ms = 1

    def __init__(self, options: Options) -> None:
        self._options = replace(options, shards=3)
        self._shared = SharedSession("OFF")  # the death of a query is logged as an error
        self._session: SparkSession | None = None

    def close(self) -> None:
        """Stop the session, if this runner has started one."""
        self._shared.close()

    def skips(self, scenario: Scenario) -> str | None:
        """Return why a scenario that we could run is not run."""
        first, last = _DATES
        far = [record.ts for record in scenario.records if not first <= record.ts <= last]
        if far:
            return f"{far[0]} is too far from 1970 for dates"
        return _why_not(scenario)

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Replay a scenario and compare, micro-batch by micro-batch."""
        with tempfile.TemporaryDirectory(prefix="gpu-windows-") as folder:
            replay = _Replay(self._own_session(), Path(folder), scenario, case, self._options)
            replay.run()
            differences = tuple(replay.differences())
            return Run(replay.outputs.plan.strategy, differences, frozenset(replay.reasons))

    def _own_session(self) -> SparkSession:
        """Return a session with settings of its own: scenarios are small."""
        if self._session is None:
            self._session = self._shared.get().newSession()
            own = {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC"}
            for name, value in {**SETTINGS, **own}.items():
                self._session.conf.set(name, value)
        return self._session


def _why_not(scenario: Scenario) -> str | None:
    """Return what of a scenario a real query cannot do as its recorded run did, or None."""
    operator = scenario.operator
    triggers = list(_triggers(operator.trigger))
    types = [part.type for part in (operator.assigner, operator.function, *triggers) if part]
    function = operator.function
    if function is not None:
        types.append(str(function.parameters.get("time_domain", "event_time")))
    tells_clock = function is not None and tells_the_clock(function)
    if tells_clock or any("processing" in type_ for type_ in types):
        return "nobody sets the processing time of a real query"
    if scenario.is_restarted:
        return "the watermark begins anew after a restart; that of a query goes on"
    return None


def _triggers(trigger: Part | None) -> Iterator[Part]:
    """Yield a trigger and those inside it."""
    while trigger is not None:
        yield trigger
        trigger = trigger.part("inner") if "inner" in trigger.parameters else None


@dataclass(frozen=True)
class _MicroBatch:
    """Records, and how far each input is after them; ``steps``: the elements that these are."""

    records: Sequence[Record]
    reached: Mapping[str | None, int]
    steps: frozenset[int]

    def table(self, case: Case, side: str | None, ticks_per_ms: int) -> pa.Table:
        """Return the rows of a file; the last one carries the watermark, if there is one."""
        rows = case.table([r for r in self.records if r.side == side], ticks_per_ms)
        time = self.reached[side]
        if time == LONG_MIN:
            return rows.append_column(_CARRIER, pa.nulls(len(rows), INSTANT))
        if len(rows) == 0:
            rows = pa.Table.from_pylist([{}], schema=rows.schema)
        carried = pa.array([None] * (len(rows) - 1) + [time], pa.int64())
        return rows.append_column(_CARRIER, carried.cast(INSTANT))


def _micro_batches(scenario: Scenario) -> Iterator[_MicroBatch]:
    """Yield what a query reads: rows, and the next watermark; the last one is the end of time.

    One that reaches an operator side by side is two.
    """
    reached: dict[str | None, int] = dict.fromkeys((None, "left", "right"), LONG_MIN)
    records: list[Record] = []
    has_one_row = most_rows(scenario) == 1
    for element in elements_of(scenario):
        if isinstance(element, Record):
            if has_one_row and records:
                yield _MicroBatch(records, dict(reached), frozenset(r.seq for r in records))
                records = []
            records.append(element)
        elif isinstance(element, Watermark):
            for side in reached if element.side is None else (element.side,):
                reached[side] = max(reached[side], element.time)
            steps = frozenset((*(record.seq for record in records), element.seq))
            yield _MicroBatch(records, dict(reached), steps)
            records = []


def _middle(batches: Sequence[_MicroBatch]) -> int:
    """Return the number of micro-batches after which a query is stopped; 0 if it is not."""
    return len(batches) // 2 if len(batches) > 2 else 0


def expected_steps(scenario: Scenario) -> list[set[int]]:
    """Return which elements of the input each micro-batch of Spark takes."""
    return [set(batch.steps) for batch in _micro_batches(scenario)]


@dataclass(frozen=True)
class _Written:
    """What a micro-batch gave: emissions, of side outputs too, and the numbers of late rows."""

    emissions: list[dict[str, Any]]
    sides: dict[str, list[dict[str, Any]]]
    late: list[int]

    def sorted(self) -> list[str]:
        """Return all of it in one order."""
        aside = [f"{tag}: {row}" for tag, rows in self.sides.items() for row in rows]
        return sorted([*map(repr, self.emissions), *aside, *map(str, self.late)])

    @classmethod
    def sum(cls, each: Iterable[_Written]) -> _Written:
        """Return what some micro-batches gave together."""
        emissions, late = [], []
        sides: dict[str, list[dict[str, Any]]] = {}
        for one in each:
            emissions += one.emissions
            late += one.late
            for tag, rows in one.sides.items():
                sides[tag] = [*sides.get(tag, ()), *rows]
        return cls(emissions, sides, late)


class _DeathError(Exception):
    """Raised within a micro-batch, to end a query there."""


class _Replay:
    """A scenario's query over a folder, its checkpoint, and what it has written.

    ``reasons``: why rows were given back.
    """

    def __init__(
        self, session: SparkSession, folder: Path, scenario: Scenario, case: Case, options: Options
    ) -> None:
        self._folder, self._scenario, self._case = folder, scenario, case
        watermarks = gw.WatermarkStrategy.for_punctuated(_CARRIER)
        source = session.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
        frames = []
        for side in case.sides:
            self._input(side).mkdir()
            frames.append(source.parquet(str(self._input(side))))
        self.outputs = case.outputs(frames, options, watermarks)
        self._batches = list(_micro_batches(scenario))
        self._middle = _middle(self._batches)
        self._written: dict[int, _Written] = {}
        self.reasons: set[str] = set()
        self._differences: list[Difference] = []
        self._dies_in: int | None = None

    def run(self) -> None:
        """Run the query to the end of the input."""
        if self._middle:
            self._add_files(0, self._middle)
            self._start()
            self._dies_in = len(self._written)
        self._add_files(self._middle, len(self._batches))
        self._start()
        if self._dies_in is not None:
            self._dies_in = None
            self._start()

    def differences(self) -> Iterator[Difference]:
        """Yield where what was written is not what the recorded run gave."""
        yield from self._differences
        steps = expected_steps(self._scenario)
        wanted, found = list(range(len(steps))), sorted(self._written)
        if wanted != found:
            yield Difference("micro-batches", {"numbers": wanted}, {"numbers": found})
        known = [(of, self._written[number]) for number, of in enumerate(steps) if number in found]
        if self._scenario.is_statement:
            rows = [{"step": min(of), **row} for of, each in known for row in each.emissions]
            yield from compare_statement(self._scenario, rows)
            return
        for _, of_watermark in groupby(known, key=lambda one: max(one[0])):
            every, written = zip(*of_watermark, strict=True)
            of, gave = set().union(*every), _Written.sum(written)
            yield from compare_part(self._scenario, of, gave.emissions, gave.late)
            yield from compare_sides(self._scenario, of, gave.sides)

    def _add_files(self, begin: int, end: int) -> None:
        ticks = StreamingQueryRunner.ticks_per_ms
        for number in range(begin, end):
            for side in self._case.sides:
                path = self._input(side) / f"{number}.parquet"
                pq.write_table(self._batches[number].table(self._case, side, ticks), path)
                os.utime(path, (number, number))  # Spark reads them in this order

    def _input(self, side: str | None) -> Path:
        return self._folder / (side or "in")

    def _start(self) -> None:
        """Run the query until there is nothing more to read, or it dies as it shall."""
        from pyspark.errors import StreamingQueryException

        checkpoint = str(self._folder / "checkpoint")
        query = gw.write_stream(
            self.outputs, self._take, checkpoint, trigger={"availableNow": True}
        )
        try:
            query.awaitTermination()
        except StreamingQueryException:
            if self._dies_in not in self._written:
                raise

    def _take(
        self,
        results: DataFrame,
        back: DataFrame,
        number: int,
        sides: Mapping[str, DataFrame] | None = None,
    ) -> None:
        given_back = back.toArrow().to_pylist()
        self.reasons.update(row[REASON] for row in given_back)
        late = [self._case.seq_of(row) for row in given_back if row[REASON] == "late"]
        aside = {tag: self._emissions(rows) for tag, rows in (sides or {}).items()}
        written = _Written(self._emissions(results), aside, late)
        before = self._written.get(number)
        if before is not None and before.sorted() != written.sorted():
            first, again = ({"rows": each.sorted()} for each in (before, written))
            self._differences.append(Difference(f"micro-batch {number}, run again", first, again))
        self._written[number] = written
        if number == self._dies_in:
            raise _DeathError

    def _emissions(self, rows: DataFrame) -> list[dict[str, Any]]:
        return [*emissions_of(rows.toArrow(), self._case, StreamingQueryRunner.ticks_per_ms)]
