"""Inputs that we follow ourselves: all shards hear the same, whoever has rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyspark")

from gpu_windows import errors
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.marks import Said, is_mark
from gpu_windows.spark_glue.own_watermark import OwnWatermark, from_table, to_table
from gpu_windows.spark_glue.packing import to_ipc
from gpu_windows.spark_glue.times import Times
from gpu_windows.watermarks import InputProgress, UnionWatermarks, Valve, WatermarkStrategy
from tests.spark_glue.shards import CLOCK, Shards, windows_of_ten

STRICT = WatermarkStrategy()
#: 60 ms without rows.
IDLE = WatermarkStrategy(idleness=60_000)
CLOSING = replace(IDLE, closes=True)


def two(*parts: WatermarkStrategy) -> UnionWatermarks:
    return UnionWatermarks(parts=parts)


# ---- marks


def test_a_mark_is_told_from_rows() -> None:
    said = Said()
    for number, watermark in ((0, 5), (3, LONG_MAX), (0, 7), (0, 6), (1, LONG_MIN)):
        said.watermarks[number] = max(watermark, said.watermarks.get(number, LONG_MIN))
    other = Said()
    other.take(said.mark)
    assert other.watermarks == {0: 7, 3: LONG_MAX, 1: LONG_MIN}
    assert is_mark(said.mark)
    assert len(said.mark) == 4 + 3 * 12
    assert not is_mark(to_ipc(windows_of_ten(STRICT).schema.empty_table()))


def test_a_valve_comes_back_from_a_store() -> None:
    inputs = (InputProgress(7, 1_000, is_idle=True), InputProgress())
    for valve in (Valve(inputs), Valve(inputs, 5, 4, 1_000, 900, 800)):
        assert from_table(to_table(valve)) == valve


# ---- shards


def test_each_shard_hears_of_rows_that_it_does_not_have() -> None:
    shards = Shards(windows_of_ten(IDLE))
    assert shards.plan.query.watermarks.is_own
    assert Times(shards.plan.query).mode == "ProcessingTime"
    assert shards.micro_batch(1, [("a", 5, 1, 0)]) == ([], [])
    assert (shards.called, shards.watermark) == ([0, 1, 2], 4)
    found = shards.micro_batch(2, [("b", 25, 2, 0)], [("b", 3, 3, 0)])
    assert found == ([], [])
    assert shards.watermark == 24
    results, late = shards.micro_batch(3, [("a", 6, 4, 0), ("c", 30, 5, 0)])
    assert results == [("a", 0, 1), ("b", 0, 3)]
    assert late == [("a", 6, "late")]


def test_rows_that_are_rejected_move_nothing() -> None:
    shards = Shards(windows_of_ten(IDLE))
    shards.micro_batch(1, [("a", 5, 1, 0), ("a", LONG_MAX - 1, 2, 0)])
    assert shards.watermark == 4
    results, late = shards.micro_batch(2, [("a", LONG_MAX - 1, 2, 0)])
    assert (results, late) == ([], [("a", LONG_MAX - 1, "out_of_range_timestamp")])
    assert shards.watermark == 4


def test_an_idle_input_does_not_hold_the_others() -> None:
    shards = Shards(windows_of_ten(two(STRICT, IDLE)))
    shards.micro_batch(0, [("a", 5, 1, 0), ("b", 3, 2, 1)])
    assert shards.watermark == 2
    shards.micro_batch(1, [("a", 15, 4, 0)])
    assert shards.timers == [62, 62, 62]
    assert shards.micro_batch(61, [("a", 16, 8, 0)]) == ([], [])
    assert shards.watermark == 2
    shards.micro_batch(62)
    assert (shards.called, shards.watermark) == ([0, 1, 2], 15)
    results, late = shards.micro_batch(63, [("b", 4, 16, 1), ("b", 12, 32, 1)])
    assert results == [("a", 0, 1), ("b", 0, 2)]
    assert late == [("b", 4, "late")]  # it woke up behind
    assert shards.watermark == 15
    shards.micro_batch(64, [("b", 20, 64, 1), ("a", 50, 128, 0)])
    assert shards.watermark == 19  # it has caught up, so it holds again


def test_without_input_windows_wait() -> None:
    """All is idle, the watermark is the greatest; then nobody is called any more."""
    shards = Shards(windows_of_ten(two(IDLE, IDLE)))
    shards.micro_batch(0, [("a", 5, 1, 0), ("b", 23, 2, 1)])
    results = []
    for now in range(1, 200):
        found, late = shards.micro_batch(now)
        results += found
        assert not late
    assert results == [("a", 0, 1)]
    assert (shards.timers, shards.watermark) == ([None] * 3, 22)


def test_windows_close_by_the_clock() -> None:
    shards = Shards(windows_of_ten(CLOSING))
    shards.micro_batch(0, [("a", 5, 1, 0), ("b", 23, 2, 0)])
    assert shards.micro_batch(1)[0] == [("a", 0, 1)]
    found = [(now, *shards.micro_batch(now)) for now in range(2, 120)]
    fired = {now: results for now, results, _ in found if results}
    # Idle at 62 with the watermark 22: it is 29, the end of the second window, 7 ms later.
    assert fired == {69: [("b", 20, 2)]}
    assert shards.timers == [None] * 3
    assert shards.watermark == 22
    _, late = shards.micro_batch(200, [("b", 24, 4, 0), ("a", 31, 8, 0)])
    assert late == [("b", 24, "late")]  # for its window that has closed
    assert shards.watermark == 30


def test_a_timer_in_the_past_waits_for_the_next_watermark() -> None:
    """It keeps nobody busy where the watermark stays."""
    store, calls = MemoryStore(), []
    for now in (0, 1, 70, 71):
        own = OwnWatermark(IDLE, CLOCK, store, now, silent=now > 0)
        own.finish({} if now else {0: 10})
        calls.append(own.next_call(5))
    assert calls == [1, 62, None, None]  # at 62 it may be found idle


def test_a_timer_in_the_past_is_due_as_soon_as_the_clock_moves_the_watermark() -> None:
    store, calls = MemoryStore(), []
    for now in (0, 1, 70):
        own = OwnWatermark(CLOSING, CLOCK, store, now, silent=now > 0)
        own.finish({} if now else {0: 10})
        calls.append(own.next_call(5))
    assert calls == [1, 62, 71]


def test_a_pause_of_the_query_closes_nothing_that_waits_to_be_read() -> None:
    shards = Shards(windows_of_ten(CLOSING))
    shards.micro_batch(0, [("b", 23, 2, 0)])
    for now in range(1, 65):
        shards.micro_batch(now)
    results, late = shards.micro_batch(100_000, [("b", 24, 4, 0)])
    assert (results, late) == ([], [])
    shards.micro_batch(100_001, [("b", 30, 8, 0)])
    assert shards.micro_batch(100_002, [("b", 31, 1, 0)])[0] == [("b", 20, 6)]


@pytest.mark.parametrize("died", [1, 61, 62, 63, 69])
def test_a_micro_batch_that_runs_again_gives_the_same(died: int) -> None:
    batches: dict[int, list[list[tuple[str, int, int, int]]]] = {
        0: [[("a", 5, 1, 0), ("b", 3, 2, 1)]],
        1: [[("a", 15, 4, 0)], [("a", 12, 4, 0)]],
        63: [[("b", 4, 16, 1), ("b", 12, 32, 1)]],
    }
    shards = Shards(windows_of_ten(two(replace(IDLE, closes=True), CLOSING)))
    for now in range(160):
        tasks = batches.get(now, [])
        if now == died:
            first = shards.copy()
            wanted = first.micro_batch(now, *tasks)
            again = shards.micro_batch(now, *tasks)
            assert again == wanted
            assert [s.blobs for s in shards.stores] == [s.blobs for s in first.stores]
        else:
            shards.micro_batch(now, *tasks)
    assert len({valve.watermark for valve in shards.valves}) == 1


def test_a_generator_of_ones_own() -> None:
    def median(timestamps: np.ndarray) -> int:
        return int(np.median(timestamps))

    shards = Shards(windows_of_ten(WatermarkStrategy(generator=median)))
    shards.micro_batch(0, [("a", 5, 1, 0), ("a", 7, 1, 0), ("a", 900, 1, 0)], [("b", 6, 1, 0)])
    assert shards.watermark == 7
    shards.micro_batch(1, [("a", 2, 1, 0)])
    assert shards.watermark == 7


def test_state_without_its_watermark_is_damaged() -> None:
    shards = Shards(windows_of_ten(IDLE))
    shards.micro_batch(0, [("a", 5, 1, 0)])
    del shards.stores[1].blobs["watermarks", 0]
    with pytest.raises(errors.StateCorruptedError, match="watermarks/0"):
        shards.micro_batch(1, [("a", 6, 1, 0)])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            STRICT,
            "own watermark was True, is not there; time mode was ProcessingTime, is EventTime",
        ),
        (replace(IDLE, out_of_orderness=1), "watermarks.out_of_orderness was not there, is 1"),
        (two(IDLE, STRICT), "watermarks was WatermarkStrategy"),
    ],
)
def test_what_needs_another_checkpoint(other: WatermarkStrategy, said: str) -> None:
    shards = Shards(windows_of_ten(IDLE))
    shards.micro_batch(0, [("a", 5, 1, 0)])
    changed = Shards(windows_of_ten(other))
    with pytest.raises(errors.StateMismatchError, match=said):
        Manifest.of(changed.plan).check(shards.stores[0])


def test_idleness_may_change_from_one_start_to_the_next() -> None:
    shards = Shards(windows_of_ten(replace(IDLE, idleness=1_000_000)))
    shards.micro_batch(0, [("a", 5, 1, 0)])
    shards.micro_batch(1)
    changed = Shards(windows_of_ten(CLOSING))
    changed.stores, changed.timers = shards.stores, shards.timers
    assert changed.micro_batch(1_002) == ([], [])  # idle already, by the new time
    assert changed.timers != [None] * 3
    assert changed.micro_batch(1_007)[0] == [("a", 0, 1)]
