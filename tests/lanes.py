"""The quick lane takes a case or two of what is tried on many; the others are `thorough`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *few: Any) -> list[Any]:
    """Return the cases of a parametrized test, all but ``few`` of them marked `thorough`.

    ``@pytest.mark.parametrize("name", quick(QUERIES, "sliding"))``: `make test` runs the case
    "sliding", `make check` the others too.

    Raises
    ------
    ValueError
        If one of ``few`` is no case: it would never run in the quick lane.
    """
    every = list(cases)
    missing = [case for case in few if case not in every]
    if missing:
        raise ValueError(f"no such cases: {missing}, of {every}")
    return [
        case if case in few else pytest.param(case, marks=pytest.mark.thorough) for case in every
    ]
