"""Durations of several units: each in its place, and less than one of the unit before."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from gpu_windows.errors import SqlError
from gpu_windows.expressions.arrow import compute

_ONE = pa.table({"a": [1]})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("'1 02:03:04.5' DAY TO SECOND", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
        ("'-1 02' DAY TO HOUR", -timedelta(days=1, hours=2)),
        ("'100:59' HOUR TO MINUTE", timedelta(hours=100, minutes=59)),
        ("'90:00.000001' MINUTE TO SECOND", timedelta(minutes=90, microseconds=1)),
        ("'1.5' HOUR", timedelta(hours=1.5)),
    ],
)
def test_what_is_written_is_meant(text: str, wanted: timedelta) -> None:
    assert compute(f"INTERVAL {text}", _ONE).to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("'1 99:.:4' DAY TO SECOND", "an INTERVAL of several units"),
        ("'1:2:3:4' DAY TO SECOND", "an INTERVAL of several units"),
        ("'1 2.5:3:4' DAY TO SECOND", "an INTERVAL of several units"),
        ("'1 24:00:00' DAY TO SECOND", "hours after another unit must be less than 24"),
        ("'1:60' HOUR TO MINUTE", "minutes after another unit must be less than 60"),
        ("'1 2:3:4.0000001' DAY TO SECOND", "a whole number of microseconds"),
        (f"'1.{'0' * 30}1' SECOND", "a whole number of microseconds"),
        (f"'{'9' * 5_000}' SECOND", "of up to 40 characters"),
    ],
)
def test_what_is_none_is_refused_with_its_place(text: str, rule: str) -> None:
    with pytest.raises(SqlError, match=rule) as caught:
        compute(f"INTERVAL {text}", _ONE)
    assert caught.value.line == 1
