"""Totals of what a checkpoint holds: by kind, by shard, by bucket."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from gpu_windows.checkpoints.stage_contents import Bucket, StageContents
from gpu_windows.operators.state.store import VERSION


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
        numbers = [number for number in keys if number is not None]
        return cls(
            kind=held[0].kind,
            bucket=bucket,
            shards=len({each.shard for each in held}),
            blobs=sum(each.blobs for each in held),
            size=sum(each.size for each in held),
            keys=sum(numbers) if numbers else None,
            counts=dict(counts),
            start=min((each.start for each in held if each.start is not None), default=None),
            end=max((each.end for each in held if each.end is not None), default=None),
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
    """

    shard: int
    kinds: tuple[Holding, ...]


@dataclass(frozen=True)
class CheckpointState:
    """What the checkpoint of a streaming query holds after its last micro-batch.

    Parameters
    ----------
    checkpoint : str
        Its path.
    query : dict of str to str
        The query that the checkpoint belongs to, or the stage of it whose state this is, part by
        part: window, key, function, strategy, number of shards, columns of the results.
    version : int
        Of the format of the state: the oldest one of what it holds.
    batch : int, optional
        Spark's number of the micro-batch; None if the query was started and none is committed yet:
        then there is no state.
    watermark : int, optional
        The watermark after the micro-batch, in ticks; None if there is none yet.
    next_call : int, optional
        When something is due by the clock though no rows come, in ticks; None: nothing is.
    stages : tuple of str
        Names of the earlier stages of the query.
    kinds : tuple of Holding
        What all shards hold together, a kind each.
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
    next_call: int | None = None
    stages: tuple[str, ...] = ()
    kinds: tuple[Holding, ...] = ()
    shards: tuple[ShardState, ...] = ()
    buckets: tuple[Holding, ...] = ()


def totals(stage: StageContents) -> dict[str, Any]:
    """Return the totals of a `CheckpointState`, by the names of its fields."""
    by_kind = _grouped(stage.buckets, lambda each: each.kind)
    by_bucket = _grouped(stage.buckets, lambda each: (each.kind, each.bucket))
    by_shard = _grouped(stage.buckets, lambda each: (each.shard, each.kind))
    held = {where: Holding.of(group, [stage.keys.get(where)]) for where, group in by_shard.items()}
    return {
        "version": min((each.version for each in stage.buckets), default=VERSION),
        "kinds": tuple(
            Holding.of(group, [keys for (_, each), keys in stage.keys.items() if each == kind])
            for kind, group in by_kind.items()
        ),
        "shards": tuple(
            ShardState(shard, tuple(each for (where, _), each in held.items() if where == shard))
            for shard in sorted({shard for shard, _ in held})
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
