"""Durations whose unit is almost one that there is."""

from __future__ import annotations

import pytest

import gpu_windows as gw
from gpu_windows.errors import InvalidDurationError


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("5 secs", "did you mean seconds for secs"),
        ("1 hr", "did you mean h for hr"),
        ("2 minuts", "did you mean minutes for minuts"),
        ("3 usecs", "did you mean us for usecs"),
        ("1 yr", "have no fixed length"),
        ("1 parsec", ", or us, ms, s, min, h, d, got"),
    ],
)
def test_units_that_are_like_others(text: str, hint: str) -> None:
    with pytest.raises(InvalidDurationError, match=hint):
        gw.TumblingEventTimeWindows.of(text)
