"""Joins of three tables and more, compared with DuckDB's; Flink's are in the corpus."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw

BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()


def rows_of(name: str, seed: int) -> pa.Table:
    """Return 30 rows of an hour: a key, a time and a number."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(3600) for _ in range(30))
    return pa.table(
        {
            "k": [chance.randrange(4) for _ in times],
            f"{name}_ts": [BEGIN + dt.timedelta(seconds=time) for time in times],
            name: range(len(times)),
        }
    )


TABLES = {name: rows_of(name, seed) for seed, name in enumerate("abcd")}
#: Bounds to both sides, so that neither column is the time of a pair.
NEAR = "a.k = b.k AND b_ts BETWEEN a_ts - INTERVAL '3' MINUTE AND a_ts + INTERVAL '5' MINUTE"
THIRD = "c.k = a.k AND c_ts BETWEEN a_ts - INTERVAL '1' MINUTE AND a_ts + INTERVAL '2' MINUTE"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a, b, c FROM a JOIN b ON {NEAR} JOIN c ON {THIRD}",
        f"SELECT a.a, b.b, c.c FROM a, b, c WHERE {THIRD} AND {NEAR} AND a.a > 5",
        f"SELECT * FROM a JOIN b ON {NEAR} JOIN c ON {THIRD} AND c.c > b.b - 9",
        f"SELECT a.*, c, b FROM a LEFT JOIN b ON {NEAR} LEFT JOIN c ON {THIRD} WHERE a.a < 20",
        f"SELECT a, b, c FROM a JOIN b ON {NEAR} RIGHT JOIN c ON {THIRD}",
        f"SELECT a, b, c, d FROM a JOIN b ON {NEAR} JOIN c ON {THIRD} JOIN d ON d.k = c.k AND "
        "d_ts BETWEEN b_ts - INTERVAL '4' MINUTE AND b_ts + INTERVAL '1' MINUTE",
    ],
)
def test_several_joins(text: str) -> None:
    streams = {
        name: gw.stream(rows).event_time(f"{name}_ts", IN_ORDER) for name, rows in TABLES.items()
    }
    found = gw.sql(text, **streams).result()
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `benchmarks`")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, rows in TABLES.items():
        connection.register(name, rows)
    expected = connection.execute(text).fetchall()
    assert sorted(map(texts_of, zip(*found.columns, strict=True))) == sorted(
        map(texts_of, expected)
    )
    assert len(expected) > 3


def texts_of(row: tuple[Any, ...]) -> list[str]:
    """Return values as texts: times of both have different zone objects."""
    values = (each.as_py() if isinstance(each, pa.Scalar) else each for each in row)
    return [str(each) for each in values]
