"""Polars: sort and ``group_by_dynamic``, and for tumbling windows truncate and ``group_by``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import polars as pl
import pyarrow as pa

from benchmarks.contest import Factory, Window, Work
from benchmarks.engines.memory import arrow_work
from benchmarks.stage import Stage

Query = Callable[[pl.LazyFrame, Window], pl.LazyFrame]


def from_parquet(query: Query) -> Factory:
    """Run a query from the Parquet files to a table in memory."""

    def factory(stage: Stage) -> Work:
        lazy = partial(pl.scan_parquet, stage.files)
        return arrow_work(stage, lambda: _collect(query(lazy(), stage.window), stage.window))

    return factory


def from_memory(query: Query) -> Factory:
    """Run a query on the table in memory, which Polars has taken over before the clock runs."""

    def factory(stage: Stage) -> Work:
        frame = cast(pl.DataFrame, pl.from_arrow(stage.resources.table))
        return arrow_work(stage, lambda: _collect(query(frame.lazy(), stage.window), stage.window))

    return factory


def dynamic(frame: pl.LazyFrame, window: Window) -> pl.LazyFrame:
    """Sort by key and time, then ``group_by_dynamic``.

    The offset makes it start with the first window that holds a row, as Spark does, instead of
    the first one that begins at or after the first row.
    """
    before = -(-window.size // window.slide) - 1
    groups = frame.sort("key", "ts").group_by_dynamic(
        "ts",
        every=window.slide_delta,
        period=window.size_delta,
        offset=-before * window.slide_delta,
        group_by="key",
    )
    return groups.agg(_aggregates())


def truncated(frame: pl.LazyFrame, window: Window) -> pl.LazyFrame:
    """Truncate times to windows and group by them; for windows that tumble."""
    return frame.group_by("key", pl.col("ts").dt.truncate(window.slide_delta)).agg(_aggregates())


def _aggregates() -> list[pl.Expr]:
    value = pl.col("value")
    return [value.sum().alias("sum"), pl.len().alias("count"), value.max().alias("max")]


def _collect(query: pl.LazyFrame, window: Window) -> pa.Table:
    bounded = query.with_columns(
        window_start=pl.col("ts"), window_end=pl.col("ts") + window.size_delta
    )
    return bounded.collect(engine="streaming").to_arrow()
