"""The tick from which on rows are kept, against Flink's rule for every single row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpu_windows import rules
from gpu_windows.kernels.cpu import rules as compiled
from gpu_windows.rules import LONG_MAX, LONG_MIN, Grid
from gpu_windows.rules.lateness import status_of
from tests.examples import examples


def last_end(ts: int, grid: Grid) -> int | None:
    """Return the end of the last window that holds a tick, or None in a gap."""
    start = ts - (ts - grid.offset) % grid.slide
    if grid.steps > 0:
        whole = grid.steps * grid.slide
        return ts - (ts - grid.offset) % whole + whole
    return start + grid.size if ts < start + grid.size else None


def flink_status(ts: int, lateness: int, watermark: int, grid: Grid) -> int:
    """Flink's WindowOperator: isWindowLate of the last window; without one, isElementLate."""
    end = last_end(ts, grid)
    if end is None:
        return rules.LATE if rules.is_late(ts, lateness, watermark) else rules.GAP
    return rules.LATE if rules.is_late(end - 1, lateness, watermark) else rules.ACCEPTED


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Sliding and cumulative, with and without gaps, of any length."""
    length = st.integers(1, draw(st.sampled_from([12, 2**40, 2**59])))
    slide = draw(length)
    if draw(st.booleans()):
        steps = draw(st.integers(1, 5))
        offset = draw(st.integers(1 - slide * steps, slide * steps - 1))
        return rules.cumulative_grid(slide * steps, slide, offset)
    return rules.sliding_grid(draw(length), slide, draw(st.integers(1 - slide, slide - 1)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Grid, int, int, int]:
    """Return grid, tick, lateness and watermark; often the watermark at which the row gets late."""
    grid = draw(grids())
    low, high = rules.earliest_unit(grid), rules.latest_unit(grid)
    near = 4 * (grid.size + grid.slide)
    ts = draw(st.one_of(st.integers(max(-near, low), min(near, high)), st.integers(low, high)))
    lateness = draw(
        st.one_of(st.just(0), st.integers(0, 30), st.integers(0, LONG_MAX), st.just(LONG_MAX))
    )
    end = last_end(ts, grid)
    over = (ts if end is None else end - 1) + lateness
    watermark = draw(
        st.one_of(
            st.integers(over - 2, over + 2),
            st.integers(over - near, over + near),
            st.integers(LONG_MIN, LONG_MAX),
            st.sampled_from([LONG_MIN, LONG_MAX]),
        )
    )
    return grid, ts, lateness, min(max(watermark, LONG_MIN), LONG_MAX)


@examples(2_000)
@given(cases())
def test_a_row_is_late_before_one_tick(case: tuple[Grid, int, int, int]) -> None:
    grid, ts, lateness, watermark = case
    kept, index = rules.first_tick_on_time(lateness, watermark, grid), rules.slice_of(ts, grid)
    assert LONG_MIN <= kept <= LONG_MAX
    expected = flink_status(ts, lateness, watermark, grid)
    assert status_of(ts, index, kept, grid) == expected
    assert compiled.status_of(ts, index, kept, grid) == expected


def test_late_rows_end_within_a_gap() -> None:
    grid = rules.sliding_grid(3, 7, 0)  # [0, 3), gap, [7, 10)
    kept = [rules.first_tick_on_time(0, watermark, grid) for watermark in range(1, 10)]
    #               the window is over at 2; in the gap a row is over at its own tick
    assert kept == [0, 3, 4, 5, 6, 7, 7, 7, 10]


def test_all_rows_are_late_at_the_end_of_time() -> None:
    grid = rules.sliding_grid(60, 10, 0)
    assert rules.first_tick_on_time(LONG_MAX, LONG_MAX, grid) == LONG_MAX > rules.latest_unit(grid)
    assert rules.first_tick_on_time(0, LONG_MIN, grid) == LONG_MIN
    assert rules.first_tick_on_time(LONG_MAX, LONG_MAX - 1, grid) < 0
