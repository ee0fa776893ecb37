"""Keys made distinct by CUDA kernels against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import keys
from tests.examples import examples
from tests.kernels.key_cases import Values, assert_equal, define, evaluate, random_values, values

CUDA = backend.select("cuda")

ENDS = np.array([-(2**63), 2**63 - 1, -(2**63)])


@examples(60)
@given(values(most=30))
@example(Values(ENDS, np.empty(0, np.bool_)))
@example(Values(ENDS, np.zeros(3, np.bool_)))
def test_small(case: Values) -> None:
    assert_equal(evaluate(CUDA, case), define(case))


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    ("keys_", "apart", "way"),
    [(50, 1, "_placed_by_value"), (7, 10**9, "_placed_by_hash"), (150, 10**9, "_placed_by_sort")],
)
def test_many_rows(
    monkeypatch: pytest.MonkeyPatch, keys_: int, apart: int, way: str, nulls: bool
) -> None:
    """By the value where it is a place, by a hash, by a sort where a table has no room."""
    placed: list[str] = []

    def noted(name: str) -> Any:
        place = getattr(keys, name)

        def call(*arguments: Any) -> Any:
            found = place(*arguments)
            if found is not None:
                placed.append(name)
            return found

        return call

    for name in ("_placed_by_value", "_placed_by_hash", "_placed_by_sort"):
        monkeypatch.setattr(keys, name, noted(name))
    monkeypatch.setattr(keys, "_MAX_SLOTS", 1 << 5)
    monkeypatch.setattr(keys, "_MAX_PROBES", 8)
    case = random_values(3, 400, keys_, apart=apart, nulls=nulls)
    assert_equal(evaluate(CUDA, case), define(case))
    assert placed == [way]
