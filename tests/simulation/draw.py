"""Makes the case of a seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from gpu_windows.errors import GpuWindowsError
from gpu_windows.planning.kinds.grouping import GroupingSets
from gpu_windows.planning.kinds.match import MatchQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import explain
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.options import Device, Options
from gpu_windows.vocabulary.triggers import ContinuousEventTimeTrigger
from gpu_windows.vocabulary.watermarks import ClockWatermarks, NoWatermarks, WatermarkStrategy
from gpu_windows.vocabulary.windows import SlidingEventTimeWindows
from tests.planning.queries import AGGREGATES, MORE
from tests.simulation import joins, matches, overs, parts, processes
from tests.simulation.case import Case
from tests.simulation.changes import with_changes
from tests.simulation.gaps import with_gaps
from tests.simulation.script import SCHEMA, script

_MOST_ROWS = 40


def case_of(seed: int, device: Device = "cpu") -> tuple[Case, int]:
    """Return the case of a seed, and how many queries were refused before one was not."""
    rng = Random(seed)
    refused = 0
    while True:
        try:
            return _case(seed, rng, device), refused
        except GpuWindowsError:
            refused += 1


def _case(seed: int, rng: Random, device: Device) -> Case:
    step = rng.choice([1, 1, 7])
    query = with_changes(_query(rng), Random(f"changes of {seed}"))
    query = with_gaps(query, Random(f"gaps of {seed}"))
    _check(query)
    has_reference = isinstance(query, WindowQuery | MatchQuery)
    options = Options(
        device=device,
        engine="reference" if rng.random() < 0.2 and has_reference else "auto",
        shards=rng.choice([1, 1, 2, 3]),
        batch_rows=rng.choice([1, 4, 1 << 17, 1 << 17]),
    )
    most = _MOST_ROWS if device == "cpu" else 12
    by_clock = query.reads_processing_time or query.watermarks.in_processing_time
    elements = script(rng, step, most, in_processing_time=by_clock)
    tight = rng.random() < 0.4
    ahead = rng.choice([None, 0, 0, 1, rng.randint(0, 60)])
    counts = _shard_counts(Random(f"shards of {seed}")) if query.shard_keys else ()
    case = Case(seed, query, elements, options, is_tight=tight, ahead=ahead, shard_counts=counts)
    explain(case.executed)  # it can be planned
    return case


def _shard_counts(rng: Random) -> tuple[int, ...]:
    """Draw numbers of shards with which a query is started again."""
    if rng.random() < 0.5:
        return ()
    return tuple(rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4)))


def _query(rng: Random) -> Query:
    kind = rng.random()
    if kind < 0.2:
        join = joins.interval_join if kind < 0.14 else joins.temporal_join
        return join(rng, SCHEMA)
    if kind < 0.32:
        return joins.windowed(rng, SCHEMA)
    if kind < 0.44:
        return _of_slices(rng) if rng.random() < 0.8 else _looking_back(rng)
    if kind < 0.54:
        return processes.process(rng, SCHEMA, _watermarks(rng))
    if kind < 0.56:
        return matches.match(rng, SCHEMA, WatermarkStrategy(0))
    if kind < 0.58:
        return overs.over(rng, SCHEMA, WatermarkStrategy(0))
    if kind < 0.62:
        return rng.choice([processes.connected, processes.broadcast])(rng, SCHEMA)
    assigner = parts.assigner(rng)
    settings: dict[str, Any] = {
        "schema": SCHEMA,
        "time": "ts",
        "watermarks": _watermarks(rng),
        "keys": parts.keys(rng),
        "assigner": assigner,
        "trigger": assigner.default_trigger() if rng.random() < 0.4 else parts.trigger(rng),
        "evictor": parts.evictor(rng) if rng.random() < 0.2 else None,
        "function": parts.function(rng, SCHEMA),
        "allowed_lateness": rng.choice([0, 0, 5, 40]),
        "firing_columns": rng.random() < 0.3,
        "arrival_order": ("seq",),
    }
    return WindowQuery(**settings)


def _of_slices(rng: Random) -> WindowQuery:
    """Draw what is kept as slices: aggregates of windows that fire at their end."""
    keys = parts.keys(rng)
    return WindowQuery(
        schema=SCHEMA,
        time="ts",
        watermarks=_watermarks(rng),
        keys=keys,
        assigner=parts.sliced(rng),
        function=parts.aggregates(rng, SCHEMA, AGGREGATES | parts.SKETCHES),
        firing_columns=rng.random() < 0.3,
        grouping=_grouping(rng) if len(keys) > 1 and rng.random() < 0.4 else None,
        arrival_order=("seq",),
    )


def _grouping(rng: Random) -> GroupingSets:
    """Draw groupings of two keys; none without a key, for the truth has no such column."""
    return GroupingSets(tuple(rng.sample([(0, 1), (0,), (1,)], rng.randint(1, 3))))


def _looking_back(rng: Random) -> WindowQuery:
    """Draw aggregates over the last parts of sliding windows, of changed keys only or of all."""
    slide, slides = rng.randint(1, 12), rng.randint(1, 6)
    among = {
        name: replace(aggregate, recent=slide * rng.randint(1, slides))
        for name, aggregate in (AGGREGATES | MORE | parts.SKETCHES).items()
    }
    return WindowQuery(
        schema=SCHEMA,
        time="ts",
        watermarks=_watermarks(rng),
        keys=parts.keys(rng),
        assigner=SlidingEventTimeWindows(slide * slides, slide, rng.randint(1 - slide, slide - 1)),
        function=parts.aggregates(rng, SCHEMA, among),
        changed_only=rng.random() < 0.5,
        arrival_order=("seq",),
    )


def _watermarks(rng: Random) -> WatermarkStrategy:
    kind = rng.random()
    if kind < 0.1:
        return ClockWatermarks()
    return NoWatermarks() if kind < 0.15 else WatermarkStrategy(0)


class _RefusedError(GpuWindowsError):
    """A query that this simulation cannot compare."""


def _check(query: Query) -> None:
    """Refuse what fires from the time of a row, which may be none, to the end of time."""
    if not isinstance(query, WindowQuery):
        return
    endless = any(isinstance(part, ContinuousEventTimeTrigger) for part in query.trigger.walk())
    if endless and (query.is_global or not query.assigner.is_event_time):
        raise _RefusedError("continuous triggers of event time need windows of event time")
    if endless and getattr(query.assigner, "gap_column", None) is not None:
        raise _RefusedError("the gap of a row may end its session at the end of time")
