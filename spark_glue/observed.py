"""Counters and measures of a streaming query: a row a shard, or sums for Spark's listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.monitoring.progress import DEVICE, OBSERVATION, OWN, SHARDS, USER
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


def observed(tagged: DataFrame) -> DataFrame:
    """Return the same DataFrame, whose sums Spark tells to listeners after each micro-batch."""
    sums = [F.coalesce(F.sum(_measured(name)), F.lit(0)).alias(name) for name in _NAMES]
    shards = F.count(_measured("rows")).alias(SHARDS)
    device = _device(F.sum(_measured("cpu_batches")), F.sum(_measured("cuda_batches")))
    own = [F.max(_measured(name)).alias(name) for name in OWN]  # all that tell tell the same
    theirs = _measured(USER)
    user = F.collect_list(F.when(F.size(theirs) > 0, F.to_json(theirs))).alias(USER)
    return tagged.observe(OBSERVATION, *sums, *own, shards, device, user)


def _measured(name: str) -> Column:
    return F.col(f"{MEASURED}.{name}")


def _device(cpu: Column, cuda: Column) -> Column:
    """Return on what kernels ran: ``cpu``, ``cuda``, ``cpu+cuda``, or nothing if none did."""
    ran = [F.when(calls > 0, F.lit(name)) for name, calls in (("cpu", cpu), ("cuda", cuda))]
    return F.concat_ws("+", *ran).alias(DEVICE)
