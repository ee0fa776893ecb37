"""Draws joins and co-groups, through the API: over rows of one schema on both sides."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

import gpu_windows as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.functions.join import JoinType
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.simulation import parts
from tests.simulation import user_parts as users

HOW = get_args(JoinType)
_LATENESS = (0, 0, 5, 40)


def sides(rng: Random, schema: pa.Schema) -> tuple[gw.typing.KeyedStream, gw.typing.KeyedStream]:
    """Draw two keyed streams without rows."""
    nothing = schema.empty_table()
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keys = parts.keys(rng)
    both = [gw.stream(nothing).event_time("ts", watermarks).key_by(*keys) for _ in range(2)]
    return both[0], both[1]


def _choice(rng: Random) -> dict[str, Any]:
    condition = pc.field("left_i") + pc.field("right_i") <= 8
    return {"how": rng.choice(HOW), "where": condition if rng.random() < 0.2 else None}


def interval_join(rng: Random, schema: pa.Schema) -> Query:
    """Draw an interval join."""
    left, right = sides(rng, schema)
    lower = rng.randint(-12, 12)
    bounds = (timedelta(microseconds=b) for b in (lower, lower + rng.randint(0, 16)))
    pairs = left.interval_join(right).between(*bounds)
    if rng.random() < 0.2:
        pairs = pairs.lower_bound_exclusive()
    if rng.random() < 0.2:
        pairs = pairs.upper_bound_exclusive()
    if rng.random() < 0.3:
        pairs = pairs.null_safe()
    how = _choice(rng)
    match rng.randrange(4):
        case 0:
            pairs = pairs.nearest(rng.choice(["before", "after", "either"])).arrival_order("seq")
            how = {"how": rng.choice(["inner", "left"])}
        case 1:
            pairs = pairs.join_late().arrival_order("seq")
    return pairs.with_outputs().select(["i", "text"], ["i"], **how).plan.query


def temporal_join(rng: Random, schema: pa.Schema) -> Query:
    """Draw a join with versions."""
    left, right = sides(rng, schema)
    deleted = next(field.name for field in schema if field.type == pa.bool_())
    joined = left.temporal_join(right, deleted if rng.random() < 0.4 else None).arrival_order("seq")
    if rng.random() < 0.4:
        joined = joined.valid_for(timedelta(microseconds=rng.randint(1, 30)))
    if rng.random() < 0.3:
        joined = joined.null_safe()
    how = {**_choice(rng), "how": rng.choice(["inner", "left"])}
    return joined.with_outputs().select(["i", "text"], ["i"], **how).plan.query


def windowed(rng: Random, schema: pa.Schema) -> WindowQuery:
    """Draw a window join or a co-group.

    The API that is asked is that of bounded input, which refuses processing time: that is
    put in afterwards.
    """
    left, right = sides(rng, schema)
    assigner = parts.assigner(rng)
    trigger = assigner.default_trigger() if rng.random() < 0.6 else parts.trigger(rng)
    first = assigner if assigner.is_event_time else TumblingEventTimeWindows(5)
    streams: Any = left.join(right) if rng.random() < 0.5 else left.co_group(right)
    both = streams.window(first)
    lateness = timedelta(microseconds=rng.choice(_LATENESS))
    both = both.arrival_order("seq").allowed_lateness(lateness)
    if not trigger.uses_processing_time:
        both = both.trigger(trigger)
    if rng.random() < 0.2:
        both = both.evictor(parts.evictor(rng))
    if rng.random() < 0.3:
        both = both.with_firing_columns()
    outputs = _joined(rng, both) if hasattr(both, "select") else _co_grouped(rng, both)
    drawn = outputs.plan.query
    assert isinstance(drawn, WindowQuery)
    return replace(drawn, assigner=assigner, trigger=trigger)


def _joined(rng: Random, both: Any) -> gw.typing.Outputs:
    both = both.null_safe() if rng.random() < 0.3 else both
    outputs: gw.typing.Outputs = both.with_outputs().select(["i", "text"], ["i"], **_choice(rng))
    return outputs


def _co_grouped(rng: Random, both: Any) -> gw.typing.Outputs:
    outputs: gw.typing.Outputs
    match rng.randrange(3):
        case 0:
            outputs = both.with_outputs().collect_lists(["i", "text"], ["i"])
        case 1:
            outputs = both.with_outputs().process(
                users.LastOfEach(), ["i"], ["i"], output=users.LastOfEach.output
            )
        case _:
            sums = {"sums": Aggregate("sum", "i"), "n": Aggregate("count")}
            outputs = both.with_outputs().aggregate(
                left=sums, right={"most": Aggregate("max", "f")}
            )
    return outputs
