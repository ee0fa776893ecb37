"""What Spark's state data source tells of an operator's shards: their blobs and their timers.

https://spark.apache.org/docs/latest/streaming/structured-streaming-state-data-source.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from gpu_windows.errors import StateCorruptedError, StateError, StateVersionError
from gpu_windows.operators.describe_state import contents_of, key_hashes
from gpu_windows.operators.state.store import MANIFEST, from_blob, version_of
from gpu_windows.spark_glue.checkpoint import Checkpoint, ticks
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.packing import BLOB, SHARD
from gpu_windows.spark_glue.processor import STATE

if TYPE_CHECKING:
    from pyspark.sql import Column, Row

_ERRORS = {kind.__name__: kind for kind in (StateCorruptedError, StateVersionError)}
#: What `_look` returns.
_LOOK = (
    "keys array<bigint>, counts map<string, bigint>, start bigint, end bigint, version int, "
    "error struct<name: string, rule: string, value: string>"
)


@dataclass(frozen=True)
class Blob:
    """What a blob of state holds.

    Parameters
    ----------
    shard : int
        The shard that it is of.
    kind : str
        What it holds, such as "windows".
    bucket : int
        Its number among those of the kind.
    size : int
        In bytes.
    keys : int, optional
        Number of distinct keys; None if the blob does not tell keys.
    counts, start, end
        See `gpu_windows.operators.state.store.Contents`.
    version : int
        Of its format.
    """

    shard: int
    kind: str
    bucket: int
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
    found : tuple of Blob
        By shard, kind and bucket.
    keys : dict of (int, str) to int
        Shard and kind to the number of distinct keys in all its blobs; only kinds that tell keys.
    manifest : Manifest, optional
        None if there is no blob.
    """

    found: tuple[Blob, ...]
    keys: Mapping[tuple[int, str], int]
    manifest: Manifest | None


def read_blobs(checkpoint: Checkpoint, batch: int) -> Blobs:
    """Have Spark's workers look into every blob.

    Keys are counted by hashes of 64 bits.

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
        )
        look = F.udf(_look, _LOOK, useArrow=False)
        looked = blobs.withColumn("held", look("shard", "kind", "bucket", "blob"))
        rows = looked.groupBy("shard", "kind").agg(*_totals()).sort("shard", "kind").collect()
    found = tuple(_blob(row, each) for row in rows for each in sorted(row["blobs"]))
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


def _totals() -> list[Column]:
    """Return the aggregates of the blobs of a shard and kind."""
    keys = F.col("held.keys")
    distinct = F.size(F.array_distinct(F.flatten(F.collect_list(keys))))
    blob = F.struct(
        F.col("bucket"),
        F.length("blob").alias("size"),
        F.when(keys.isNotNull(), F.size(keys)).alias("keys"),
        F.col("held.counts"),
        F.col("held.start"),
        F.col("held.end"),
        F.col("held.version"),
        F.col("held.error"),
    )
    return [
        F.collect_list(blob).alias("blobs"),
        F.when(F.count(keys) > 0, distinct).alias("keys"),
        F.first(F.when(F.col("kind") == MANIFEST, F.col("blob"))).alias("manifest"),
    ]


def _look(shard: int, kind: str, bucket: int, blob: bytes) -> tuple[Any, ...]:
    """Look into a blob, in a worker; an error is returned, for Spark would make it a text."""
    try:
        contents = contents_of(kind, from_blob(bytes(blob), f"shard {shard}, {kind}/{bucket}"))
    except StateError as error:
        return None, None, None, None, None, (type(error).__name__, error.rule, str(error.value))
    keys = key_hashes(contents).tolist() if contents.keys else None
    return keys, dict(contents.counts), contents.start, contents.end, version_of(blob), None


def _blob(row: Row, blob: Row) -> Blob:
    if blob["error"] is not None:
        name, rule, value = blob["error"]
        raise _ERRORS[name](rule, value=value)
    values = blob.asDict()
    del values["error"]
    return Blob(shard=row["shard"], kind=row["kind"], **values)
