"""A launch with arguments of other types than declared is refused, as a device would."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.kernels.cuda import scan, windows
from tests.simulator.launches import WrongArgumentError

INTS, FLOATS, EDGES = np.zeros(3, np.int64), np.zeros(3), np.zeros(3, np.int32)
HOW = rules.ADD, scan.BEFORE


def test_arrays_of_the_declared_types_pass() -> None:
    scan._fold_together(1, *HOW, EDGES, INTS, INTS, INTS.copy())
    scan._fold_together(1, *HOW, EDGES, FLOATS, FLOATS, FLOATS.copy())


@pytest.mark.parametrize(
    "arguments",
    [
        (*HOW, EDGES, INTS, INTS, FLOATS),
        (*HOW, EDGES.astype(np.int64), INTS, INTS, INTS),
        (*HOW, EDGES, INTS[::2], INTS, INTS),
        (1.5, scan.BEFORE, EDGES, INTS, INTS, INTS),
        (*HOW, EDGES, INTS, INTS),
    ],
    ids=["lane", "dtype", "strides", "scalar", "number"],
)
def test_others_do_not(arguments: tuple[object, ...]) -> None:
    with pytest.raises(WrongArgumentError, match=r"scan\.fold_together takes"):
        scan._fold_together(1, *arguments)


def test_a_named_tuple_is_checked_field_by_field() -> None:
    grid = rules.sliding_grid(2, 1, 0)
    windows._bounds(3, INTS, grid, INTS.copy(), INTS.copy())
    wrong = rules.Grid._make(map(float, grid))
    with pytest.raises(WrongArgumentError, match=r"windows\.bounds takes"):
        windows._bounds(3, INTS, wrong, INTS.copy(), INTS.copy())
