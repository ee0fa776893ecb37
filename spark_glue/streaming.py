"""A query on a streaming DataFrame: rows packed by shard, an operator a shard, blobs unpacked."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.checks import check_distinct
from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.outputs import Outputs
from gpu_windows.plan import Plan
from gpu_windows.planner import plan
from gpu_windows.query import REASON, Query
from gpu_windows.spark_glue.batch import (
    BOUNDS,
    as_timestamps,
    columns_of,
    default_shards,
    renamed,
)
from gpu_windows.spark_glue.blobs import BLOB, PACKED, SHARD
from gpu_windows.spark_glue.clock import Times
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.processor import WindowProcessor
from gpu_windows.spark_glue.settings import PROVIDER, ROCKSDB, crosses_quickly
from gpu_windows.spark_glue.tagged import (
    KIND,
    LATE,
    METRICS,
    METRICS_SCHEMA,
    RESULT,
    TAGGED,
    Unpack,
    late_schema,
)
from gpu_windows.spark_glue.types import to_spark_schema
from gpu_windows.spark_glue.workers import PackRows
from gpu_windows.triggers import ContinuousEventTimeTrigger, EventTimeTrigger

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from gpu_windows.spark_glue.source import SparkSource

#: Microseconds in a millisecond, the unit of Spark's watermark.
_MILLISECOND = 1_000


class StreamOutputs(Outputs):
    """Outputs of a query on a streaming DataFrame.

    Each is a streaming DataFrame, and would be a query of its own: to write several, take
    `gpu_windows.write_stream`.
    """

    is_streaming = True

    def __init__(self, source: SparkSource, query: Query) -> None:
        session = source.frame.sparkSession
        _check_session(session)
        shards = query.options.shards or default_shards(session)
        query = replace(query, options=replace(query.options, shards=shards))
        quickly = crosses_quickly(session.conf)
        self.plan = plan(query, bounded=False, spark=True, crosses_quickly=quickly)
        check_plan(self.plan)
        self.session = session
        self.manifest = Manifest.of(self.plan)
        self._source = source
        names = self.plan.result_schema.names
        check_distinct(source.public.get(name, name).lower() for name in names)

    @cached_property
    def tagged(self) -> DataFrame:
        """The one physical output: blobs of results, late rows and counters."""
        plan = self.plan
        query = plan.query
        rows = columns_of(_watched(self._source.frame, query), plan)
        blobs = rows.mapInArrow(PackRows(plan), to_spark_schema(PACKED, StructType()))
        return blobs.groupBy(SHARD).transformWithStateInPandas(
            statefulProcessor=WindowProcessor(plan),
            outputStructType=TAGGED,
            outputMode="append",
            timeMode=Times(query).mode,
        )

    def result(self) -> DataFrame:
        """Return the results."""
        return self.results_of(self.tagged)

    def late(self) -> DataFrame:
        """Return the rows that came after all their windows were closed: what crossed of them."""
        return self._given_back(self.tagged, F.col(REASON) == "late").drop(REASON)

    def rejected(self) -> DataFrame:
        """Return the rows without a usable timestamp, and the reason: what crossed of them."""
        return self._given_back(self.tagged, F.col(REASON) != "late")

    def metrics(self) -> DataFrame:
        """Return counters: a row for each shard that was touched in a micro-batch."""
        return _unpacked(self.tagged, METRICS, METRICS_SCHEMA, self._keys)

    def results_of(self, tagged: DataFrame) -> DataFrame:
        """Return the results in a DataFrame of blobs."""
        frame = _unpacked(tagged, RESULT, self.plan.result_schema, self._keys)
        return renamed(as_timestamps(frame, BOUNDS), self._source.public)

    def given_back_in(self, tagged: DataFrame) -> DataFrame:
        """Return late and rejected rows in a DataFrame of blobs, and the reasons."""
        return self._given_back(tagged, F.lit(True))

    def _given_back(self, tagged: DataFrame, condition: object) -> DataFrame:
        frame = _unpacked(tagged, LATE, late_schema(self.plan), self._keys).where(condition)  # type: ignore[arg-type]
        return renamed(as_timestamps(frame, [self.plan.query.time]), self._source.public)

    @property
    def _keys(self) -> StructType:
        schema = self._source.frame.schema
        return StructType([schema[name] for name in self.plan.query.keys])


def _watched(frame: DataFrame, query: Query) -> DataFrame:
    """Return a DataFrame whose event time moves Spark's watermark, if there is one to move."""
    watermarks = query.watermarks
    if watermarks.of_clock or not watermarks.moves:
        return frame
    delay = -(-watermarks.out_of_orderness // _MILLISECOND)
    return frame.withWatermark(query.time, f"{delay} milliseconds")


def _unpacked(tagged: DataFrame, kind: int, schema: pa.Schema, keys: StructType) -> DataFrame:
    blobs = tagged.where(F.col(KIND) == kind).select(BLOB)
    return blobs.mapInArrow(Unpack(schema), to_spark_schema(schema, keys))


def check_plan(plan: Plan) -> None:
    """Refuse what would never give anything."""
    query = plan.query
    waits = isinstance(query.trigger, EventTimeTrigger | ContinuousEventTimeTrigger)
    if waits and not query.watermarks.moves:
        rule = "without watermarks a trigger of event time never fires on a stream"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


def _check_session(session: SparkSession) -> None:
    found = session.conf.get(PROVIDER, None)
    if found != ROCKSDB:
        rule = f"state on streams needs {PROVIDER}={ROCKSDB}, see gpu_windows.configure"
        raise UnsupportedQueryError(rule, value=found)
