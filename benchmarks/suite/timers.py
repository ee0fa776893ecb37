"""Whether timers that are due cost what they are, however many others wait: one shard, no Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from benchmarks.contest import Benchmark, Factory, Work
from benchmarks.measure import Measurement
from benchmarks.report import OWN
from benchmarks.shard_counts import CountingLog, Tally
from benchmarks.stage import Stage
from benchmarks.stream_data import StreamData
from benchmarks.streams import data_of
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.planning.planner import plan

#: How many times the keys there are, each of which has a timer.
TIMES = (1, 1_000)
#: What a micro-batch may take of that with the fewest timers.
_MOST = 3.0
#: Ticks between two timers, and rows of a micro-batch that sets some at first.
_STEP, _FILL = 100, 100_000
_LONG = pa.int64()
_EMPTY = pa.schema([("key", _LONG), ("ts", _LONG), ("at", _LONG)]).empty_table()


class Reminders(gw.functions.KeyedProcessFunction):
    """Counts the timers of a key, of which it always has one."""

    output = pa.schema([("at", _LONG), ("fired", _LONG)])
    state: ClassVar = {"fired": gw.functions.ValueStateDescriptor(_LONG)}

    def __init__(self, period: int) -> None:
        self.period = period

    def process_element(self, row: Mapping[str, Any], context: gw.typing.KeyedContext) -> None:
        """Set the first timer."""
        context.state("fired").update(0)
        context.register_event_time_timer(row["at"])

    def on_timer(self, time: int, context: gw.typing.TimerContext) -> list[dict[str, int]]:
        """Set the next one."""
        fired = context.state("fired")
        fired.update(fired.value() + 1)
        context.register_event_time_timer(time + self.period)
        return [{"at": time, "fired": fired.value()}]


class _Shard:
    """A shard with as many timers as keys, which are due in random order."""

    def __init__(self, keys: int, due: int) -> None:
        keyed = gw.stream(_EMPTY).event_time("ts", gw.WatermarkStrategy.no_watermarks())
        function = Reminders(keys * _STEP)
        outputs = (
            keyed.key_by("key").with_outputs().process(function, ["at"], output=function.output)
        )
        self._plan = plan(outputs.plan.query, bounded=False)
        self._files, self._tally = MemoryFiles(), Tally()
        self._newest: str | None = None
        self._ticks, self._watermark = due * _STEP, -1
        times = np.random.default_rng(keys).permutation(keys) * _STEP
        for begin in range(0, keys, _FILL):
            some = np.arange(begin, min(begin + _FILL, keys))
            columns = [some, np.zeros(len(some), np.int64), times[some]]
            log = CountingLog(self._files, self._newest, self._tally)
            operator = restore_operator(self._plan, log)
            for _ in operator.process(pa.table(columns, schema=_EMPTY.schema)):
                pass
            operator.save()
            self._newest = log.finish(uuid4().hex)
        self._tally.take()

    def next(self) -> float:
        """Have the next timers fire; return the seconds of the processor that it took."""
        self._watermark += self._ticks
        began = time.process_time()
        log = CountingLog(self._files, self._newest, self._tally)
        operator = restore_operator(self._plan, log)
        results = [each.results for each in operator.advance_watermark(self._watermark)]
        operator.save()
        self._newest = log.finish(uuid4().hex)
        seconds = time.process_time() - began
        fired = pa.concat_tables(results)["at"].to_numpy()
        expected = np.arange(self._watermark + 1 - self._ticks, self._watermark + 1, _STEP)
        assert fired.tolist() == expected.tolist(), "all that are due fire, in order"
        return seconds

    def details(self, runs: Sequence[int]) -> dict[str, float]:
        """Return the calls and kilobytes of a micro-batch; those of warm-ups count too."""
        traffic, count = self._tally.take(), runs[-1] + 1
        return {
            f"{operation}_{what}": found / count
            for operation in ("read", "write")
            for what, found in (
                ("calls", traffic.calls_of(operation)),
                ("kB", traffic.bytes_of(operation) / 1e3),
            )
        }


def _contestant(times: int) -> Factory:
    def factory(stage: Stage) -> Work:
        data = data_of(stage)
        shard = _Shard(data.keys * times, data.rows)
        return Work(shard.next, stage.window, details=shard.details)

    return factory


def _ratio(measurements: Sequence[Measurement]) -> list[str]:
    lines = []
    for m in measurements:
        each = ", ".join(f"{name.replace('_', ' ')} {n:,.1f}" for name, n in m.details.items())
        lines.append(f"{m.contestant}: {each}")
    if len(measurements) == len(TIMES):
        few, many = (m.median for m in measurements)
        verdict = "reached" if many <= _MOST * few else "missed"
        lines.append(f"{many / few:.2f} times as much, at most {_MOST:g}: {verdict}")
    return lines


BENCHMARK = Benchmark(
    name="timers",
    about="micro-batches in which --rows timers are due, of --keys that wait and of 1000x as many, "
    "in one shard; in memory: no Spark, no files; seconds are of the processor",
    size="1 hour",
    contestants={f"{OWN}[{times}x]": _contestant(times) for times in TIMES},
    rows=100,
    keys=1_000,
    warmups=2,
    repeats=20,
    summary=_ratio,
    data=StreamData,
)
