"""Batches of keys of any type, and what an encoder makes of them wherever it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.keys import KeyEncoder

#: Types whose values are numbers to kernels, and some values of each.
LANES: dict[pa.DataType, Sequence[Any]] = {
    pa.int64(): [0, 1, -1, 10**12, 2**63 - 1, -(2**63)],
    pa.int8(): [0, 1, -128, 127],
    pa.uint32(): [0, 1, 2**32 - 1],
    pa.bool_(): [True, False],
    pa.date32(): [date(1960, 1, 1), date(2024, 2, 29), date.max],
    pa.timestamp("us", "UTC"): [
        datetime(1960, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, tzinfo=UTC),
    ],
    pa.decimal128(9, 2): [Decimal("1.25"), Decimal("-1.25"), Decimal("0.00")],
    pa.float64(): [0.0, -0.0, math.nan, -math.nan, 1.5, math.inf, -math.inf, 5e-324],
    pa.float32(): [0.0, -0.0, math.nan, 1.5, -2.0],
}
TEXTS: dict[pa.DataType, Sequence[Any]] = {
    pa.string(): ["", "a", "ab", "b", "\N{SNOWMAN}", "a\0"],
    pa.large_string(): ["", "a", "b"],
    pa.binary(): [b"", b"a", b"\xff", b"\0"],
    pa.large_binary(): [b"", b"\xff\xfe"],
}
OTHERS: dict[pa.DataType, Sequence[Any]] = {
    pa.struct([("a", pa.int64()), ("b", pa.string())]): [
        {"a": 1, "b": "x"},
        {"a": None, "b": None},
    ],
}
ALL = LANES | TEXTS | OTHERS

Batch = list[pa.Array]


@st.composite
def batches(draw: st.DrawFn, most: int) -> list[Batch]:
    """Draw some batches of one to three key columns; columns may begin within their memory."""
    types = draw(st.lists(st.sampled_from([*ALL]), min_size=1, max_size=3))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        count, skipped = draw(st.integers(0, most)), draw(st.integers(0, 2))
        columns = []
        for dtype in types:
            some = st.sampled_from(ALL[dtype])
            each = some if draw(st.booleans()) else st.one_of(st.none(), some)
            length = count + skipped
            values = draw(st.lists(each, min_size=length, max_size=length))
            columns.append(pa.array(values, dtype).slice(skipped))
        made.append(columns)
    return made


def encoder_of(made: Sequence[Batch]) -> KeyEncoder:
    """Return an encoder that has seen nothing."""
    return KeyEncoder([column.type for column in made[0]])


def codes_of(made: Sequence[Batch], backend: Backend | None = None) -> list[list[int]]:
    """Return the codes of batches that an encoder sees one after the other."""
    encoder = encoder_of(made)
    return [encoder.encode(columns, backend).tolist() for columns in made]
