"""A launch with arguments of other types than declared is refused, as a device would."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.kernels.cuda import running, windows
from tests.simulator.launches import WrongArgumentError

INTS, FLOATS = np.zeros(3, np.int64), np.zeros(3)


def test_arrays_of_the_declared_types_pass() -> None:
    running._fold(1, rules.ADD, INTS[:1], INTS, INTS.copy())
    running._fold(1, rules.ADD, INTS[:1], FLOATS, FLOATS.copy())


@pytest.mark.parametrize(
    "arguments",
    [
        (rules.ADD, INTS[:1], INTS, FLOATS),
        (rules.ADD, INTS[:1].astype(np.int32), INTS, INTS),
        (rules.ADD, INTS[:1], INTS[::2], INTS),
        (1.5, INTS[:1], INTS, INTS),
        (rules.ADD, INTS[:1], INTS),
    ],
    ids=["lane", "dtype", "strides", "scalar", "number"],
)
def test_others_do_not(arguments: tuple[object, ...]) -> None:
    with pytest.raises(WrongArgumentError, match=r"running\.fold takes"):
        running._fold(1, *arguments)


def test_a_named_tuple_is_checked_field_by_field() -> None:
    grid = rules.sliding_grid(2, 1, 0)
    windows._bounds(3, INTS, grid, INTS.copy(), INTS.copy())
    wrong = rules.Grid._make(map(float, grid))
    with pytest.raises(WrongArgumentError, match=r"windows\.bounds takes"):
        windows._bounds(3, INTS, wrong, INTS.copy(), INTS.copy())
