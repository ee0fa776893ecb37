"""What contestants share: the data set in each of its forms, and one Spark session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contest import Window
from benchmarks.data import DAY, DataSet
from benchmarks.equality import MOST_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Resources:
    """Data and session, made when first asked for and given back by ``close``.

    Parameters
    ----------
    data_set : DataSet
    root : pathlib.Path
        Where data sets are cached.
    spark : pyspark.sql.SparkSession, optional
        A session that is there already; it is not stopped.
    """

    def __init__(self, data_set: DataSet, root: Path, *, spark: SparkSession | None = None) -> None:
        self.data_set = data_set
        self.root = root
        self._session = spark
        self._closing = ExitStack()

    @cached_property
    def folder(self) -> Path:
        """The folder of the Parquet files."""
        return self.data_set.ensure(self.root)

    @cached_property
    def table(self) -> pa.Table:
        """The rows in memory, chunked as Parquet gives them."""
        return pq.read_table(self.folder)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of all contestants."""
        if self._session is not None:
            return self._session
        from benchmarks.engines.spark import session

        return self._closing.enter_context(session())

    @cached_property
    def frame(self) -> DataFrame:
        """The Parquet files as a DataFrame."""
        return self.spark.read.parquet(str(self.folder))

    def scratch(self) -> Path:
        """Return a fresh folder that is gone at the end."""
        made = TemporaryDirectory(prefix="gpu_windows-", ignore_cleanup_errors=True)
        return Path(self._closing.enter_context(made))

    def at_end(self, call: Callable[[], object]) -> None:
        """Have something called before what is there now is given back."""
        self._closing.callback(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()


@dataclass(frozen=True)
class Stage:
    """The resources and the windows that a contestant is to compute."""

    resources: Resources
    window: Window

    def at(self, window: Window) -> Stage:
        """Return the same stage for other windows."""
        return replace(self, window=window)

    @property
    def files(self) -> str:
        """Glob pattern of the Parquet files."""
        return str(self.resources.folder / "*.parquet")

    @property
    def digested(self) -> bool:
        """Whether results are too large to be compared row by row."""
        data, window = self.resources.data_set, self.window
        by_rows = data.rows * -(-window.size // window.slide)
        by_keys = data.keys * (-(-(DAY + window.size) // window.slide))
        return min(by_rows, by_keys) > MOST_ROWS
