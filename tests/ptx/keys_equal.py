"""Keys made distinct by CUDA kernels against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import keys
from tests.examples import examples
from tests.kernels.key_cases import Values, assert_equal, define, evaluate, random_values, values
from tests.ptx import arrays
from tests.ptx.plugin import device as installed
from tests.ptx.traffic import calls_until_now

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
    ("keys_", "apart", "sorts", "waits"),
    [(50, 1, 0, 1), (7, 10**9, 0, 1), (20, 10**9, 1, 2), (150, 10**9, 2, 2)],
    ids=["by value", "by hash", "more than come at once", "by sort"],
)
def test_many_rows(
    monkeypatch: pytest.MonkeyPatch, keys_: int, apart: int, sorts: int, waits: int, nulls: bool
) -> None:
    """By the value where it is a place, by a hash, by a sort where a table has no room."""
    monkeypatch.setattr(keys, "_MIN_SLOTS", 1 << 6)
    monkeypatch.setattr(keys, "_MAX_SLOTS", 1 << 6)
    case = random_values(3, 400, keys_, apart=apart, nulls=nulls)
    if sorts == 1:
        monkeypatch.setattr(keys, "_near_entries", lambda entries: entries <= 10)
    there = CUDA.to_device(case.values), CUDA.to_device(case.valid)
    before, sorted_before = calls_until_now(installed()), arrays.calls["argsort"]
    CUDA.keys.codes(*there, lambda found: np.arange(len(found) + 1))
    used = calls_until_now(installed()) - before
    assert arrays.calls["argsort"] - sorted_before == sorts
    searches = 2 if nulls and sorts == 2 else sorts // 2  # of flags: CuPy waits for their number
    assert used.waits == waits + searches
    assert_equal(evaluate(CUDA, case), define(case))
