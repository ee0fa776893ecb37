"""Totals of what a checkpoint holds: by kind, by shard, by bucket."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from gpu_windows.operators.state.store import VERSION

if TYPE_CHECKING:
    from gpu_windows.spark_glue.state_source import Blobs, Bucket, ShardTimers


@dataclass(frozen=True)
class Holding:
    """What the blobs of one kind hold; of "slices", without those that are over.

    Parameters
    ----------
    kind : str
        "slices", or "windows" and their "rows", and what else an operator keeps.
    bucket : int, optional
        Where the blobs are of one bucket, its number.
    shards, blobs : int
        How many shards have some, and how many there are.
    size : int
        Their bytes.
    keys : int, optional
        Number of distinct keys; None if such blobs do not tell keys.
    counts : dict of str to int
        What is counted ("slices", "windows", "rows") to how many of it there are.
    start, end : int, optional
        The time that they are of, in ticks (microseconds since 1970), ``end`` exclusive; None if
        they do not tell it.
    """

    kind: str
    bucket: int | None
    shards: int
    blobs: int
    size: int
    keys: int | None
    counts: Mapping[str, int]
    start: int | None
    end: int | None

    @classmethod
    def of(cls, held: list[Bucket], keys: Iterable[int | None], bucket: int | None = None) -> Self:
        """Add up buckets of one kind; ``keys``: numbers of keys that are of different shards."""
        counts: Counter[str] = Counter()
        for each in held:
            counts.update(each.counts)
        told = [number for number in keys if number is not None]
        return cls(
            kind=held[0].kind,
            bucket=bucket,
            shards=len({each.shard for each in held}),
            blobs=sum(each.blobs for each in held),
            size=sum(each.size for each in held),
            keys=sum(told) if told else None,
            counts=dict(counts),
            start=min((each.start for each in held if each.start is not None), default=None),
            end=max((each.end for each in held if each.end is not None), default=None),
        )


@dataclass(frozen=True)
class Timers:
    """Timers of Spark's: how many, and the times of the earliest and the latest, in ticks."""

    count: int = 0
    earliest: int | None = None
    latest: int | None = None

    @classmethod
    def of(cls, timers: Iterable[ShardTimers]) -> Self:
        """Add up the timers of shards."""
        found = list(timers)
        return cls(
            sum(each.count for each in found),
            min((each.earliest for each in found), default=None),
            max((each.latest for each in found), default=None),
        )


@dataclass(frozen=True)
class ShardState:
    """What a shard holds.

    Parameters
    ----------
    shard : int
        Its number, from 0.
    kinds : tuple of Holding
        What it holds, a kind each.
    timers : Timers
    """

    shard: int
    kinds: tuple[Holding, ...]
    timers: Timers


@dataclass(frozen=True)
class CheckpointState:
    """What the checkpoint of a streaming query holds after a micro-batch.

    Parameters
    ----------
    checkpoint : str
        Its path.
    query : dict of str to str
        The query that the checkpoint belongs to, part by part: window, key, function, strategy,
        number of shards, columns of the results.
    version : int
        Of the format of the state: the oldest one of what it holds.
    batch : int, optional
        The micro-batch; None if none is committed yet, and then there is nothing else.
    watermark, next_watermark : int, optional
        Spark's watermark in that micro-batch, and the one of the next, in ticks; None if there is
        none yet.
    timers_of : str, optional
        Spark's time mode, "EventTime" or "ProcessingTime": what timers wait for.
    kinds : tuple of Holding
        What all shards hold together, a kind each.
    timers : Timers
    shards : tuple of ShardState
        Those that hold anything, in order of their numbers.
    buckets : tuple of Holding
        By kind and bucket, over all shards.
    """

    checkpoint: str
    query: Mapping[str, str]
    version: int = VERSION
    batch: int | None = None
    watermark: int | None = None
    next_watermark: int | None = None
    timers_of: str | None = None
    kinds: tuple[Holding, ...] = ()
    timers: Timers = Timers()
    shards: tuple[ShardState, ...] = ()
    buckets: tuple[Holding, ...] = ()


def totals(blobs: Blobs, timers: tuple[ShardTimers, ...]) -> dict[str, Any]:
    """Return the totals of a `CheckpointState`, by the names of its fields."""
    by_kind = _grouped(blobs.found, lambda each: each.kind)
    by_bucket = _grouped(blobs.found, lambda each: (each.kind, each.bucket))
    by_shard = _grouped(blobs.found, lambda each: (each.shard, each.kind))
    held = {where: Holding.of(group, [blobs.keys.get(where)]) for where, group in by_shard.items()}
    return {
        "version": min((each.version for each in blobs.found), default=VERSION),
        "kinds": tuple(
            Holding.of(group, [keys for (_, each), keys in blobs.keys.items() if each == kind])
            for kind, group in by_kind.items()
        ),
        "timers": Timers.of(timers),
        "shards": tuple(
            ShardState(
                shard,
                tuple(each for (where, _), each in held.items() if where == shard),
                Timers.of(each for each in timers if each.shard == shard),
            )
            for shard in sorted({each.shard for each in blobs.found})
        ),
        "buckets": tuple(
            Holding.of(group, [each.keys for each in group], bucket)
            for (_, bucket), group in by_bucket.items()
        ),
    }


def _grouped(buckets: Iterable[Bucket], key: Callable[[Bucket], Any]) -> dict[Any, list[Bucket]]:
    """Return buckets by a key, in its order."""
    groups = defaultdict(list)
    for bucket in buckets:
        groups[key(bucket)].append(bucket)
    return dict(sorted(groups.items()))
