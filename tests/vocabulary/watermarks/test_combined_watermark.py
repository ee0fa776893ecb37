"""Flink's StatusWatermarkValveTest and WatermarksWithIdlenessTest, and what micro-batches add."""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.watermarks import CombinedWatermark, InputProgress, UnionWatermarks
from gpu_windows.vocabulary.watermarks.combined_watermark import combine_watermarks

STRICT = gw.WatermarkStrategy.for_monotonous_timestamps()


class Inputs:
    """Inputs that report watermarks and become idle, one at a time; calls return changes."""

    def __init__(self, count: int) -> None:
        self.inputs = [InputProgress()] * count
        self.watermark = LONG_MIN

    def report(self, number: int, watermark: int) -> list[int]:
        return self._set(number, self.inputs[number].report(watermark))

    def idle(self, number: int) -> list[int]:
        return self._set(number, replace(self.inputs[number], is_idle=True))

    def active(self, number: int) -> list[int]:
        return self._set(number, replace(self.inputs[number], is_idle=False))

    def _set(self, number: int, progress: InputProgress) -> list[int]:
        self.inputs[number] = progress
        before, self.watermark = self.watermark, combine_watermarks(self.watermark, self.inputs)
        return [] if self.watermark == before else [self.watermark]


# ---- StatusWatermarkValveTest


def test_one_input() -> None:
    inputs = Inputs(1)
    assert inputs.report(0, 0) == [0]
    assert inputs.report(0, 25) == [25]
    assert inputs.report(0, 18) == []
    assert inputs.report(0, 42) == [42]
    assert inputs.idle(0) == inputs.idle(0) == inputs.active(0) == []
    assert inputs.inputs[0].watermark == 42
    assert inputs.report(0, 50) == [50]


def test_a_watermark_only_when_all_have_one() -> None:
    inputs = Inputs(3)
    assert inputs.report(0, 0) == inputs.report(1, 0) == []
    assert inputs.report(2, 0) == [0]


def test_increasing_watermarks_of_several() -> None:
    inputs = Inputs(3)
    assert [inputs.report(number, 0) for number in range(3)] == [[], [], [0]]
    assert inputs.report(0, 12) == inputs.report(2, 8) == inputs.report(2, 10) == []
    assert inputs.report(1, 15) == [10]
    assert inputs.report(2, 17) == [12]
    assert inputs.report(0, 20) == [15]


def test_decreasing_watermarks_of_several() -> None:
    inputs = Inputs(3)
    assert inputs.report(0, 25) == inputs.report(1, 10) == []
    assert inputs.report(2, 17) == [10]
    assert inputs.report(0, 12) == inputs.report(1, 8) == inputs.report(2, 15) == []


def test_some_are_idle() -> None:
    inputs = Inputs(3)
    assert inputs.report(0, 15) == inputs.report(1, 10) == []
    assert inputs.idle(2) == [10]
    assert inputs.report(1, 18) == [15]
    assert inputs.report(0, 20) == [18]


def test_one_after_the_other_becomes_idle() -> None:
    inputs = Inputs(3)
    assert inputs.report(0, 25) == inputs.report(1, 10) == []
    assert inputs.report(2, 17) == [10]
    assert inputs.idle(1) == [17]
    assert inputs.idle(2) == [25]


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_the_greatest_once_all_are_idle_in_any_order(order: tuple[int, ...]) -> None:
    inputs = Inputs(3)
    assert [inputs.report(n, w) for n, w in enumerate((10, 5, 3))] == [[], [], [3]]
    found = [watermark for number in order for watermark in inputs.idle(number)]
    assert found[-1] == 10
    assert order != (0, 1, 2) or found == [10]


def test_the_greatest_though_the_last_is_behind() -> None:
    inputs = Inputs(3)
    assert [inputs.report(n, w) for n, w in enumerate((100, 50, 70))] == [[], [], [50]]
    assert inputs.idle(1) == [70]
    assert inputs.active(1) == inputs.report(1, 60) == []
    assert inputs.idle(0) == inputs.idle(2) == []
    assert inputs.idle(1) == [100]


def test_one_that_wakes_up_behind_catches_up_first() -> None:
    inputs = Inputs(3)
    assert [inputs.report(n, w) for n, w in enumerate((10, 7, 3))] == [[], [], [3]]
    assert inputs.idle(2) == [7]
    assert inputs.active(2) == inputs.report(2, 5) == []
    assert inputs.inputs[2].watermark == 5
    assert inputs.report(2, 9) == []
    assert inputs.report(1, 12) == [9]


