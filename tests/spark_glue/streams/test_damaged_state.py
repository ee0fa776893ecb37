"""State that is damaged, in part missing, or another version's: typed errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.windows import EventTimeSessionWindows, TumblingEventTimeWindows
from tests.operators.joins.interval_joins import in_time
from tests.operators.joins.rows import table
from tests.operators.joins.temporal_join import NOTHING, Case
from tests.operators.state.counting import Counting
from tests.planning.queries import query
from tests.spark_glue.shard import Shard, input_of


def plans() -> dict[str, Plan]:
    """Return a plan of every kind of state."""
    made = {
        "slices": query(TumblingEventTimeWindows(10)),
        "sessions": query(EventTimeSessionWindows(5)),
        "rows": query(TumblingEventTimeWindows(10), evictor=CountEvictor.of(2)),
        "join": in_time(table([]), table([]), (-5, 5), how="full").plan.query,
        "temporal join": Case().outputs(*NOTHING).plan.query,
    }
    made |= {
        f"{name}, reference": replace(each, options=replace(each.options, engine="reference"))
        for name, each in made.items()
        if not name.endswith("join")
    }
    return {
        name: plan(each, bounded=False, spark=each.arrival_order != ())
        for name, each in made.items()
    }


@pytest.mark.parametrize("name", plans())
def test_missing_files_are_typed_errors(name: str) -> None:
    planned = plans()[name]
    by_rows = name.endswith("reference")
    assert (planned.strategy is Strategy.ROW_AT_A_TIME) == by_rows
    whole = Counting()
    for watermark in (None, 2):
        Shard(planned, whole).micro_batch(watermark, input_of(planned))
    whole.reopen()
    files, newest = whole.counting.files, whole.newest
    assert go_on(planned, files, newest) > 0
    for lost in whole.live_files:
        left = {each: data for each, data in files.items() if each != lost}
        with pytest.raises(StateCorruptedError, match=f"must be there, got {lost}"):
            go_on(planned, left, newest)


def go_on(planned: Plan, files: dict[str, bytes], newest: str | None) -> int:
    """Take rows of all keys, then let time end; return how many results that gives."""
    shard = Shard(planned, MemoryLog(MemoryFiles(dict(files)), newest))
    return shard.micro_batch(None, input_of(planned)) + shard.micro_batch(LONG_MAX)


@pytest.mark.parametrize("name", plans())
def test_the_state_of_another_strategy_is_a_typed_error(name: str) -> None:
    made, log = plans(), Counting()
    Shard(made[name], log).micro_batch(None, input_of(made[name]))
    log.reopen()
    before = dict(log.counting.files)
    others = [each for each in made.values() if each.strategy is not made[name].strategy]
    assert len(others) > 4
    for planned in others:
        shard = Shard(planned, MemoryLog(MemoryFiles(dict(before)), log.newest))
        with pytest.raises(StateCorruptedError, match="has the numbers that its operator asks for"):
            shard.micro_batch(LONG_MAX, input_of(planned))
