"""Given keys are sent to shards of a stream until their state has them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.tasks.given_keys import (
    given_keys,
    plan_of_micro_batch,
    plan_of_shard,
    plan_of_tasks,
)

_START = datetime(2024, 1, 1, tzinfo=UTC)


def _plan(keys: int) -> Plan:
    table = pa.table({"k": ["a"], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    rows = gw.stream(table).event_time("ts", watermarks).key_by("k")
    windows = rows.window_gapfill(
        gw.TumblingEventTimeWindows.of("1 minute"),
        keys=[f"key {at}" for at in range(keys)],
        start=_START,
        end=_START + timedelta(minutes=1),
    )
    made = windows.options(shards=2).with_outputs().aggregate(n=gw.count())
    return made.plan


def _count(plan: Plan) -> int:
    keys = given_keys(plan)
    assert keys is not None
    return len(keys)


@pytest.mark.parametrize(
    ("newest", "sent"),
    [
        ((), 1000),
        ((None, None), 1000),
        (("a", None), 1000),
        (("a", "b", "c"), 1000),
        (("a", "b"), 0),
    ],
)
def test_keys_are_sent_until_each_shard_has_state(
    newest: tuple[str | None, ...], sent: int
) -> None:
    plan = plan_of_micro_batch(_plan(1000), newest)
    assert _count(plan) == sent
    assert sum(_count(plan_of_shard(plan, shard)) for shard in range(2)) == sent


def test_tasks_without_keys_are_sent_none() -> None:
    few, many = (len(pickle.dumps(plan_of_tasks(_plan(keys)))) for keys in (1, 10_000))
    assert many == pytest.approx(few, abs=100)
