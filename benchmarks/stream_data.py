"""Micro-batches: keyed measurements in the order in which they arrive, as many as are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.data import DISORDER, SCHEMA, SECOND, START, DataSet
from gpu_windows.vocabulary.options import show_ticks

#: Returns micro-batch ``index``.
Batches = Callable[[int], pa.Table]

_SEED = 11


@dataclass(frozen=True)
class StreamData(DataSet):
    """Micro-batches of the columns of `DataSet`, each of the same rows every time it is made.

    Parameters
    ----------
    rows : int
        Rows of a micro-batch.
    keys : int
        Keys are 0 to ``keys - 1``, uniform.
    shuffled : bool
        Must be false: a stream comes in order of time, with up to `DISORDER` of disorder.
    span : int
        Microseconds from the first row of a micro-batch to that of the next.
    """

    rows: int = 1_000_000
    keys: int = 10_000
    span: int = 900 * SECOND

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffled:
            message = "the rows of a stream come in order of time, got shuffled"
            raise ValueError(message)

    def describe(self) -> str:
        """Return the parameters in words."""
        each = f"micro-batches of {self.rows:,} rows and {show_ticks(self.span)}"
        return f"{each}, {self.keys:,} keys"

    @property
    def inputs(self) -> tuple[Batches, ...]:
        """What makes the micro-batches of each input of a query."""
        return (self.micro_batch,)

    def micro_batch(self, index: int, side: int = 0) -> pa.Table:
        """Make micro-batch ``index`` of an input."""
        random = np.random.default_rng([_SEED, index, side])
        arrival = np.sort(random.integers(0, self.span, self.rows)) + index * self.span
        behind = random.integers(0, DISORDER, self.rows)
        keys = random.integers(0, self.keys, self.rows)
        return rows_of(keys, START + DISORDER + arrival - behind, random)


class TwoStreams(StreamData):
    """Two inputs, each with micro-batches of ``rows`` rows of the same time."""

    def describe(self) -> str:
        """Return the parameters in words."""
        return f"two inputs, {super().describe()}"

    @property
    def inputs(self) -> tuple[Batches, ...]:
        """What makes the micro-batches of each input of a query."""
        return tuple(partial(self.micro_batch, side=side) for side in range(2))


def rows_of(
    keys: NDArray[np.int64], ts: NDArray[np.int64], random: np.random.Generator
) -> pa.Table:
    """Return rows of `SCHEMA` with random values."""
    values = random.normal(50.0, 20.0, len(keys))
    return pa.table([keys, pa.array(ts, SCHEMA.field("ts").type), values], schema=SCHEMA)
