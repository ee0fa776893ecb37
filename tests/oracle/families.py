"""Families of random scenarios: what is asked in each, and over which input.

Left out on purpose, because the answer is no use as a test: most of what Flink refuses; global
windows with a continuous event-time trigger (fires for ever at the end of the input); sessions
with an allowed lateness of 2^63 - 1; ``collect_state`` where windows of one key may fire at one
time (its counter then depends on the order of Flink's heap).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.oracle import parts, processes
from tests.oracle.parts import Part
from tests.oracle.random_matches import match
from tests.oracle.statements import (
    group_window,
    grouping_sets,
    over,
    over_distinct,
    temporal_sort,
    top_n,
    window_dedup,
    window_top_n,
    window_tvf,
)
from tests.oracle.streams import Shape, around, stream

#: An operator, the shape of its input, and (of SQL) more fields of the scenario.
Asked = tuple[Part, Shape] | tuple[Part, Shape, dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """A family, and its share of the default mix; 0: only where it is asked for."""

    weight: int
    ask: Callable[[random.Random], Asked]


def scenario(seed: int, index: int, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a scenario without results. It depends on all three, and on nothing else."""
    rng = random.Random(f"{seed}/{index}")
    names = only or tuple(name for name, family in FAMILIES.items() if family.weight)
    family = rng.choices(names, [FAMILIES[name].weight or 1 for name in names])[0]
    operator, shape, *more = FAMILIES[family].ask(rng)
    return {
        "name": f"seed{seed}_{index:05d}",
        "family": f"fuzz_{family}",
        "description": f"random, seed {seed}, number {index}",
        "operator": operator,
        **(more[0] if more else {}),
        "input": stream(rng, shape),
    }


def size(rng: random.Random) -> int:
    """Return how many records."""
    return rng.choice([20, 60, 120, 200, 300])


def _window(
    assigner: Part, trigger: Part | None, evictor: Part | None, lateness: int, function: Part
) -> Part:
    return {
        "kind": "window",
        "assigner": assigner,
        "trigger": trigger,
        "evictor": evictor,
        "allowed_lateness_ms": lateness,
        "late_side_output": assigner["type"].endswith("event_time"),
        "function": function,
    }


def _tumbling(rng: random.Random) -> Asked:
    assigner = parts.tumbling(rng)
    kinds = (parts.event_time, parts.count, parts.continuous, parts.continuous, parts.delta)
    trigger = parts.trigger(rng, *kinds, parts.timeout, parts.continuous_processing)
    clock = parts.needs_clock(trigger)
    function = parts.function(rng) if clock else parts.function(rng, "collect_state")
    lateness = parts.lateness(rng, assigner)
    shape = Shape(size(rng), rng.choice([20, 150, 600]), parts.grid_of(assigner), clock=clock)
    return _window(assigner, trigger, parts.evictor(rng), lateness, function), shape


def _sliding(rng: random.Random) -> Asked:
    assigner = parts.sliding(rng)
    kinds = (parts.event_time, parts.count, parts.continuous, parts.continuous, parts.delta)
    trigger, evictor = parts.trigger(rng, *kinds), parts.evictor(rng)
    lateness = parts.lateness(rng, assigner)
    shape = Shape(size(rng), rng.choice([20, 150, 600]), parts.grid_of(assigner))
    return _window(assigner, trigger, evictor, lateness, parts.function(rng)), shape


def _session(rng: random.Random) -> Asked:
    dynamic = rng.random() < 0.3
    assigner = parts.dynamic_session(rng) if dynamic else parts.session(rng)
    kinds = (parts.event_time, parts.count, parts.continuous)
    trigger, evictor = parts.trigger(rng, *kinds, default=0.5), parts.evictor(rng, 0.25)
    lateness = parts.lateness(rng, assigner)
    shape = Shape(
        size(rng),
        rng.choice([100, 400, 1500]),
        parts.grid_of(assigner),
        value=partial(_gap, rng) if dynamic else None,
        echoes=(0,) if dynamic else around(assigner["gap_ms"]),
    )
    return _window(assigner, trigger, evictor, lateness, parts.function(rng)), shape


def _gap(rng: random.Random) -> float:
    """Return a value that makes a gap, which must be positive."""
    return rng.randint(4, 400) / 4


