"""Values that cross to functions of users and back: copies, and arrays to be read only."""

from __future__ import annotations

from array import array
from collections import deque
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.user_values import as_read_only, copy_table, copy_value, copy_values, to_tick


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.parametrize(
    ("value", "copy"),
    [
        (bytearray(b"x"), b"x"),
        (memoryview(bytearray(b"x")), b"x"),
        (memoryview(array("q", [1, 2])), [1, 2]),
        (array("d", [0.5]), [0.5]),
        (deque([bytearray(b"y")]), [b"y"]),
        ({3}, [3]),
        ({1: 2}.keys(), [1]),
        ([[bytearray(b"z")]], [[b"z"]]),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}),
        (Pair(bytearray(b"l"), 1), (b"l", 1)),
    ],
)
def test_what_may_be_changed_is_copied(value: Any, copy: Any) -> None:
    assert copy_value(value) == copy
    assert copy_value(value) is not value
    assert copy_values((value, 1)) == (copy, 1)


@pytest.mark.parametrize(
    "value", [None, 1, 0.5, True, "x", b"x", Decimal(1), datetime.now(UTC), (1, "x"), np.int64(3)]
)
def test_what_nobody_can_change_is_the_same(value: Any) -> None:
    assert copy_value(value) is value


def test_arrays_are_copied_at_any_depth() -> None:
    one = np.arange(3)
    found = copy_value({"list": [one]})["list"][0]
    one[:] = 0
    assert found.tolist() == [0, 1, 2]
    nested = np.empty(1, object)
    nested[0] = [1]
    found = copy_value(nested)
    nested[0].append(2)
    assert found[0] == [1]


def test_a_table_of_arrays_is_copied() -> None:
    numbers, at = np.arange(3), np.arange(3, dtype=np.float64)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(numbers))
    table = pa.table({"n": numbers, "f": at, "l": lists, "s": ["a", None, "c"]})
    wanted = table.to_pydict()
    found = copy_table(table)
    numbers[:], at[:] = 7, 7
    assert found.to_pydict() == wanted
    assert found.schema == table.schema
    assert copy_table(table.slice(1, 1)).num_rows == 1
    assert copy_table(table.select([])).num_rows == 3


def test_a_lent_array_is_read_only() -> None:
    own = np.arange(3)
    with pytest.raises(ValueError, match="read-only"):
        as_read_only(own)[0] = 5
    own[0] = 5  # its owner may


@pytest.mark.parametrize("value", [0, -5, LONG_MAX, LONG_MIN, np.int64(7), np.uint8(7)])
def test_ticks_are_integers(value: Any) -> None:
    assert to_tick(value) == int(value)


@pytest.mark.parametrize(
    "value", [None, 1.0, float("nan"), "1", True, LONG_MAX + 1, np.bool_(1), np.array([1])]
)
def test_nothing_else_is_a_tick(value: Any) -> None:
    assert to_tick(value) is None
