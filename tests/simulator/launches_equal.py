"""A launch with arguments of other types than declared is refused, as a device would."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.kernels.cuda import scan, windows
from gpu_windows.kernels.cuda.scan import Lane
from tests.simulator.launches import WrongArgumentError

INTS, FLOATS = Lane(np.zeros(3, np.int64)), Lane(np.zeros(3))
EDGES = np.zeros(3, np.int32)
HOW = rules.ADD, scan.BEFORE


def test_arrays_of_the_declared_types_pass() -> None:
    scan.FOLD._put_together(1, *HOW, EDGES, INTS, INTS, INTS)
    scan.FOLD._put_together(1, *HOW, EDGES, FLOATS, FLOATS, FLOATS)


@pytest.mark.parametrize(
    "arguments",
    [
        (*HOW, EDGES, INTS, INTS, FLOATS),
        (*HOW, EDGES.astype(np.int64), INTS, INTS, INTS),
        (*HOW, EDGES, Lane(INTS.values[::2]), INTS, INTS),
        (1.5, scan.BEFORE, EDGES, INTS, INTS, INTS),
        (*HOW, EDGES, INTS, INTS),
    ],
    ids=["lane", "dtype", "strides", "scalar", "number"],
)
def test_others_do_not(arguments: tuple[object, ...]) -> None:
    with pytest.raises(WrongArgumentError, match=r"scan\.fold_together takes"):
        scan.FOLD._put_together(1, *arguments)


def test_a_named_tuple_is_checked_field_by_field() -> None:
    grid = rules.sliding_grid(2, 1, 0)
    numbers, *bounds = np.zeros((3, 3), np.int64)
    windows._bounds(3, numbers, grid, *bounds)
    wrong = rules.Grid._make(map(float, grid))
    with pytest.raises(WrongArgumentError, match=r"windows\.bounds takes"):
        windows._bounds(3, numbers, wrong, *bounds)