def test_nothing_while_all_that_are_active_are_behind() -> None:
    inputs = Inputs(3)
    assert inputs.report(0, 10) == inputs.report(1, 7) == []
    assert inputs.idle(2) == [7]
    assert inputs.active(2) == inputs.idle(0) == inputs.idle(1) == []
    assert inputs.active(0) == [10]  # the only one that counts now
    assert inputs.idle(2) == []


def test_one_that_is_behind_becomes_idle() -> None:
    inputs = Inputs(2)
    assert [inputs.report(n, w) for n, w in enumerate((7, 10))] == [[], [7]]
    assert inputs.idle(0) == [10]
    assert inputs.active(0) == inputs.report(0, 9) == inputs.idle(0) == []


def test_one_that_wakes_up_ahead_counts_at_once() -> None:
    inputs = Inputs(3)
    assert [inputs.report(n, w) for n, w in enumerate((10, 20, 30))] == [[], [], [10]]
    assert inputs.idle(2) == []
    assert inputs.idle(0) == [20]
    assert inputs.active(0) == inputs.idle(1) == []
    assert inputs.active(2) == [30]
    assert inputs.idle(0) == inputs.idle(2) == []


# ---- WatermarksWithIdlenessTest


@pytest.mark.parametrize("timeout", ["0 s", "-1 ms", "999 us"])
def test_a_timeout_is_positive(timeout: str) -> None:
    with pytest.raises(errors.InvalidDurationError, match="after a millisecond or longer"):
        STRICT.with_idleness(timeout)


def test_first_it_is_active() -> None:
    assert not InputProgress().stay_inactive(1_000, 10).is_idle


def test_idle_without_rows() -> None:
    progress = InputProgress().stay_inactive(0, 10)
    assert not progress.stay_inactive(10, 10).is_idle
    assert progress.stay_inactive(11, 10).is_idle
    assert progress.stay_inactive(11, 10).stay_inactive(111, 10).is_idle
    assert not progress.stay_inactive(11, None).is_idle


def test_idle_active_idle() -> None:
    idle = InputProgress().stay_inactive(0, 122).stay_inactive(123, 122)
    active = idle.report(7)
    assert (idle.is_idle, active.is_idle) == (True, False)
    again = active.stay_inactive(200, 122)
    assert not again.is_idle
    assert again.stay_inactive(323, 122).is_idle


# ---- micro-batches

A_MINUTE = (60_000,) * 3


def test_long_micro_batches_do_not_make_an_input_idle() -> None:
    """It had rows in each; only silence between two looks counts."""
    combined = CombinedWatermark((InputProgress(),) * 3)
    for now in range(0, 10 * 300_000, 300_000):
        combined = combined.advance(now, {0: now, 1: now, 2: now}, A_MINUTE)
        assert combined.watermark == now
        assert not any(each.is_idle for each in combined.inputs)


def test_a_pause_of_the_query_does_not_make_an_input_idle() -> None:
    combined = CombinedWatermark((InputProgress(),) * 3).advance(0, {0: 5, 1: 7, 2: 9}, A_MINUTE)
    combined = combined.advance(3_600_000, {1: 20}, A_MINUTE)
    assert (combined.watermark, combined.idle_since) == (5, None)
    assert combined.advance(3_600_001, {0: 6}, A_MINUTE).watermark == 6


def test_three_inputs_of_which_one_is_idle() -> None:
    """Scenario of a union: 15, 10, idle; then 18, 20; the third wakes up behind."""
    combined = CombinedWatermark((InputProgress(),) * 3).advance(0, {0: 15, 1: 10}, A_MINUTE)
    assert (combined.watermark, combined.holder) == (LONG_MIN, 2)
    assert combined.next_check(0, A_MINUTE) == 1
    combined = combined.advance(60_001, {0: 15, 1: 10}, A_MINUTE)
    assert (combined.watermark, combined.holder, combined.moved_at) == (10, 1, 60_001)
    combined = combined.advance(60_002, {1: 18}, A_MINUTE)
    assert (combined.watermark, combined.holder) == (15, 0)
    combined = combined.advance(60_003, {0: 20}, A_MINUTE)
    assert (combined.watermark, combined.holder) == (18, 1)
    combined = combined.advance(60_004, {2: 5}, A_MINUTE)
    assert (combined.watermark, combined.holder, combined.moved_at) == (18, 1, 60_003)
    combined = combined.advance(60_005, {2: 19, 1: 30}, A_MINUTE)
    assert (combined.watermark, combined.holder) == (19, 2)


