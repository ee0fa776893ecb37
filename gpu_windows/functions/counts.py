"""Counters of users' functions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.rules import LONG_MAX, LONG_MIN


class Counts(Counter[str]):
    """Names of counters to their counts, integers of 64 bits."""

    def add(self, name: str, by: int) -> None:
        """Add to a counter.

        Raises
        ------
        InvalidFunctionError
            If the name is not a string, ``by`` is not an integer, or the sum has more than 64 bits.
        """
        if name.__class__ is not str or by.__class__ is not int:
            by = checked_count(name, by, "a function")
        total = self.get(name, 0) + by
        if not LONG_MIN <= total <= LONG_MAX:
            raise _count_error(name, by, "a function")
        self[name] = total


def checked_count(name: Any, by: Any, owner: str) -> int:
    """Return the amount that is added to a counter.

    Raises
    ------
    InvalidFunctionError
        If the name is not a string, or ``by`` not an integer of 64 bits; it names ``owner``.
    """
    whole = isinstance(by, int | np.integer) and not isinstance(by, bool)
    if not (isinstance(name, str) and whole and LONG_MIN <= by <= LONG_MAX):
        raise _count_error(name, by, owner)
    return int(by)


def _count_error(name: Any, by: Any, owner: str) -> InvalidFunctionError:
    rule = f"{owner} must count by names and integers of 64 bits"
    return InvalidFunctionError(rule, value=f"{name!r}: {by!r}")
