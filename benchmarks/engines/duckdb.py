"""DuckDB: ``time_bucket``, for sliding windows a window function over partials of slices; joins."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa

from benchmarks.contest import Factory, Window, Work
from benchmarks.engines.memory import arrow_work
from benchmarks.stage import Stage

_SLICES = """
    SELECT key, time_bucket(to_microseconds({step}), ts, TIMESTAMPTZ 'epoch') AS slice,
           sum(value) AS sum, count(*) AS count, max(value) AS max
    FROM {source} GROUP BY ALL
"""
_TUMBLING = """
    SELECT key, slice AS window_start, slice + to_microseconds({size}) AS window_end,
           sum, count, max
    FROM ({slices})
"""
# The grid holds the windows that no slice of a key begins; frames need a row for each.
_SLIDING = """
    WITH slices AS MATERIALIZED ({slices}),
    grid AS (
        SELECT key, unnest(generate_series(
            (SELECT min(slice) FROM slices) - to_microseconds({size} - {step}),
            (SELECT max(slice) FROM slices), to_microseconds({step}))) AS slice
        FROM (SELECT DISTINCT key FROM slices)),
    windows AS (
        SELECT grid.key, grid.slice AS window_start,
               grid.slice + to_microseconds({size}) AS window_end,
               sum(sum) OVER frame AS sum, sum(count) OVER frame AS count,
               max(max) OVER frame AS max
        FROM grid LEFT JOIN slices USING (key, slice)
        WINDOW frame AS (PARTITION BY grid.key ORDER BY grid.slice
            RANGE BETWEEN CURRENT ROW AND to_microseconds({size} - {step}) FOLLOWING))
    SELECT * FROM windows WHERE count > 0 AND epoch_us(window_start) % {slide} = 0
"""
_PAIRS = """
    SELECT l.key, l.value AS left_value, l.ts AS left_ts, r.value AS right_value, r.ts AS right_ts
"""
# Microseconds: arithmetic of TIMESTAMPTZ with intervals takes twice as long.
_IN_TIME = f"""
    {_PAIRS}
    FROM ours l JOIN its r ON l.key = r.key
        AND epoch_us(r.ts) BETWEEN epoch_us(l.ts) - {{size}} AND epoch_us(l.ts) + {{size}}
"""
_IN_TIME_BY_BUCKETS = f"""
    WITH l AS (SELECT *, epoch_us(ts) AS t, t // (2 * {{size}}) AS bucket FROM ours),
    ends AS (
        SELECT *, epoch_us(ts) AS t, (t - {{size}}) // (2 * {{size}}) AS first,
               (t + {{size}}) // (2 * {{size}}) AS last
        FROM its),
    r AS (
        SELECT *, unnest(CASE WHEN first = last THEN [first] ELSE [first, last] END) AS bucket
        FROM ends)
    {_PAIRS}
    FROM l JOIN r ON l.key = r.key AND l.bucket = r.bucket
        AND r.t BETWEEN l.t - {{size}} AND l.t + {{size}}
"""


def query(window: Window, source: str) -> str:
    """Return the SQL of the windows over a table or a list of files."""
    step = math.gcd(window.size, window.slide)
    slices = _SLICES.format(step=step, source=source)
    text = _TUMBLING if window.tumbles else _SLIDING
    return text.format(size=window.size, slide=window.slide, step=step, slices=slices)


def from_parquet() -> Factory:
    """Run from the Parquet files to a table in memory."""

    def factory(stage: Stage) -> Work:
        sql = query(stage.window, f"read_parquet('{stage.files}')")
        connection = duckdb.connect()
        return arrow_work(stage, lambda: connection.sql(sql).to_arrow_table())

    return factory


def from_memory() -> Factory:
    """Run on the table in memory."""

    def factory(stage: Stage) -> Work:
        connection = duckdb.connect()
        connection.register("rows", stage.resources.table)
        sql = query(stage.window, "rows")
        return arrow_work(stage, lambda: connection.sql(sql).to_arrow_table())

    return factory


def in_time(left: pa.Table, right: pa.Table, window: Window) -> pa.Table:
    """Join rows up to the window's size apart, by a condition on their times."""
    return _joined(_IN_TIME, left, right, window)


def in_time_by_buckets(left: pa.Table, right: pa.Table, window: Window) -> pa.Table:
    """Do the same with a bucket of time in the key; right rows are in two buckets."""
    return _joined(_IN_TIME_BY_BUCKETS, left, right, window)


def _joined(sql: str, left: pa.Table, right: pa.Table, window: Window) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("ours", left)
        connection.register("its", right)
        return connection.sql(sql.format(size=window.size)).to_arrow_table()