def _global(rng: random.Random) -> Asked:
    kinds = (parts.count, parts.count, parts.delta, parts.timeout, parts.continuous_processing)
    trigger = parts.trigger(rng, *kinds, default=0.05)
    clock = parts.needs_clock(trigger)
    function = parts.function(rng) if clock else parts.function(rng, "collect_state")
    shape = Shape(size(rng), 200, 1000, clock=clock)
    return _window({"type": "global"}, trigger, parts.evictor(rng, 0.5), 0, function), shape


def _count(rng: random.Random) -> Asked:
    assigner: Part = {"type": "count", "size": rng.randint(1, 8)}
    if rng.random() < 0.6:
        assigner["slide"] = rng.randint(1, 9)
    function = parts.function(rng, "collect_state")
    return _window(assigner, None, None, 0, function), Shape(size(rng), 200, 1000)


def _processing_time(rng: random.Random) -> Asked:
    choices = (parts.tumbling, parts.sliding, parts.session, parts.dynamic_session)
    assigner = rng.choice(choices)(rng, "processing")
    kinds = [parts.count, parts.continuous_processing]
    if "session" not in assigner["type"]:
        kinds += [parts.processing_time, parts.timeout, parts.delta]
    trigger = parts.trigger(rng, *kinds)
    value = partial(_gap, rng) if "dynamic" in assigner["type"] else None
    marks = rng.random() < 0.3
    shape = Shape(size(rng), 200, 1000, clock=True, watermarks=marks, value=value)
    return _window(assigner, trigger, parts.evictor(rng), 0, parts.function(rng)), shape


def _two_sided(rng: random.Random, kind: str, function: str) -> Asked:
    assigner = rng.choice([parts.tumbling, parts.sliding, parts.session])(rng)
    operator = {
        "kind": kind,
        "assigner": assigner,
        "trigger": parts.trigger(rng, parts.event_time, parts.count, parts.continuous, default=0.7),
        "evictor": parts.evictor(rng, 0.2),
        "allowed_lateness_ms": parts.lateness(rng, assigner),
        "function": {"type": function},
    }
    records, step = rng.choice([20, 60, 120]), rng.choice([200, 800])
    return operator, Shape(records, step, parts.grid_of(assigner), sides=True)


def _interval_join(rng: random.Random) -> Asked:
    lower = rng.choice([0, -1, -1000, rng.randint(-4000, 3000)])
    upper = lower + rng.choice([0, 1, 1000, 2500, rng.randint(1000, 5000)])
    inclusive = 0.6 if upper - lower > 2 else 0.9  # narrow and exclusive matches nothing
    operator = {
        "kind": "interval_join",
        "lower_bound_ms": lower,
        "upper_bound_ms": upper,
        "lower_inclusive": rng.random() < inclusive,
        "upper_inclusive": rng.random() < inclusive,
        "late_side_output": rng.random() < 0.8,
        "function": {"type": "pairs"},
    }
    echoes = around(lower, upper)
    return operator, Shape(size(rng), rng.choice([50, 300]), 500, sides=True, echoes=echoes)


FAMILIES: dict[str, Family] = {
    "tumbling": Family(18, _tumbling),
    "sliding": Family(14, _sliding),
    "session": Family(18, _session),
    "global": Family(8, _global),
    "count": Family(5, _count),
    "processing_time": Family(8, _processing_time),
    "window_join": Family(8, partial(_two_sided, kind="window_join", function="pairs")),
    "co_group": Family(6, partial(_two_sided, kind="co_group", function="collect_both")),
    "interval_join": Family(9, _interval_join),
    "window_tvf": Family(4, window_tvf),
    "group_window": Family(2, group_window),
    "process": Family(0, processes.process),  # not there yet, as is what follows
    "co_process": Family(0, processes.co_process),
    "process_clock": Family(0, processes.process_clock),
    "process_side_outputs": Family(0, processes.side_outputs),
    "co_process_clock": Family(0, processes.co_process_clock),
    "broadcast_process": Family(0, processes.broadcast_process),
    "process_restart": Family(0, processes.process_restart),
    "over": Family(0, over),
    "over_distinct": Family(0, over_distinct),
    "temporal_sort": Family(0, temporal_sort),
    "top_n": Family(0, top_n),
    "grouping_sets": Family(0, grouping_sets),
    "window_dedup": Family(0, window_dedup),
    "window_top_n": Family(0, window_top_n),
    "match": Family(0, match),
}
