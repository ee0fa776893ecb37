"""Windows of many slices, and rows and watermarks for them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    SlicedAssigner,
    SlidingEventTimeWindows,
)
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.put_away import Step
from tests.planning.queries import tables


@st.composite
def many_slices(draw: st.DrawFn) -> SlicedAssigner:
    """Windows of so many slices that buckets have several."""
    slide, slides = draw(st.integers(1, 3)), draw(st.integers(16, 60))
    if draw(st.booleans()):
        return CumulativeEventTimeWindows(slide * slides, slide, draw(st.integers(1 - slide, 0)))
    size = slide * slides + draw(st.integers(0, slide - 1))
    return SlidingEventTimeWindows(size, slide, draw(st.integers(1 - slide, 0)))


@st.composite
def inputs(draw: st.DrawFn, *, exact: bool = True) -> list[Step]:
    """Rows in batches, watermarks between them, the end of the input."""
    table = with_arrival(draw(tables(exact=exact)))
    cuts = sorted(draw(st.lists(st.integers(0, len(table)), max_size=6)))
    steps: list[Step] = []
    for begin, end in pairwise([0, *cuts, len(table)]):
        steps += [table.slice(begin, end - begin), draw(st.integers(-80, 80))]
    return [*steps, LONG_MAX]
