"""A query on a streaming DataFrame: rows packed by shard, an operator a shard, blobs unpacked."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.options import MOST_SHARDS
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import Query
from gpu_windows.runners.stages import Stage, check_distinct_stages
from gpu_windows.spark_glue.batch import (
    PARTITIONS,
    columns_of,
    shuffle_partitions,
)
from gpu_windows.spark_glue.chain import MARK, check_chain
from gpu_windows.spark_glue.device import gpu_share
from gpu_windows.spark_glue.in_force import Notice
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.names import quoted
from gpu_windows.spark_glue.owed import NO_DATA, is_on
from gpu_windows.spark_glue.packing import PACKED, SHARD
from gpu_windows.spark_glue.passed import kind_of
from gpu_windows.spark_glue.placement import shard_ids
from gpu_windows.spark_glue.processor import WindowProcessor
from gpu_windows.spark_glue.py_files import show_py_files
from gpu_windows.spark_glue.reader import Reader
from gpu_windows.spark_glue.selected import SelectedInSpark
from gpu_windows.spark_glue.settings import (
    PROVIDER,
    ROCKSDB,
    blob_bytes,
    crosses_quickly,
    large_bytes,
)
from gpu_windows.spark_glue.source import SparkSource
from gpu_windows.spark_glue.stages import (
    EarlierStage,
    check_stage,
    clock_of,
    forwarded,
    whole_manifest,
    with_stages,
)
from gpu_windows.spark_glue.stream_inputs import warn_of_alike
from gpu_windows.spark_glue.tagged import TAGGED
from gpu_windows.spark_glue.times import Times
from gpu_windows.spark_glue.types import to_spark_schema
from gpu_windows.spark_glue.watermarks import told_columns, watched
from gpu_windows.spark_glue.workers import PackRows, PackTimely
from gpu_windows.watermarks import UnionWatermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Setting of Spark: which of the watermarks of several inputs is taken.
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


class StreamOutputs(SelectedInSpark):
    """Outputs of a query on a streaming DataFrame.

    Each is a streaming DataFrame, and would be a query of its own: to write several, take
    `gpu_windows.write_stream`.

    Parameters
    ----------
    source : SparkSource
        The rows, which may be results of earlier stages.
    query : Query
    """

    is_streaming = True
    input_kind = "a streaming DataFrame"

    def __init__(self, source: SparkSource, query: Query) -> None:
        frame, public, earlier = source.frame, source.public, source.earlier
        session = frame.sparkSession
        if earlier:
            check_stage(query)
        _check_session(session, query)
        check_chain(frame)
        by_us = query.watermarks.is_own
        self._adopted = source.adopt(query.time, query.watermarks, by_us=by_us)
        partitions = shuffle_partitions(session)
        some = min(partitions, MOST_SHARDS) if query.has_key and query.shard_keys else 1
        shards = query.options.shards or some
        options = replace(query.options, shards=shards)
        query = replace(query, options=options, public=public)
        quickly = crosses_quickly(session.conf)
        planned = plan(query, bounded=False, spark=True, crosses_quickly=quickly)
        self.plan = replace(planned, reasons=(*planned.reasons, *self._adopted.notes))
        self.session = session
        self._blob_bytes = blob_bytes(session.conf)
        self._large = large_bytes(shards, partitions)
        self.ids = shard_ids(shards, partitions)
        told = {"rows": "; ".join(source.changes)} if source.changes else {}
        if self._adopted.steps:
            told["steps before"] = "; ".join(self._adopted.steps)
        self._manifest = Manifest.of(self.plan, {PARTITIONS: str(partitions), **told})
        self.frame, self._public = frame, public
        self.earlier, self.inputs = earlier, source.inputs

    @property
    def first_kinds(self) -> dict[str, int]:
        """The earlier stages, and the first of the kinds of the rows of each."""
        return {name: kind_of(number, 0) for number, name in enumerate(self._before)}

    def explain(self) -> str:
        """Return what is computed, stage by stage."""
        stages = [f"stage {each.stage.name}\n{each.explained}" for each in self.earlier]
        return "\n\n".join([*stages, super().explain()])

    @property
    def stages_before(self) -> int:
        """How many queries this one goes on from."""
        return len(self.earlier)

    @cached_property
    def manifest(self) -> Manifest:
        """What a checkpoint keeps of the query, of all its stages and inputs."""
        inputs = tuple(each.facts for each in self.inputs)
        warn_of_alike(self.inputs)
        return replace(whole_manifest(self._manifest, self.earlier), inputs=inputs)

    @cached_property
    def tagged(self) -> DataFrame:
        """The one physical output: blobs of results, late rows and counters."""
        return self.tagged_with(None)

    def tagged_with(self, notice: Notice | None, *, is_stage: bool = False) -> DataFrame:
        """Return the same, of rows that are aggregated before the shuffle where that can be.

        Parameters
        ----------
        notice : Notice, optional
            Where tasks find the watermark.
        is_stage : bool
            Whether another stage goes on from the results.
        """
        show_py_files(self.session)
        plan, share = self.plan, gpu_share(self.session.conf)
        is_adopted = self._adopted.has_watermark
        rows = watched(self.frame, plan, is_adopted=is_adopted)
        rows = columns_of(rows, plan, told_columns(plan.query))
        most, (before, behind) = self._blob_bytes, self._large
        as_rows = PackRows(plan, self.ids, most, before)
        packing: PackRows | PackTimely = as_rows
        if notice is not None and plan.makes_partials:
            assert isinstance(plan, WindowPlan)
            packing = PackTimely(plan, as_rows, notice, share)
        blobs = rows.mapInArrow(packing, to_spark_schema(PACKED, StructType()))
        return blobs.groupBy(SHARD).transformWithStateInPandas(
            statefulProcessor=WindowProcessor(
                plan,
                clock_of(plan.query),
                most=most,
                large=behind,
                gpu_share=share,
                before=self._before,
                is_stage=is_stage,
            ),
            outputStructType=TAGGED,
            outputMode="append",
            timeMode=Times(plan.query).mode,
        )

    @property
    def reader(self) -> Reader:
        """What makes DataFrames of the physical output."""
        schema = self.frame.schema
        keys = StructType([schema[name] for name in self.plan.query.keys])
        reader = Reader(self.plan, self._public, keys, self.selections)
        return with_stages(reader, self.earlier)

    @property
    def _before(self) -> tuple[str, ...]:
        return tuple(each.stage.name for each in self.earlier)

    def rows(self, stage: Stage) -> SparkSource:
        """Return the results as the rows of another stage of one query.

        Raises
        ------
        UnsupportedQueryError
            If there can be no other stage.
        """
        check_stage(self.plan.query)
        chosen = "; ".join(each.describe() for each in self.selections)
        manifest = self._manifest.told({"selection": chosen} if chosen else {})
        own = EarlierStage(stage, self.reader, manifest, Notice(), super().explain())
        check_distinct_stages((*self._before, stage.name))
        tagged = self.tagged_with(own.notice, is_stage=True)
        frame = forwarded(tagged, stage, self.reader, self._before)
        return SparkSource(frame, earlier=(*self.earlier, own), inputs=self.inputs)

    def result(self) -> DataFrame:
        """Return the results."""
        results = self.reader.results(self.tagged)
        return results.select(
            *(F.col(quoted(name)).alias(name, metadata=MARK) for name in results.columns)
        )

    def _side(self, tag: str) -> DataFrame:
        """Return the rows of a side output."""
        return self.reader.side(self.tagged, tag)

    def late(self) -> DataFrame:
        """Return the rows that came after all their windows were closed: what crossed of them."""
        return self.reader.late(self.tagged)

    def rejected(self) -> DataFrame:
        """Return the rows without a usable timestamp, and the reason: what crossed of them."""
        return self.reader.rejected(self.tagged)

    def metrics(self) -> DataFrame:
        """Return counters and measures: a row for each shard that a micro-batch touched."""
        return self.reader.metrics(self.tagged)


def _check_session(session: SparkSession, query: Query) -> None:
    policy = session.conf.get(_POLICY, None) or "min"
    if isinstance(query.watermarks, UnionWatermarks) and policy.lower() != "min":
        rule = f"the watermark of several inputs is the least of theirs: {_POLICY} must be min"
        raise UnsupportedQueryError(rule, value=policy)
    if Times(query).in_processing_time and not is_on(session, NO_DATA):
        rule = f"what happens in processing time happens without rows: {NO_DATA} must be true"
        raise UnsupportedQueryError(rule, value=session.conf.get(NO_DATA))
    found = session.conf.get(PROVIDER, None)
    if found != ROCKSDB:
        rule = (
            f"state on streams needs {PROVIDER}={ROCKSDB}: set it by spark.conf.set, or make the "
            "session by gpu_windows.session or gpu_windows.configure"
        )
        raise UnsupportedQueryError(rule, value=found)
