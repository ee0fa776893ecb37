"""Chooses ids of shards so that Spark distributes shards evenly over partitions.

Spark puts a row into the partition of its key's hash. With a few small numbers as keys, some
partitions would get several shards and others none.
"""

from __future__ import annotations

from itertools import count

_SEED = 42
_WORD = 0xFFFFFFFF


def shard_ids(shards: int, partitions: int) -> tuple[int, ...]:
    """Return a number for each shard, shard ``i`` in partition ``i mod partitions``.

    Parameters
    ----------
    shards : int
        How many shards there are.
    partitions : int
        Of the shuffle.
    """
    unplaced: list[list[int]] = [[] for _ in range(partitions)]
    for shard in reversed(range(shards)):
        unplaced[shard % partitions].append(shard)
    ids = [0] * shards
    left = shards
    for number in count():
        candidates = unplaced[spark_hash(number) % partitions]
        if candidates:
            ids[candidates.pop()] = number
            left -= 1
        if not left:
            return tuple(ids)
    raise AssertionError("there are numbers for every partition")


def spark_hash(value: int) -> int:
    """Return Spark's ``hash`` of a BIGINT: Murmur3 of its two words, as int32.

    Source: org.apache.spark.unsafe.hash.Murmur3_x86_32.hashLong.
    """
    mixed = _mix_into(_mix_into(_SEED, value & _WORD), value >> 32 & _WORD) ^ 8
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _mix_into(hashed: int, word: int) -> int:
    word = _rotate(word * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    return (_rotate(hashed ^ word, 13) * 5 + 0xE6546B64) & _WORD


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _WORD
