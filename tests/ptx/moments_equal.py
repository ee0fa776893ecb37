"""Moments of the CUDA kernels against exact arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given

from gpu_windows.kernels import backend
from tests.examples import examples
from tests.kernels.moments_cases import MANY, Slices, check, slices

CUDA = backend.select("cuda")


@examples(30)
@given(slices(most=40))
def test_small(case: Slices) -> None:
    check(CUDA, case)


@pytest.mark.parametrize("name", MANY)
def test_many_values(name: str) -> None:
    check(CUDA, MANY[name])