def test_all_are_idle() -> None:
    combined = CombinedWatermark((InputProgress(),) * 3).advance(0, {0: 15, 1: 10, 2: 7}, A_MINUTE)
    combined = combined.advance(1, {}, A_MINUTE)
    assert combined.next_check(1, A_MINUTE) == 60_002
    assert combined.advance(60_001, {}, A_MINUTE).watermark == 7
    combined = combined.advance(60_002, {}, A_MINUTE)
    assert (combined.watermark, combined.holder, combined.idle_since) == (15, None, 60_002)
    assert combined.next_check(60_002, A_MINUTE) is None
    assert combined.advance(70_000, {}, A_MINUTE).idle_since == 60_002
    assert combined.advance(70_000, {0: 3}, A_MINUTE).idle_since is None


def test_without_a_timeout_nobody_looks_again() -> None:
    combined = CombinedWatermark((InputProgress(),) * 3).advance(0, {0: 5}, (None,) * 3)
    assert combined.next_check(0, (None,) * 3) is None


@given(st.lists(st.tuples(st.integers(1, 40), st.dictionaries(
    st.integers(0, 2), st.integers(0, 1_000), max_size=3)), max_size=30))  # fmt: skip
def test_it_never_goes_back_and_looks_are_enough(
    batches: list[tuple[int, dict[int, int]]],
) -> None:
    """A query that runs in all micro-batches has the watermark of one that asks when to run."""
    timeouts = (20, 50, None)
    often = seldom = CombinedWatermark((InputProgress(),) * 3)
    now, look = 0, None
    reported = dropwhile(lambda batch: not batch[1], batches)  # before, nothing waits for the clock
    for wait, reports in reported:
        now += wait
        before = often
        often = often.advance(now, reports, timeouts)
        assert often.watermark >= before.watermark
        assert (often.moved_at == now) == (
            often.watermark != before.watermark or before.moved_at < 0
        )
        if reports or (look is not None and look <= now):
            seldom = seldom.advance(now, reports, timeouts)
            look = seldom.next_check(now, timeouts)
        assert often == seldom


# ---- strategies


def test_what_a_strategy_says() -> None:
    idle = STRICT.with_idleness("1 minute")
    assert idle.describe() == "latest row - 0 s, idle after 1 min without rows"
    closing = idle.close_when_idle()
    assert closing.describe().endswith("idle after 1 min without rows, then by the clock")
    both = UnionWatermarks(parts=(STRICT, UnionWatermarks(parts=(idle, STRICT))))
    reports = "latest row - 0 s"
    wanted = f"the least of 1: {reports}; 2: {reports}, idle after 1 min without rows; 3: {reports}"
    assert both.describe() == wanted
    assert (both.timeouts, len(both.inputs)) == ((None, 60_000, None), 3)
    assert (both.all_close, closing.all_close) == (False, True)


def test_an_input_that_carries_its_watermark_may_stand_beside_one_that_may_be_idle() -> None:
    carried, idle = gw.WatermarkStrategy.for_punctuated("wm"), STRICT.with_idleness("1 minute")
    both = UnionWatermarks(parts=(carried, idle))
    wanted = "1: carried by wm; 2: latest row - 0 s, idle after 1 min without rows"
    assert both.describe() == f"the least of {wanted}"
    assert both.timeouts == (None, 60_000)


def test_what_a_generator_says() -> None:
    def ninth_of_ten(timestamps: np.ndarray) -> int:
        return int(np.quantile(timestamps, 0.9))

    made = gw.WatermarkStrategy.for_generator(ninth_of_ten)
    assert made.watermark_of(np.arange(0, 101)) == 90
    assert made.describe() == "by ninth_of_ten of the timestamps"
    with pytest.raises(errors.QueryError, match="a watermark of 64 bits"):
        gw.WatermarkStrategy.for_generator(lambda _: 1 << 63).watermark_of(np.arange(1))
    bounded = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 s")
    assert bounded.watermark_of(np.array([LONG_MIN, LONG_MAX])) == LONG_MAX - 1_000_001
    assert bounded.watermark_of(np.array([LONG_MIN])) == LONG_MIN


def test_what_is_refused() -> None:
    carried = gw.WatermarkStrategy.for_punctuated("wm")
    with pytest.raises(errors.QueryError, match="follows its rows, got carried by wm"):
        carried.with_idleness("1 s")
    with pytest.raises(errors.QueryError, match="follows its rows, got none"):
        gw.WatermarkStrategy.no_watermarks().with_idleness("1 s")
    with pytest.raises(errors.QueryError, match="call with_idleness first"):
        STRICT.close_when_idle()
    idle = STRICT.with_idleness("1 s")
    with pytest.raises(errors.QueryError, match="either all inputs close_when_idle, or none"):
        UnionWatermarks(parts=(idle, idle.close_when_idle()))
