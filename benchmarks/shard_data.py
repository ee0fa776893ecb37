"""Micro-batches of one shard: the first fills its state, the others touch some of its keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.data import SECOND, START, DataSet

Ints = NDArray[np.int64]

#: The columns of rows as operators take them: times are ticks.
COLUMNS = pa.schema({"key": pa.int64(), "ts": pa.int64(), "value": pa.float64()})
#: How long the first micro-batch lasts, and each of the others, in microseconds.
_FILL, _STEP = 600 * SECOND, 10 * SECOND
#: Rows of all micro-batches after the first, about, where each touches many keys; and how many
#: micro-batches there are in any case.
_MOST_ROWS, _LEAST_BATCHES = 2_000_000, 4
_SEED = 13


@dataclass(frozen=True)
class ShardData(DataSet):
    """Micro-batches with one row a key, in order of time.

    The first one has a row of every key, over ten minutes. The others follow, 10 s each.

    Parameters
    ----------
    rows : int
        Keys that a micro-batch touches, where not all are touched.
    keys : int
        Keys are 0 to ``keys - 1``.
    shuffled : bool
        Must be false.
    batches : int
        Micro-batches after the first.
    """

    rows: int = 100
    keys: int = 100_000
    batches: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffled:
            message = "the rows of a stream come in order of time, got shuffled"
            raise ValueError(message)

    def describe(self) -> str:
        """Return the parameters in words."""
        return f"{self.keys:,} keys of a shard, micro-batches that touch {self.touched:,} of them"

    def limited(self, batches: int) -> Self:
        """Return the same data with another number of micro-batches."""
        return replace(self, batches=batches)

    @property
    def touched(self) -> int:
        """Number of keys that a micro-batch touches, where not all are touched."""
        return min(self.rows, self.keys)

    def fill(self) -> pa.Table:
        """Make the first micro-batch: a row of every key."""
        random = np.random.default_rng([_SEED, 0])
        return _rows(random.permutation(self.keys), START, _FILL, random)

    def micro_batch(self, pattern: str, index: int) -> pa.Table:
        """Make micro-batch ``index``, from 1 on, of one of `PATTERNS`."""
        random = np.random.default_rng([_SEED, index])
        keys = PATTERNS[pattern](self, random)
        return _rows(keys, START + _FILL + (index - 1) * _STEP, _STEP, random)

    def count(self, pattern: str, times: int = 1) -> int:
        """Return how many micro-batches there are, ``times`` as many as usual: fewer of many rows.

        The least number of them is 4, or what was asked for.
        """
        touched = len(PATTERNS[pattern](self, np.random.default_rng(_SEED)))
        most = max(_LEAST_BATCHES, _MOST_ROWS // touched)
        return min(self.batches * times, most)


def _random(data: ShardData, random: np.random.Generator) -> Ints:
    return random.choice(data.keys, data.touched, replace=False)


def _hot(data: ShardData, random: np.random.Generator) -> Ints:
    del random  # the same keys every time
    return _random(data, np.random.default_rng(_SEED))


def _all(data: ShardData, random: np.random.Generator) -> Ints:
    return random.permutation(data.keys)


#: Which keys a micro-batch touches: others each time, the same ones each time, all.
PATTERNS: Mapping[str, Callable[[ShardData, np.random.Generator], Ints]] = {
    "random": _random,
    "hot": _hot,
    "all": _all,
}


def _rows(keys: Ints, begin: int, span: int, random: np.random.Generator) -> pa.Table:
    """Return a row of each key, in order of time."""
    ts = begin + np.sort(random.integers(0, span, len(keys)))
    return pa.table([keys, ts, random.normal(50.0, 20.0, len(keys))], schema=COLUMNS)
