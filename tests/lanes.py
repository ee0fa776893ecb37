"""The quick lane takes a case or two of what is tried on many; the others are `thorough`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *few: Any, nightly: Iterable[Any] = ()) -> list[Any]:
    """Return the cases of a parametrized test, all but ``few`` of them marked `thorough`.

    ``@pytest.mark.parametrize("name", quick(QUERIES, "sliding"))``: `make test` runs the case
    "sliding", `make check` the others too, but those of ``nightly``, which are marked `slow`.

    Raises
    ------
    ValueError
        If one of ``few`` or ``nightly`` is no case: it would never run in its lane.
    """
    every, late = list(cases), list(nightly)
    missing = [case for case in (*few, *late) if case not in every]
    if missing:
        raise ValueError(f"no such cases: {missing}, of {every}")
    marks = [pytest.mark.slow if case in late else pytest.mark.thorough for case in every]
    return [
        case if case in few else pytest.param(case, marks=mark)
        for case, mark in zip(every, marks, strict=True)
    ]
