"""What Spark's state data source tells of an operator's shards: their blobs and their timers.

https://spark.apache.org/docs/latest/streaming/structured-streaming-state-data-source.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from gpu_windows.errors import StateCorruptedError, StateError, StateVersionError
from gpu_windows.operators.describe_state import contents_of, first_alive, hashes_of
from gpu_windows.operators.state.head import HEAD
from gpu_windows.operators.state.store import MANIFEST, from_blob, version_of
from gpu_windows.spark_glue.checkpoint import Checkpoint, ticks
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.packing import BLOB, SHARD
from gpu_windows.spark_glue.processor import STATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_ERRORS = {kind.__name__: kind for kind in (StateCorruptedError, StateVersionError)}
#: What `_look` returns: a `Contents`, hashes in place of columns; or an error.
_LOOK = (
    "bucket bigint, keys array<bigint>, entries array<bigint>, counts map<string, bigint>, "
    "start bigint, end bigint, version int, error struct<name: string, rule: string, value: string>"
)


@dataclass(frozen=True)
class Bucket:
    """What the blobs of a bucket of state hold; most buckets have one.

    Parameters
    ----------
    shard : int
        The shard that it is of.
    kind : str
        What it holds, such as "windows".
    bucket : int
        Its number among those of the kind.
    blobs, size : int
        How many there are, and their bytes.
    keys : int, optional
        Number of distinct keys; None if such blobs do not tell keys.
    counts, start, end
        See `gpu_windows.operators.state.store.Contents`.
    version : int
        Of the format: the oldest one.
    """

    shard: int
    kind: str
    bucket: int
    blobs: int
    size: int
    keys: int | None
    counts: Mapping[str, int]
    start: int | None
    end: int | None
    version: int


@dataclass(frozen=True)
class ShardTimers:
    """The timers of a shard: how many, and the earliest and the latest, in ticks."""

    shard: int
    count: int
    earliest: int
    latest: int


@dataclass(frozen=True)
class Blobs:
    """All blobs after a micro-batch.

    Parameters
    ----------
    found : tuple of Bucket
        By shard, kind and bucket.
    keys : dict of (int, str) to int
        Shard and kind to the number of distinct keys in all its blobs; only kinds that tell keys.
    manifest : Manifest, optional
        None if there is no blob.
    """

    found: tuple[Bucket, ...]
    keys: Mapping[tuple[int, str], int]
    manifest: Manifest | None


def read_blobs(checkpoint: Checkpoint, batch: int) -> Blobs:
    """Have Spark's workers look into every blob.

    Keys are counted by hashes of 64 bits. The state is read from the checkpoint once: that takes
    longest, and what Spark keeps of it while this lasts goes to disk where there is no memory.

    Raises
    ------
    StateCorruptedError, StateVersionError
        With shard, kind and bucket of a blob that cannot be read.
    CheckpointError
        If Spark cannot read the state.
    """
    with checkpoint.told():
        state = checkpoint.state(batch, stateVarName=STATE)
        blobs = state.select(
            F.col("key").getField(SHARD).alias("shard"),
            F.col("user_map_key.kind"),
            F.col("user_map_key.bucket"),
            F.unbase64(F.col("user_map_value").getField(BLOB)).alias("blob"),
        ).persist()
        try:
            rows = _of_kinds(blobs).collect()
        finally:
            blobs.unpersist()
    found = tuple(_bucket(row, each) for row in rows for each in sorted(row["buckets"]))
    keys = {(row["shard"], row["kind"]): row["keys"] for row in rows if row["keys"] is not None}
    manifests = [row["manifest"] for row in rows if row["manifest"] is not None]
    if not manifests:
        return Blobs(found, keys, None)
    return Blobs(found, keys, Manifest.from_table(from_blob(bytes(manifests[0]), MANIFEST)))


def read_timers(checkpoint: Checkpoint, batch: int) -> tuple[ShardTimers, ...]:
    """Return the timers of every shard that has some.

    Raises
    ------
    CheckpointError
        If Spark cannot read the state.
    """
    at, shard = F.col("expiration_timestamp_ms"), F.col("key").getField(SHARD).alias("shard")
    with checkpoint.told():
        timers = checkpoint.state(batch, readRegisteredTimers=True).groupBy(shard)
        rows = timers.agg(F.count(at), F.min(at), F.max(at)).sort("shard").collect()
    return tuple(ShardTimers(shard, n, ticks(least), ticks(most)) for shard, n, least, most in rows)


def _of_kinds(blobs: DataFrame) -> DataFrame:
    """Return what blobs hold, a row each shard and kind."""
    look, alive = F.udf(_look, _LOOK, useArrow=False), F.udf(_alive, "bigint", useArrow=False)
    heads = blobs.where(F.col("kind") == HEAD[0]).select("shard", alive("blob").alias("alive"))
    looked = blobs.join(F.broadcast(heads), "shard", "left").withColumn(
        "held", look("shard", "kind", "bucket", "blob", "alive")
    )
    bucket = F.coalesce("held.bucket", "bucket").alias("bucket")
    buckets = looked.groupBy("shard", "kind", bucket).agg(*_of_bucket())
    return buckets.groupBy("shard", "kind").agg(*_of_kind()).sort("shard", "kind")


def _of_bucket() -> list[Column]:
    """Return the aggregates of the blobs of a bucket."""
    blob = F.struct(
        F.col("held.error"),
        F.length("blob").alias("size"),
        F.col("held.counts"),
        F.col("held.start"),
        F.col("held.end"),
        F.col("held.version"),
    )
    return [
        F.collect_list(blob).alias("blobs"),
        _distinct("held.keys").alias("keys"),
        F.size(_distinct("held.entries")).alias("entries"),
        F.first(F.when(F.col("kind") == MANIFEST, F.col("blob"))).alias("manifest"),
    ]


def _of_kind() -> list[Column]:
    """Return the aggregates of the buckets of a shard and kind."""
    bucket = F.struct("bucket", "blobs", F.size("keys").alias("keys"), "entries")
    return [
        F.collect_list(bucket).alias("buckets"),
        F.size(_distinct("keys")).alias("keys"),
        F.first("manifest").alias("manifest"),
    ]


def _distinct(hashes: str) -> Column:
    """Return the distinct ones of the hashes of several rows; null if all are null."""
    some = F.array_distinct(F.flatten(F.collect_list(hashes)))
    return F.when(F.count(hashes) > 0, some)


def _alive(head: bytes) -> int | None:
    """Return what the head of a shard tells, in a worker; `_look` raises if it cannot be read."""
    try:
        return first_alive(from_blob(bytes(head), HEAD[0]))
    except StateError:
        return None


def _look(shard: int, kind: str, bucket: int, blob: bytes, alive: int | None) -> tuple[Any, ...]:
    """Look into a blob, in a worker; an error is returned, for Spark would make it a text."""
    try:
        table = from_blob(bytes(blob), f"shard {shard}, {kind}/{bucket}")
    except StateError as error:
        told = type(error).__name__, error.rule, str(error.value)
        return None, None, None, None, None, None, None, told
    found = contents_of(kind, table, alive)
    keys, entries = (
        hashes_of(columns).tolist() if columns else None for columns in (found.keys, found.identity)
    )
    counts, version = dict(found.counts), version_of(blob)
    return found.bucket, keys, entries, counts, found.start, found.end, version, None


def _bucket(row: Row, bucket: Row) -> Bucket:
    blobs: list[Row] = bucket["blobs"]
    for error in sorted(blob["error"] for blob in blobs if blob["error"] is not None):
        name, rule, value = error
        raise _ERRORS[name](rule, value=value)
    counts: Counter[str] = Counter()
    for blob in blobs:
        counts.update(blob["counts"])
    if bucket["entries"] is not None:
        counts[row["kind"]] = bucket["entries"]
    return Bucket(
        shard=row["shard"],
        kind=row["kind"],
        bucket=bucket["bucket"],
        blobs=len(blobs),
        size=sum(blob["size"] for blob in blobs),
        keys=bucket["keys"],
        counts=dict(counts),
        start=min((blob["start"] for blob in blobs if blob["start"] is not None), default=None),
        end=max((blob["end"] for blob in blobs if blob["end"] is not None), default=None),
        version=min(blob["version"] for blob in blobs),
    )
