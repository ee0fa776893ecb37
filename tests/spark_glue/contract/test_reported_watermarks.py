"""How far inputs are: every shard hears the same, whoever has rows, and waits for the same time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from gpu_windows import errors
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.contract.progress import (
    follows_clock,
    from_json,
    next_call_ms,
    read_combined_watermark,
    to_json,
)
from gpu_windows.spark_glue.contract.reported_watermarks import (
    ReportedWatermarks,
    holds_watermarks,
)
from gpu_windows.spark_glue.contract.watermarks import CARRIED_WATERMARK, INPUT, IS_MARKER
from gpu_windows.spark_glue.tasks.packing import to_ipc
from gpu_windows.vocabulary.watermarks import (
    ClockWatermarks,
    CombinedWatermark,
    InputProgress,
    UnionWatermarks,
    WatermarkStrategy,
)
from tests.operators.state.counting import state_of
from tests.spark_glue.shards import Row, Shards, windows_of_ten

STRICT = WatermarkStrategy()
#: 60 ms without rows.
IDLE = WatermarkStrategy(idleness=60_000)
CLOSING = replace(IDLE, closes=True)


def two(*parts: WatermarkStrategy) -> UnionWatermarks:
    return UnionWatermarks(parts=parts)


# ---- messages


def test_a_message_is_told_from_rows() -> None:
    reported = ReportedWatermarks()
    for number, watermark in ((0, 5), (3, LONG_MAX), (0, 7), (0, 6), (1, LONG_MIN)):
        reported.add(number, watermark)
    other = ReportedWatermarks({0: 2, 2: 4})
    other.add_bytes(reported.as_bytes)
    assert other.watermarks == {0: 7, 1: LONG_MIN, 2: 4, 3: LONG_MAX}
    assert holds_watermarks(reported.as_bytes)
    assert holds_watermarks(pa.py_buffer(reported.as_bytes))
    assert len(reported.as_bytes) == 4 + 3 * 12
    assert not holds_watermarks(to_ipc(windows_of_ten(STRICT).schema.empty_table()))


def test_a_combined_watermark_comes_back_from_a_commit() -> None:
    made = windows_of_ten(two(STRICT, IDLE))
    combined = read_combined_watermark(made, {})
    assert combined == CombinedWatermark((InputProgress(), InputProgress()))
    for now, watermarks in enumerate(({}, {0: 7}, {1: -5}, {0: 9}, {0: LONG_MAX})):
        combined = combined.advance(70 * now, watermarks, made.watermarks.timeouts)
        assert from_json(json.loads(json.dumps(to_json(combined)))) == combined
        assert read_combined_watermark(made, to_json(combined)) == combined


def test_markers_report_and_are_no_rows() -> None:
    """The greatest watermark of an input counts; one that is null is none."""
    carried = WatermarkStrategy(column="ts")
    made = replace(windows_of_ten(STRICT), watermarks=two(carried, carried, carried))
    columns = {
        "ts": [1, None, 3, None, 5],
        "i": [1, None, 3, None, 5],
        INPUT: [0, 0, 0, 1, 2],
        CARRIED_WATERMARK: [7, 9, 8, LONG_MIN, None],
        IS_MARKER: [False, True, False, True, False],
    }
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    reported = ReportedWatermarks()
    (rows,) = reported.collect(made, [table])
    assert rows.to_pydict() == {"ts": [1, 3, 5], "i": [1, 3, 5]}
    assert reported.watermarks == {0: 9, 1: LONG_MIN}


# ---- shards


def test_each_shard_hears_of_rows_that_it_does_not_have() -> None:
    shards = Shards(windows_of_ten(STRICT))
    assert shards.micro_batch(1, [("a", 5_000, 1, 0)]) == ([], [])
    assert shards.watermark == 4_999
    tasks: list[list[Row]] = [[("b", 25_000, 2, 0)], [("b", 3_000, 3, 0)]]
    assert shards.micro_batch(2, *tasks) == ([("a", 0, 1), ("b", 0, 3)], [])
    assert shards.watermark == 24_999
    results, late = shards.micro_batch(3, [("a", 6_000, 4, 0), ("c", 30_000, 5, 0)])
    assert results == [("b", 20_000, 2)]
    assert late == [("a", 6_000, "late")]
    assert shards.next_call_ms is None
    assert not follows_clock(shards.plan.query)


def test_rows_that_are_rejected_move_nothing() -> None:
    shards = Shards(windows_of_ten(IDLE))
    rejected = ("a", LONG_MAX - 1, "out_of_range_timestamp")
    found = shards.micro_batch(1, [("a", 5_000, 1, 0), ("a", LONG_MAX - 1, 2, 0)])
    assert found == ([], [rejected])
    assert shards.watermark == 4_999
    assert shards.micro_batch(2, [("a", LONG_MAX - 1, 2, 0)]) == ([], [rejected])
    assert shards.watermark == 4_999
    assert shards.combined.inputs[0].inactive_since == 2


def test_an_idle_input_does_not_hold_the_others() -> None:
    shards = Shards(windows_of_ten(two(STRICT, IDLE)))
    shards.micro_batch(0, [("a", 5_000, 1, 0), ("b", 3_000, 2, 1)])
    assert shards.watermark == 2_999
    shards.micro_batch(1, [("a", 15_000, 4, 0)])
    assert shards.next_call_ms == 62
    assert shards.micro_batch(61, [("a", 16_000, 8, 0)]) == ([], [])
    assert shards.watermark == 2_999
    assert shards.micro_batch(62) == ([("a", 0, 1), ("b", 0, 2)], [])
    assert shards.watermark == 15_999
    results, late = shards.micro_batch(63, [("b", 4_000, 16, 1), ("b", 12_000, 32, 1)])
    assert (results, late) == ([], [("b", 4_000, "late")])  # it woke up behind
    assert shards.watermark == 15_999
    results, late = shards.micro_batch(64, [("b", 20_000, 64, 1), ("a", 50_000, 128, 0)])
    assert (results, late) == ([("a", 10_000, 12), ("b", 10_000, 32)], [])
    assert shards.watermark == 19_999  # it has caught up, so it holds again


def test_without_input_windows_wait() -> None:
    """All is idle, the watermark is the greatest; then no micro-batch comes any more."""
    shards = Shards(windows_of_ten(two(IDLE, IDLE)))
    shards.micro_batch(0, [("a", 5_000, 1, 0), ("b", 23_000, 2, 1)])
    results, called = [], []
    for now in range(1, 200):
        found, late = shards.micro_batch(now)
        results += found
        called += [now] if shards.called else []
        assert not late
    assert results == [("a", 0, 1)]
    assert called == [1, 62]
    assert (shards.next_call_ms, shards.watermark) == (None, 22_999)


def test_windows_close_by_the_clock() -> None:
    shards = Shards(windows_of_ten(CLOSING))
    found = shards.micro_batch(0, [("a", 5_000, 1, 0), ("b", 23_000, 2, 0)])
    assert found == ([("a", 0, 1)], [])
    fired: dict[int, list[Any]] = {}
    called = []
    for now in range(1, 120):
        results, _ = shards.micro_batch(now)
        fired |= {now: results} if results else {}
        called += [now] if shards.called else []
    # Idle at 62 with the watermark 22.999 ms: 7 ms later it is the end of the second window.
    assert fired == {69: [("b", 20_000, 2)]}
    assert called == [1, 62, 69]
    assert shards.next_call_ms is None
    assert shards.watermark == 22_999
    _, late = shards.micro_batch(200, [("b", 24_000, 4, 0), ("a", 31_000, 8, 0)])
    assert late == [("b", 24_000, "late")]  # for its window that has closed
    assert shards.watermark == 30_999


def test_rows_that_come_after_windows_have_closed_stay_late() -> None:
    """The watermark that the inputs allow is behind that by the clock then."""
    shards = Shards(windows_of_ten(CLOSING))
    shards.micro_batch(0, [("b", 23_000, 2, 0)])
    for now in range(1, 120):
        shards.micro_batch(now)
    for now in (200, 201, 202):
        results, late = shards.micro_batch(now, [("b", 25_000 + now, 4, 0), ("a", 25_000, 8, 0)])
        assert (results, late) == ([], [("a", 25_000, "late"), ("b", 25_000 + now, "late")])
        assert shards.watermark == 25_000 + now - 1


@pytest.mark.parametrize(("watermarks", "last"), [(IDLE, None), (CLOSING, 71)])
def test_a_timer_in_the_past_waits_for_the_next_watermark(
    watermarks: WatermarkStrategy, last: int | None
) -> None:
    """It keeps nobody busy where the watermark stays; else it is due as soon as that moves."""
    made, calls = windows_of_ten(watermarks), []
    combined = read_combined_watermark(made, {})
    for now in (0, 1, 70):
        combined = combined.advance(now, {} if now else {0: 10}, made.watermarks.timeouts)
        calls.append(next_call_ms(made, combined, [(None, None), (5, None)], now))
    assert calls == [1, 62, last]  # at 62 it may be found idle


def test_a_pause_of_the_query_closes_nothing_that_waits_to_be_read() -> None:
    shards = Shards(windows_of_ten(CLOSING))
    shards.micro_batch(0, [("b", 23_000, 2, 0)])
    for now in range(1, 65):
        shards.micro_batch(now)
    results, late = shards.micro_batch(100_000, [("b", 24_000, 4, 0)])
    assert (results, late) == ([], [])
    assert shards.micro_batch(100_001, [("b", 30_000, 8, 0)])[0] == [("b", 20_000, 6)]


@pytest.mark.parametrize("died", [0, 1, 62, 63, 69])
def test_a_micro_batch_that_runs_again_gives_the_same(died: int) -> None:
    batches: dict[int, list[list[Row]]] = {
        0: [[("a", 5_000, 1, 0), ("b", 3_000, 2, 1)]],
        1: [[("a", 15_000, 4, 0)], [("a", 12_000, 4, 0)]],
        63: [[("b", 4_000, 16, 1), ("b", 12_000, 32, 1)]],
    }
    shards = Shards(windows_of_ten(two(CLOSING, CLOSING)))
    for now in range(160):
        tasks = batches.get(now, [])
        first = shards.copy()
        wanted = first.micro_batch(now, *tasks) if now == died else None
        found = shards.micro_batch(now, *tasks)
        if wanted is not None:
            assert found == wanted
            assert [*map(state_of, shards.logs)] == [*map(state_of, first.logs)]
            assert (shards.combined, shards.next_call_ms) == (first.combined, first.next_call_ms)


def test_a_generator_of_ones_own() -> None:
    def median(timestamps: np.ndarray) -> int:
        return int(np.median(timestamps))

    shards = Shards(windows_of_ten(WatermarkStrategy(generator=median)))
    shards.micro_batch(0, [("a", 5, 1, 0), ("a", 7, 1, 0), ("a", 900, 1, 0)], [("b", 6, 1, 0)])
    assert shards.watermark == 7
    shards.micro_batch(1, [("a", 2, 1, 0)])
    assert shards.watermark == 7


def test_ingestion_time_follows_the_clock() -> None:
    made = windows_of_ten(ClockWatermarks())
    shards = Shards(made)
    assert shards.micro_batch(3, [("a", 3_000, 1, 0)]) == ([], [])
    assert shards.reached == 2_999
    assert shards.next_call_ms == 10
    assert shards.micro_batch(10) == ([("a", 0, 1)], [])
    assert shards.next_call_ms is None


# ---- another start


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(IDLE, out_of_orderness=1), "watermarks.out_of_orderness was not there, is 1"),
        (two(IDLE, STRICT), "watermarks was WatermarkStrategy"),
        (STRICT, "acts by the clock was True, is not there"),
    ],
)
def test_what_needs_another_checkpoint(other: WatermarkStrategy, said: str) -> None:
    before, after = (Manifest.of(Shards(windows_of_ten(each)).plan) for each in (IDLE, other))
    with pytest.raises(errors.StateMismatchError, match=said):
        after.resume(before, {})


def test_idleness_may_change_from_one_start_to_the_next() -> None:
    shards = Shards(windows_of_ten(replace(IDLE, idleness=1_000_000)))
    shards.micro_batch(0, [("a", 5_000, 1, 0)])
    shards.micro_batch(1)
    changed = Shards(windows_of_ten(CLOSING))
    left = Manifest.of(shards.plan)
    assert Manifest.of(changed.plan).resume(left, {}) == left
    changed.logs, changed.combined = shards.logs, shards.combined
    changed.next_call_ms = shards.next_call_ms
    assert changed.micro_batch(1_002) == ([], [])  # idle already, by the new time
    assert changed.next_call_ms == 1_007
    assert changed.micro_batch(1_007)[0] == [("a", 0, 1)]
