"""Data D: keyed measurements over one day, made once and cached as Parquet.

Columns: ``key`` (int64, uniform), ``ts`` (timestamp in microseconds, UTC), ``value`` (float64).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SECOND = 1_000_000
DAY = 86_400 * SECOND
#: 2024-01-01 00:00 UTC, in microseconds since the epoch.
START = 1_704_067_200 * SECOND
#: A row stands at most this long behind a later one, in microseconds.
DISORDER = 5 * SECOND
FILES = 8
SCHEMA = pa.schema({"key": pa.int64(), "ts": pa.timestamp("us", tz="UTC"), "value": pa.float64()})
_VERSION = 1  # raise it when the rows of equal parameters change
_SEED = 7


@dataclass(frozen=True)
class DataSet:
    """Parameters of a data set; equal ones name the same folder.

    Parameters
    ----------
    rows : int
        Number of rows over all files.
    keys : int
        Keys are 0 to ``keys - 1``, uniform.
    shuffled : bool
        Rows of every file in random order over the whole day, instead of files of three hours
        each in time order with up to `DISORDER` of disorder.
    """

    #: How many files it has.
    files: ClassVar[int] = FILES

    rows: int = 10_000_000
    keys: int = 1_000
    shuffled: bool = False

    def __post_init__(self) -> None:
        if self.rows < 0 or self.keys <= 0:
            message = f"rows must not be negative, keys must be positive, got {self}"
            raise ValueError(message)

    def describe(self) -> str:
        """Return the parameters in words."""
        order = "shuffled" if self.shuffled else "in time order"
        return f"{self.rows:,} rows {order}, {self.keys:,} keys"

    @property
    def folder_name(self) -> str:
        """Name of the folder: readable, with a hash of every parameter."""
        parameters = {**asdict(self), "version": _VERSION, "seed": _SEED, "files": self.files}
        digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:10]
        order = "shuffled" if self.shuffled else "ordered"
        return f"{self.rows}-rows-{self.keys}-keys-{order}-{digest}"

    def limited(self, batches: int) -> Self:
        """Return the same data with another number of micro-batches.

        Raises
        ------
        ValueError
            If it does not say how many there are.
        """
        del batches
        message = f"these data have no number of micro-batches: {self.describe()}"
        raise ValueError(message)

    def part(self, index: int) -> pa.Table:
        """Make the rows of file ``index``, always the same."""
        random = np.random.default_rng([_SEED, index])
        rows = self.rows // self.files + (index < self.rows % self.files)
        ts = _shuffled_ts(random, rows) if self.shuffled else _ordered_ts(random, rows, index)
        keys = random.integers(0, self.keys, rows)
        values = random.normal(50.0, 20.0, rows)
        return pa.table([keys, pa.array(ts, SCHEMA.field("ts").type), values], schema=SCHEMA)

    def ensure(self, root: Path) -> Path:
        """Return the folder under ``root`` that holds the files, made now if it is not there.

        The folder appears under its name when it is complete, so neither an interrupted run nor
        a second one at the same time leaves half a data set.
        """
        folder = root / self.folder_name
        if folder.is_dir():
            return folder
        root.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=root))
        try:
            for index in range(self.files):
                pq.write_table(self.part(index), draft / f"part-{index}.parquet")
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was faster
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return folder


def default_root() -> Path:
    """Return the cache folder of data sets: below ``$XDG_CACHE_HOME``, else ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME")
    home = Path(cache) if cache else Path.home() / ".cache"
    return home / "gpu_windows" / "benchmarks"


def _shuffled_ts(random: np.random.Generator, rows: int) -> NDArray[np.int64]:
    return START + random.integers(0, DAY, rows)


def _ordered_ts(random: np.random.Generator, rows: int, index: int) -> NDArray[np.int64]:
    hours = DAY // FILES
    ts: NDArray[Any] = START + index * hours + random.integers(0, hours, rows)
    arrival = ts + random.integers(0, DISORDER, rows)
    ordered: NDArray[np.int64] = ts[np.argsort(arrival)]
    return ordered
