"""Rules against the definition of windows, tick by tick."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.rules import LONG_MAX, LONG_MIN, Grid
from gpu_windows.rules.lateness import status_of
from gpu_windows.rules.partials import moments
from gpu_windows.rules.slicing import last_window_before, window_start
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

ticks = st.integers(-200, 200)


@st.composite
def sliding(draw: st.DrawFn) -> SlidingEventTimeWindows:
    size, slide = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    return SlidingEventTimeWindows(size, slide, draw(st.integers(1 - slide, slide - 1)))


def flink_windows(ts: int, size: int, slide: int, offset: int) -> list[tuple[int, int]]:
    """Flink's SlidingEventTimeWindows.assignWindows, with a floor modulo."""
    last = ts - (ts - offset) % slide
    return [(start, start + size) for start in range(last, ts - size, -slide)]


@given(sliding(), ticks)
def test_sliding_windows_are_those_of_flink(assigner: SlidingEventTimeWindows, ts: int) -> None:
    expected = flink_windows(ts, assigner.size, assigner.slide, assigner.offset)
    assert assigner.assign(ts) == expected


@given(st.integers(1, 50), ticks, st.data())
def test_tumbling_windows_hold_their_row(size: int, ts: int, data: st.DataObject) -> None:
    offset = data.draw(st.integers(1 - size, size - 1))
    (window,) = TumblingEventTimeWindows(size, offset).assign(ts)
    assert window.start <= ts < window.end
    assert window.end - window.start == size
    assert (window.start - offset) % size == 0
    assert window_start(ts, size, offset) == window.start


def test_cumulative_windows_grow_by_a_step() -> None:
    #        0    3    6    9
    # [0,3)  |----|
    # [0,6)  |---------|
    # [0,9)  |--------------|
    assigner = CumulativeEventTimeWindows(9, 3)
    assert assigner.assign(4) == [(0, 9), (0, 6)]
    assert assigner.assign(-1) == [(-9, 0)]


@given(sliding(), ticks)
def test_a_slice_is_what_shares_its_windows(assigner: SlidingEventTimeWindows, ts: int) -> None:
    grid = assigner.grid()
    index = rules.slice_of(ts, grid)
    start, end = rules.slice_start(index, grid), rules.slice_start(index + 1, grid)
    assert start <= ts < end
    assert all(assigner.assign(t) == assigner.assign(ts) for t in range(start, end))
    assert bool(rules.is_gap(index, grid)) == (assigner.assign(ts) == [])


@given(sliding(), ticks)
def test_windows_of_a_slice_span_it(assigner: SlidingEventTimeWindows, ts: int) -> None:
    grid = assigner.grid()
    index = rules.slice_of(ts, grid)
    for number in range(rules.first_window(index, grid), rules.last_window(index, grid) + 1):
        first = rules.first_slice(number, grid)
        assert first <= index < first + grid.span
        assert rules.slice_start(first, grid) == rules.start_of(number, grid)
        assert rules.slice_start(first + grid.span, grid) == rules.end_of(number, grid)
        assert rules.last_slice(number, grid) == first + grid.span - 1


@given(ticks, st.integers(1, 20))
def test_a_cumulative_window_ends_with_its_last_slice(number: int, step: int) -> None:
    grid = rules.cumulative_grid(5 * step, step, 3)
    last = rules.last_slice(number, grid)
    assert rules.slice_start(last + 1, grid) == rules.end_of(number, grid)


@given(sliding(), ticks)
def test_last_window_before_ends_before_the_slice(
    assigner: SlidingEventTimeWindows, ts: int
) -> None:
    grid = assigner.grid()
    index = rules.slice_of(ts, grid)
    number = last_window_before(index, grid)
    assert rules.first_slice(number, grid) + grid.span <= index
    assert rules.first_slice(number + 1, grid) + grid.span > index


@given(sliding(), ticks)
def test_last_window_fired_is_the_last_one_complete(
    assigner: SlidingEventTimeWindows, watermark: int
) -> None:
    grid = assigner.grid()
    number = rules.last_window_fired(watermark, grid)
    assert rules.end_of(number, grid) - 1 <= watermark < rules.end_of(number + 1, grid) - 1


def test_never_more_than_two_slices_a_slide() -> None:
    grid = rules.sliding_grid(3_600_000_000, 420_000_001, 0)  # gcd 1: 3.6e9 slices a window
    assert grid.per_slide == 2
    assert grid.span == 17


@pytest.mark.parametrize(
    ("max_timestamp", "lateness", "expected"),
    [(9, 0, 9), (9, 5, 14), (9, LONG_MAX, LONG_MAX), (LONG_MAX, 1, LONG_MAX), (-5, 0, -5)],
)
def test_cleanup_time_does_not_overflow(max_timestamp: int, lateness: int, expected: int) -> None:
    assert rules.cleanup_time(max_timestamp, lateness) == expected


def test_lateness_of_a_window_is_to_the_tick() -> None:
    # [0, 10000) with lateness 5000: accepted at 14998, late at 14999
    assert not rules.is_late(9_999, 5_000, 14_998)
    assert rules.is_late(9_999, 5_000, 14_999)


def test_a_row_in_a_gap_is_late_by_its_own_time() -> None:
    grid = SlidingEventTimeWindows(3, 7).grid()  # [0,3) gap [3,7)
    kept = [rules.first_tick_on_time(0, watermark, grid) for watermark in (4, 5)]
    status = [status_of(5, rules.slice_of(5, grid), tick, grid) for tick in kept]
    assert status == [rules.GAP, rules.LATE]


@given(sliding())
def test_windows_of_usable_timestamps_fit_int64(assigner: SlidingEventTimeWindows) -> None:
    grid = assigner.grid()
    for ts in (rules.earliest_unit(grid), rules.latest_unit(grid)):
        bounds = [edge for window in assigner.assign(ts) for edge in window]
        assert all(LONG_MIN <= edge <= LONG_MAX for edge in bounds)


def test_moments_are_those_of_the_whole() -> None:
    left, right = (3, 2.0, 2.0), (2, 6.0, 8.0)  # 1 2 3 and 4 8
    n, mean, m2 = moments(*left, *right)
    assert n == 5
    assert mean == pytest.approx(3.6)
    assert m2 == pytest.approx(sum((x - 3.6) ** 2 for x in (1, 2, 3, 4, 8)))
    assert moments(0, 0.0, 0.0, *right) == right
    assert moments(*left, 0, 0.0, 0.0) == left


def test_grid_is_seven_integers() -> None:
    assert all(isinstance(value, int) for value in Grid(1, 2, 3, 4, 5, 6, 7))
