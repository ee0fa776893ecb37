"""Sinks that are functions: a micro-batch is computed once, whatever they read."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.lanes import quick
from tests.sinks.dying import fails, run
from tests.spark_glue.stream_runs import (
    ASSIGNERS,
    batches,
    expected,
    files,
    outputs_of,
    streamed,
    windowed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = batches(3, 200)


@pytest.fixture
def outputs(spark: SparkSession, tmp_path: Path) -> gw.typing.Outputs:
    """Sliding windows over three files, a micro-batch each."""
    files(tmp_path / "in", TABLES)
    return outputs_of("sliding", streamed(spark, tmp_path / "in"))


def _nothing(*_: Any) -> None:
    """Read no row."""


def _some(results: DataFrame, *_: Any) -> None:
    results.limit(1).collect()


def _no_cache(results: DataFrame, *_: Any) -> None:
    results.sparkSession.catalog.clearCache()
    results.limit(1).collect()


@pytest.mark.slow
def test_a_sink_may_read_what_it_likes(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    """The state is whole, whatever a function reads: what comes next is as if it had read all."""
    run(outputs, tmp_path / "out", tmp_path / "whole")
    every = gw.read_output(spark, tmp_path / "out", micro_batch="nr").where("nr = 2").drop("nr")
    last = sorted(map(repr, every.toArrow().to_pylist()))
    assert len(last) > 50
    sinks = (_nothing, _some, _no_cache)
    shutil.move(tmp_path / "in" / "2.parquet", tmp_path)
    for sink in sinks:
        run(outputs, sink, tmp_path / sink.__name__)
    shutil.move(tmp_path / "2.parquet", tmp_path / "in")
    for sink in sinks:
        found: list[Any] = []

        def keep(results: DataFrame, *_: Any, found: list[Any] = found) -> None:
            found.extend(results.toArrow().to_pylist())

        run(outputs, keep, tmp_path / sink.__name__)
        assert sorted(map(repr, found)) == last


class Noting(gw.functions.ProcessWindowFunction):
    """Writes a line for each call of it, whatever becomes of what it gives."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> list[dict[str, object]]:
        with self.path.open("a") as file:
            file.write(f"{key['k']} {context.window}\n")
        return [{"rows": rows.num_rows}]


@pytest.mark.parametrize("sink", quick(["path", "function"], "path"))
def test_a_micro_batch_is_computed_once(spark: SparkSession, tmp_path: Path, sink: str) -> None:
    files(tmp_path / "in", TABLES[:2])
    noted = tmp_path / "noted"
    made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["tumbling"])
    made = made.options(shards=2, device="cpu")
    outputs = made.with_outputs().process(
        Noting(noted), ("v",), output=pa.schema([("rows", pa.int64())])
    )
    seen: list[int] = []

    def twice(results: DataFrame, *_: Any) -> None:
        rows = results.collect()
        assert results.count() == len(rows)
        seen.extend(row.rows for row in rows)

    run(outputs, tmp_path / "out" if sink == "path" else twice, tmp_path / "state")
    lines = noted.read_text().splitlines()
    assert len(lines) == len(set(lines)) > 50
    if sink == "function":
        assert len(seen) == len(lines)
    else:
        assert gw.read_output(spark, tmp_path / "out").count() == len(lines)


@pytest.mark.thorough
def test_a_sink_that_raised_is_given_the_same_again(
    tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    """Nothing is computed again for it: the rows of the micro-batch may be gone."""
    seen: list[tuple[int, list[str]]] = []

    def sink(results: DataFrame, _: DataFrame, number: int) -> None:
        seen.append((number, sorted(map(repr, results.collect()))))
        if len(seen) == 2:
            raise KeyError("the sink fails")

    fails(partial(run, outputs, sink, tmp_path / "state"), "the sink fails")
    shutil.move(tmp_path / "in" / "1.parquet", tmp_path)
    run(outputs, sink, tmp_path / "state")
    assert [number for number, _ in seen] == [0, 1, 1, 2]
    assert seen[1] == seen[2]
    assert sum(len(rows) for rows in dict(seen).values()) == len(expected(outputs, TABLES)[0])
