"""What the blobs of a stage hold, by shard, kind and bucket. They are read one after another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.shard_log import ShardLog
from gpu_windows.checkpointing.state_commit import ShardState
from gpu_windows.operators.describe_state import contents_of, first_alive, hashes_of
from gpu_windows.operators.state.head import HEAD
from gpu_windows.operators.state.store import VERSION, Contents, from_blob, version_of

#: Of distinct entries: 64 bits each.
_Hashes = NDArray[np.int64]


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
class StageContents:
    """What the blobs of a stage hold.

    Parameters
    ----------
    buckets : tuple of Bucket
        By shard, kind and bucket.
    keys : dict of (int, str) to int
        Shard and kind to the number of distinct keys in all its blobs; only kinds that tell keys.
    """

    buckets: tuple[Bucket, ...]
    keys: Mapping[tuple[int, str], int]


def read_stage(files: CheckpointFiles, shards: Sequence[ShardState]) -> StageContents:
    """Look into every blob of a stage, one after another. Keys are counted by hashes of 64 bits.

    Raises
    ------
    StateCorruptedError, StateVersionError
        With shard, kind and bucket of a blob that cannot be read, or with the state file.
    """
    buckets: list[Bucket] = []
    keys: dict[tuple[int, str], int] = {}
    for shard, state in enumerate(shards):
        log = ShardLog(files, state.newest)
        names = sorted(log.names())
        alive = first_alive(_read(log, shard, *HEAD)[1]) if HEAD in names else None
        for kind, of_kind in groupby(names, itemgetter(0)):
            sums = _add_up(log, shard, kind, [bucket for _, bucket in of_kind], alive)
            buckets += (bucket for bucket, _ in sums)
            distinct = _unite([hashes for _, hashes in sums if hashes is not None])
            if distinct is not None:
                keys[shard, kind] = len(distinct)
    return StageContents(tuple(buckets), keys)


def _add_up(
    log: ShardLog, shard: int, kind: str, numbers: Iterable[int], alive: int | None
) -> list[tuple[Bucket, _Hashes | None]]:
    """Return the buckets of a kind, in their order, each with the hashes of its keys.

    ``numbers``: those of the blobs; ``alive``: see `contents_of`.
    """
    sums: defaultdict[int, _Sums] = defaultdict(_Sums)
    for number in numbers:
        blob, table = _read(log, shard, kind, number)
        contents = contents_of(kind, table, alive)
        sums[number if contents.bucket is None else contents.bucket].add(blob, contents)
    return [sums[bucket].finish(shard, kind, bucket) for bucket in sorted(sums)]


class _Sums:
    """Adds up the blobs of a bucket."""

    def __init__(self) -> None:
        self._blobs = self._size = 0
        self._keys: list[_Hashes] = []
        self._entries: list[_Hashes] = []
        self._counts: Counter[str] = Counter()
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._version = VERSION

    def add(self, blob: bytes, contents: Contents) -> None:
        """Add a blob."""
        self._blobs += 1
        self._size += len(blob)
        self._counts.update(contents.counts)
        self._version = min(self._version, version_of(blob))
        if contents.keys:
            self._keys.append(hashes_of(contents.keys))
        if contents.identity:
            self._entries.append(hashes_of(contents.identity))
        if contents.start is not None:
            self._starts.append(contents.start)
        if contents.end is not None:
            self._ends.append(contents.end)

    def finish(self, shard: int, kind: str, bucket: int) -> tuple[Bucket, _Hashes | None]:
        """Return the sums, and the hashes of the keys; None if the blobs do not tell keys."""
        keys, entries = _unite(self._keys), _unite(self._entries)
        if entries is not None:
            self._counts[kind] = len(entries)
        found = Bucket(
            shard=shard,
            kind=kind,
            bucket=bucket,
            blobs=self._blobs,
            size=self._size,
            keys=None if keys is None else len(keys),
            counts=dict(self._counts),
            start=min(self._starts, default=None),
            end=max(self._ends, default=None),
            version=self._version,
        )
        return found, keys


def _read(log: ShardLog, shard: int, kind: str, bucket: int) -> tuple[bytes, pa.Table]:
    blob = log.read(kind, bucket)
    assert blob is not None, "the log has named it"
    return blob, from_blob(blob, f"shard {shard}, {kind}/{bucket}")


def _unite(hashes: Sequence[_Hashes]) -> _Hashes | None:
    """Return the distinct ones of several arrays; None if there is no array."""
    return np.unique(np.concatenate(hashes)) if hashes else None
