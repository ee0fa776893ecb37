"""Counters of functions: integers of 64 bits, whoever counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.counts import Counts
from tests.operators.joins.rows import TUMBLING, keyed, table

ROWS = table([("a", 1, 1)])
VALUES = pa.schema([("v", pa.int64())])
WRONG = [("n", 1.5), (None, 1), ("n", "b"), ("n", True), ("n", 2**70), ("n", None), (1, 1)]


class Counting:
    """Counts what a test says."""

    def __init__(self, name: Any, by: Any) -> None:
        self._counted = name, by

    def _count(self, context: Any) -> list[Any]:
        context.count(*self._counted)
        return []


class ByRow(Counting, gw.functions.KeyedProcessFunction):
    def process_element(self, row: Any, context: Any) -> list[Any]:
        return self._count(context)


class Windowed(Counting, gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> list[Any]:
        return self._count(context)


class OfBoth(Counting, gw.functions.CoGroupFunction):
    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> list[Any]:
        return self._count(context)


class Pairs(Counting, gw.functions.FlatJoinFunction):
    def join(self, left: Any, right: Any, context: Any) -> list[Any]:
        return self._count(context)


class InBatches(gw.functions.VectorProcessFunction):
    def __init__(self, name: Any, by: Any) -> None:
        self._counts = {name: by}

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        return gw.functions.VectorResult(counts=self._counts)


def _outputs(kind: Any, name: Any, by: Any) -> gw.typing.Outputs:
    function = kind(name, by)
    if kind is Windowed:
        return keyed(ROWS).window(TUMBLING).with_outputs().process(function, ["v"], output=VALUES)
    if kind is OfBoth:
        both = keyed(ROWS).co_group(keyed(ROWS)).window(TUMBLING)
        return both.with_outputs().process(function, ["v"], ["v"], output=VALUES)
    if kind is Pairs:
        pairs = keyed(ROWS).join(keyed(ROWS)).window(TUMBLING)
        return pairs.with_outputs().process(function, ["v"], ["v"], output=VALUES)
    return keyed(ROWS).with_outputs().process(function, ["v"], output=VALUES)


@pytest.mark.parametrize("kind", [ByRow, Windowed, OfBoth, Pairs, InBatches])
def test_what_is_counted_is_whole(kind: Any) -> None:
    for name, by in WRONG:
        with pytest.raises(InvalidFunctionError, match="must count by names and integers"):
            _outputs(kind, name, by).metrics()
    found = _outputs(kind, "n", np.int32(3)).metrics()["user"][0].as_py()
    assert dict(found) == {"n": 3}


def test_sums_have_64_bits() -> None:
    counts = Counts()
    for by in (2**62, 2**62 - 1, -5, 5):
        counts.add("n", by)
    assert counts == {"n": 2**63 - 1}
    with pytest.raises(InvalidFunctionError, match="64 bits"):
        counts.add("n", 1)
