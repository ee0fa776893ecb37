"""Counters and measures of a streaming query: a row a shard, or sums for Spark's listeners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.monitoring.progress import (
    DEVICE,
    OBSERVATION,
    OWN,
    SHARDS,
    USER,
    observation_of,
)
from gpu_windows.operators.counters import Counters
from gpu_windows.spark_glue.meter import Measures
from gpu_windows.spark_glue.tagged import KIND, MEASURED, METRICS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMES = (*Counters.names(), *Measures.names())


def metrics_of(tagged: DataFrame, first: int = 0) -> DataFrame:
    """Return what was measured: a row for each shard that a micro-batch touched.

    ``first``: of the kinds of a stage's rows.
    """
    rows = tagged.where(F.col(KIND) == first + METRICS).select(f"{MEASURED}.*")
    device = _device(F.col("cpu_batches"), F.col("cuda_batches"))
    return rows.select(*_NAMES, *OWN, device, USER)


def observed(tagged: DataFrame, stages: Mapping[str, int] | None = None) -> DataFrame:
    """Return the same DataFrame, whose sums Spark tells to listeners after each micro-batch.

    ``stages``: the earlier stages, and the first of the kinds of the rows of each.
    """
    found = _observed(tagged, OBSERVATION, 0)
    for stage, first in (stages or {}).items():
        found = _observed(found, observation_of(stage), first)
    return found


def _observed(tagged: DataFrame, name: str, first: int) -> DataFrame:
    is_own = F.col(KIND) == first + METRICS

    def measured(name: str) -> Column:
        return F.when(is_own, F.col(f"{MEASURED}.{name}"))

    sums = [F.coalesce(F.sum(measured(each)), F.lit(0)).alias(each) for each in _NAMES]
    shards = F.count(measured("rows")).alias(SHARDS)
    device = _device(F.sum(measured("cpu_batches")), F.sum(measured("cuda_batches")))
    own = [F.max(measured(each)).alias(each) for each in OWN]  # all that tell tell the same
    theirs = measured(USER)
    user = F.collect_list(F.when(F.size(theirs) > 0, F.to_json(theirs))).alias(USER)
    return tagged.observe(name, *sums, *own, shards, device, user)


def _device(cpu: Column, cuda: Column) -> Column:
    """Return on what kernels ran: ``cpu``, ``cuda``, ``cpu+cuda``, or nothing if none did."""
    ran = [F.when(calls > 0, F.lit(name)) for name, calls in (("cpu", cpu), ("cuda", cuda))]
    return F.concat_ws("+", *ran).alias(DEVICE)
