"""DuckDB: ``time_bucket``, and for sliding windows a window function over partials of slices."""

from __future__ import annotations

import math

import duckdb

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
