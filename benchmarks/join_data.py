"""Data of joins: a file of data D, and rows of one key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.data import SECOND, START, DataSet
from benchmarks.stream_data import rows_of

_SEED = 13


@dataclass(frozen=True)
class JoinData(DataSet):
    """The first file of data D, which is of three hours, as both inputs of a join.

    Parameters
    ----------
    rows : int
        Of an input.
    keys, shuffled
        See `DataSet`.
    """

    files: ClassVar[int] = 1

    rows: int = 1_250_000

    def sides(self, folder: Path) -> tuple[Path, Path]:
        """Return the files of the left and the right input."""
        return folder / "part-0.parquet", folder / f"part-{self.files - 1}.parquet"


@dataclass(frozen=True)
class HotData(JoinData):
    """Two inputs of a few hot keys: a row of the right one for every fifth of the left one.

    Both are of 2,500 s, so that 100,000 rows of one key have 8 million pairs within 5 s.

    Parameters
    ----------
    rows : int
        Of the left input.
    keys : int
        Keys are 0 to ``keys - 1``, uniform.
    shuffled : bool
        Rows in random order, instead of in order of time.
    """

    files: ClassVar[int] = 2
    _SPAN: ClassVar[int] = 2_500 * SECOND
    _RIGHT: ClassVar[int] = 5

    rows: int = 100_000
    keys: int = 1

    def describe(self) -> str:
        """Return the parameters in words."""
        return f"{super().describe()}, and a right row for every {self._RIGHT} of them"

    def part(self, index: int) -> pa.Table:
        """Make the rows of an input, always the same."""
        random = np.random.default_rng([_SEED, index])
        rows = self.rows // self._RIGHT if index else self.rows
        ts = START + random.integers(0, self._SPAN, rows)
        keys = random.integers(0, self.keys, rows)
        return rows_of(keys, ts if self.shuffled else np.sort(ts), random)
