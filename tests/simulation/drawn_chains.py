"""Draws queries of several stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.aggregates.definitions import bind
from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.runners.arrow_rows import with_result_time
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import ContinuousEventTimeTrigger, CountTrigger
from gpu_windows.vocabulary.watermarks import StageWatermarks, WatermarkStrategy
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from tests.planning.queries import AGGREGATES
from tests.simulation import joins, overs, parts, processes
from tests.simulation.case import Case, Cut
from tests.simulation.script import SCHEMA, script

_IN_ORDER = WatermarkStrategy(0)


@dataclass(frozen=True)
class Chain:
    """A case of several stages."""

    case: Case
    queries: tuple[Query, ...]


def chain_of(seed: int) -> Chain:
    """Return the case of a seed."""
    rng = Random(seed)
    step = rng.choice([1, 1, 7])
    queries = [_planned(_first, rng)]
    for number in range(rng.choice([1, 1, 2])):
        queries.append(_next(rng, queries[-1], f"stage_{number + 1}"))
    elements = script(rng, step, 40, in_processing_time=False)
    if any(_tells_order(queries, number) for number in range(1, len(queries))):
        elements = tuple(each for each in elements if not isinstance(each, Cut))
    options = Options(device="cpu", shards=rng.choice([1, 2, 3]))
    case = Case(seed, queries[0], elements, options, is_tight=False)
    return Chain(case, tuple(queries))


def _tells_order(queries: list[Query], number: int) -> bool:
    """Whether results of a stage tell the order of the late rows among its own, which cuts change.

    Firings for late rows do, and sessions, in which a row is late unless another one came before.
    """
    query = queries[number]
    if not isinstance(query, WindowQuery):
        return False
    late = any(
        isinstance(q, ProcessQuery) or (isinstance(q, WindowQuery) and q.allowed_lateness)
        for q in queries[:number]
    )
    is_session = isinstance(query.assigner, EventTimeSessionWindows)
    return query.allowed_lateness > 0 or (late and is_session)


def _planned(draw: Callable[[Random], Query], rng: Random) -> Query:
    """Draw a query that streams may have."""
    while True:
        try:
            plan(query := draw(rng), bounded=False, spark=True)
        except GpuWindowsError:
            continue
        return query


def _first(rng: Random) -> Query:
    kind = rng.random()
    if kind < 0.3:
        return _join(rng)
    if kind < 0.4:
        return overs.over(rng, SCHEMA, _IN_ORDER)
    if kind < 0.5:
        made = processes.connected(rng, SCHEMA)
        assert isinstance(made, ProcessQuery)
        return replace(made, gives_times=True)
    among = {name: AGGREGATES[name] for name in ("rows", "min_i", "sum_small")}
    return _windows(rng, SCHEMA, "ts", _IN_ORDER, parts.keys(rng), among, arrival_order=("seq",))


def _join(rng: Random) -> Query:
    left, right = joins.sides(rng, SCHEMA)
    if rng.random() < 0.3:
        versioned = left.temporal_join(right).arrival_order("seq")
        outputs = versioned.with_outputs().select(
            ["small"], ["small"], how=rng.choice(["inner", "left"])
        )
        assert outputs.in_time is not None
        return outputs.in_time().plan.query
    pairs = left.interval_join(right).between(
        "-5 microseconds", f"{rng.randint(0, 12)} microseconds"
    )
    how: Any = rng.choice(["inner", "inner", *joins.HOW])
    if rng.random() < 0.2:
        pairs = pairs.nearest(rng.choice(["before", "after", "either"])).arrival_order("seq")
        how = rng.choice(["inner", "left"])
    outputs = pairs.with_outputs().select(["small"], ["small"], how=how)
    assert outputs.in_time is not None
    return outputs.in_time().plan.query


def _next(rng: Random, before: Query, name: str) -> Query:
    times = before.results_in_time
    made = plan(replace(before, options=Options()), bounded=False, spark=True)
    schema = with_result_time(made.result_schema.empty_table(), times).schema
    schema = pa.schema([field.with_nullable(True) for field in schema])
    watermarks = StageWatermarks(stage=name, behind=times.behind)
    keys = tuple(rng.sample(before.keys, rng.randint(1, len(before.keys))))
    numbers = [
        f.name for f in schema if f.type in (pa.int16(), pa.int64()) and f.name != times.name
    ]
    among: dict[str, Any] = {"rows": gw.count()}
    for number, column in enumerate(numbers[-2:]):
        among[f"a{number}"] = rng.choice([gw.min, gw.max, gw.count])(column)
    return _windows(rng, schema, times.name, watermarks, keys, among)


def _windows(
    rng: Random, schema: pa.Schema, time: str, watermarks: WatermarkStrategy,
    keys: tuple[str, ...], among: dict[str, Any], **more: Any,
) -> WindowQuery:  # fmt: skip
    assigner: Any = parts.sliced(rng)
    if rng.random() < 0.3:
        assigner = EventTimeSessionWindows(rng.randint(1, 20))
    trigger = assigner.default_trigger()
    lateness = rng.choice([0, 0, 10, 60])
    if more:  # of the first stage, for which arrival has an order
        early = (ContinuousEventTimeTrigger(rng.randint(2, 10)), CountTrigger(rng.randint(1, 3)))
        trigger = rng.choice([trigger, trigger, *early])
    bound = tuple(bind(name, aggregate, schema) for name, aggregate in among.items())
    return WindowQuery(schema=schema, time=time, watermarks=watermarks, keys=keys,
                       assigner=assigner, trigger=trigger, function=Aggregates(bound),
                       allowed_lateness=lateness, **more)  # fmt: skip
