"""Runs a plan on a batch DataFrame; the output is one DataFrame of results and counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import LongType, MapType, StringType, StructType

from gpu_windows.functions.two_inputs import COPY, SIDE
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import PartialsBy, Plan, is_plan_of
from gpu_windows.spark_glue.batch.partials import spark_partials
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.projections import columns_of
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.session.settings import fragment_bytes
from gpu_windows.spark_glue.tasks.device import gpu_share
from gpu_windows.spark_glue.tasks.fragments import NUMBER, PACKED, SHARD
from gpu_windows.spark_glue.tasks.given_keys import GIVEN, PackKeys, given_keys
from gpu_windows.spark_glue.tasks.packing import shard_count
from gpu_windows.spark_glue.tasks.scanning import read_in_tasks
from gpu_windows.spark_glue.tasks.worker_step import Step, map_in_workers
from gpu_windows.spark_glue.tasks.workers import (
    COUNTERS,
    USER_COUNTERS,
    USER_COUNTS,
    MakePartials,
    PackRows,
    RunShards,
    tagged_schema,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gpu_windows.runners.scanned_rows import ScannedRows


@dataclass(frozen=True)
class BatchRows:
    """The rows of a batch query, which Spark sends to tasks, or these read from files.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The rows, without markers.
    scanned : ScannedRows, optional
        The same rows, if tasks read them.
    """

    frame: DataFrame
    scanned: ScannedRows | None = None

    def map(self, plan: Plan, step: MakePartials | PackRows, schema: StructType) -> DataFrame:
        """Return the output of a step over the columns that a plan needs."""
        if self.scanned is not None:
            return read_in_tasks(self.frame.sparkSession, self.scanned, plan, step, schema)
        return map_in_workers(columns_of(self.frame, plan), step, schema)


def packs_rows(plan: Plan) -> bool:
    """Whether the first step packs its output by shard, in whatever order rows arrive."""
    if not plan.order:  # order does not matter, or the operator sorts the rows itself
        return True
    makes_partials = is_plan_of(plan, WindowQuery) and plan.makes_partials
    return makes_partials and plan.partials_by is PartialsBy.KERNELS


def tag_results(rows: BatchRows, plan: Plan, side: str | None = None) -> DataFrame:
    """Return results (`COUNTERS` null; window bounds in ticks) and a row of counters of each task.

    ``side``: the tag of the side output to return instead of the results.
    """
    keys = [rows.frame.schema[name] for name in plan.query.keys]
    schema = to_spark_schema(tagged_schema(plan, side), keys)
    return run_shards(rows, plan, schema, lambda run: replace(run, side=side))


def run_shards(
    rows: BatchRows, plan: Plan, schema: StructType, last_step: Callable[[RunShards], Step]
) -> DataFrame:
    """Return the output of the last step of a query over all shards.

    Parameters
    ----------
    rows : BatchRows
    plan : Plan
    schema : pyspark.sql.types.StructType
        Of the output.
    last_step : callable
        Returns the step, given what runs the shards.
    """
    frame = rows.frame
    conf = frame.sparkSession.conf
    share, max_bytes = gpu_share(conf), fragment_bytes(conf)
    if packs_rows(plan):
        first: MakePartials | PackRows = PackRows(plan, max_bytes=max_bytes)
        if is_plan_of(plan, WindowQuery) and plan.order:
            first = MakePartials(plan, max_bytes, share)
        packed_schema = to_spark_schema(PACKED)
        packed = rows.map(plan, first, packed_schema)
        if given_keys(plan) is not None:
            one_task = frame.sparkSession.range(0, 1, 1, 1)
            keys = one_task.mapInArrow(PackKeys(plan, max_bytes), packed_schema)
            packed = packed.unionAll(keys)
        by_shard = packed.repartition(SHARD).sortWithinPartitions(SHARD, NUMBER)
        run = RunShards(plan, packed=True, gpu_share=share)
        return map_in_workers(by_shard, last_step(run), schema)
    if is_plan_of(plan, WindowQuery) and plan.makes_partials:
        sorted_rows = _sort_by_shard(spark_partials(frame, plan), plan, ())
    else:
        sorted_rows = _sort_by_shard(columns_of(frame, plan), plan, plan.order)
    run = RunShards(plan, packed=False, gpu_share=share)
    return map_in_workers(sorted_rows, last_step(run), schema)


def _sort_by_shard(frame: DataFrame, plan: Plan, order: Sequence[str]) -> DataFrame:
    """Shuffle rows by key and sort them by shard, then by ``order``.

    Unless rows are broadcast, Spark partitions by the hash of keys, and shards order rows within a
    partition: so keys spread evenly, and adaptive execution may merge small partitions.
    """
    frame = _add_given_keys(frame, plan)
    keys = [F.col(quote_name(name)) for name in plan.query.shard_keys] or [F.lit(0)]
    shard = F.pmod(F.xxhash64(*keys), F.lit(shard_count(plan))).cast("long")
    if plan.query.broadcasts:
        rows = _assign_shards(frame, plan, shard).repartition(SHARD)
    else:
        rows = frame.repartition(*keys).withColumn(SHARD, shard)
    return rows.sortWithinPartitions(SHARD, *map(quote_name, order))


def _add_given_keys(frame: DataFrame, plan: Plan) -> DataFrame:
    """Return rows and the given keys of a plan, in which `GIVEN` is true."""
    keys = given_keys(plan)
    if keys is None:
        return frame
    given = frame.sparkSession.createDataFrame(keys).select(
        *(F.col(quote_name(name)).cast(frame.schema[name].dataType) for name in keys.column_names),
        F.lit(True).alias(GIVEN),
    )
    return frame.unionByName(given, allowMissingColumns=True)


def _assign_shards(frame: DataFrame, plan: Plan, shard: Column) -> DataFrame:
    """Return rows with their shards; see `gpu_windows.spark_glue.tasks.packing.assign_shards`."""
    every = F.sequence(F.lit(0).cast("long"), F.lit(shard_count(plan) - 1).cast("long"))
    of_keys = F.col(SIDE)
    rows = frame.withColumn(SHARD, F.explode(F.when(of_keys, F.array(shard)).otherwise(every)))
    return rows.withColumn(COPY, ~of_keys & (F.col(SHARD) != shard))


def drop_counters(frame: DataFrame) -> DataFrame:
    """Return the results of a tagged DataFrame, without rows and columns of counters."""
    return frame.where(F.col(COUNTERS).isNull()).drop(COUNTERS, USER_COUNTERS, USER_COUNTS)


def total_counters() -> list[Column]:
    """Return the aggregates that sum the counters of a tagged DataFrame."""
    return [
        F.coalesce(F.sum(F.get(F.col(COUNTERS), F.lit(i))), F.lit(0)).alias(name)
        for i, name in enumerate(Counters.names())
    ]


def no_user_counters() -> Column:
    """Return an empty map of counters: MAP<STRING, BIGINT>."""
    return F.create_map().cast(MapType(StringType(), LongType())).alias("user")


def total_user_counters() -> Column:
    """Return the aggregate that sums the counters of user code: MAP<STRING, BIGINT>."""

    def add(total: Column, counters: Column) -> Column:
        zero = F.lit(0).cast("long")
        return F.map_zip_with(
            total, counters, lambda _, a, b: F.coalesce(a, zero) + F.coalesce(b, zero)
        )

    maps = F.collect_list(F.map_from_arrays(F.col(USER_COUNTERS), F.col(USER_COUNTS)))
    return F.aggregate(maps, no_user_counters(), add).alias("user")
