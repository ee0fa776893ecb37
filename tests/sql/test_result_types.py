"""Types of numbers in results: what docs/sql.md says of them."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.sql.syntax.functions.table import FUNCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
ROWS = gw.stream(
    pa.table(
        {
            "t": pa.array([1, 2], pa.int8()),
            "n": pa.array([1, 2], pa.int32()),
            "m": pa.array([3, 4], pa.int64()),
            "f": pa.array([1, 2], pa.float32()),
            "d": pa.array([Decimal("1.0001"), Decimal("2")], pa.decimal128(10, 4)),
            "ts": pa.array([0, 1], pa.timestamp("us")),
        }
    )
).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
IN = "FROM TUMBLE(TABLE rows_, DESCRIPTOR(ts), INTERVAL '1' DAY) GROUP BY window_start, window_end"


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        *((f"SUM({each})", pa.int64()) for each in "tnm"),
        *((f"{name}(f)", pa.float64()) for name in ("SUM", "AVG")),
        ("SUM(d)", pa.decimal128(20, 4)),
        *((f"AVG({each})", pa.float64()) for each in "tnm"),
        ("AVG(d)", pa.decimal128(14, 8)),
        *((f"STDDEV_POP({each})", pa.float64()) for each in "nfd"),
        *((f"VAR_SAMP({each})", pa.float64()) for each in "nfd"),
        ("SUM(d) / COUNT(*)", pa.decimal128(38, 22)),
        ("SUM(n) * 100.0 / SUM(m)", pa.decimal128(38, 14)),
        ("CAST(AVG(d) AS DECIMAL(38, 6))", pa.decimal128(38, 6)),
    ],
)
def test_types_of_aggregates(text: str, dtype: pa.DataType) -> None:
    found = gw.sql(f"SELECT {text} AS x {IN}", rows_=ROWS).result()
    assert found.schema.field("x").type == dtype


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("n / 2", pa.int64()),
        ("FLOOR(d)", pa.decimal128(7, 0)),
        ("EXTRACT(DAY FROM ts)", pa.int32()),
        ("YEAR(ts)", pa.int32()),
        ("d + m", pa.decimal128(25, 4)),
    ],
)
def test_types_of_expressions(text: str, dtype: pa.DataType) -> None:
    found = gw.sql(f"SELECT {text} AS x FROM rows_", rows_=ROWS).result()
    assert found.schema.field("x").type == dtype


def test_the_page_lists_every_function() -> None:
    functions = PAGE.partition("\n## Functions\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", functions))
    assert not FUNCTIONS.keys() - listed
