"""The first rows of groups, however far apart the numbers of groups are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_windows.operators.columns.top_n import first_rows
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.examples import examples

numbers = st.sampled_from([LONG_MIN, -(2**40), -1, 0, 1, 2**17, 2**40, LONG_MAX])
rows = st.lists(st.tuples(numbers, numbers, st.integers(-2, 2), st.integers(0, 1)), max_size=30)


@examples(100)
@given(rows, st.integers(1, 3), st.booleans())
@example([(0, 0, 1, 1), (255, 255, 1, 0), (0, 0, 2, 0)], 1, True)
@example([(0, 0, 1, 1), (0, 65_536, 1, 0), (0, 0, 2, 0)], 1, False)
def test_first_rows(rows: list[tuple[int, int, int, int]], count: int, down: bool) -> None:
    first, second, value, other = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    by = [(pa.chunked_array([value]), down), (pa.chunked_array([other]), not down)]
    found, numbers = first_rows(count, by, first, second)
    groups: dict[tuple[int, int], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row[:2], []).append(place)
    wanted = []
    for group in sorted(groups):

        def order(place: int) -> tuple[int, int]:
            _, _, mine, its = rows[place]
            return (-mine, its) if down else (mine, -its)

        wanted += [*enumerate(sorted(groups[group], key=order)[:count], 1)]
    assert [*zip(numbers.tolist(), found.tolist(), strict=True)] == wanted
