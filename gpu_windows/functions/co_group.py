"""Functions over the rows of both inputs of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.base import RowsAs, check_declared
from gpu_windows.functions.checked_results import checked_column, checked_rows
from gpu_windows.functions.two_inputs import Sides
from gpu_windows.functions.vectorised import Found, VectorWindowFunction, WindowBatch
from gpu_windows.triggers.base import Row

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CoGroupBatch:
    """Many windows that fired, and the rows of both sides.

    Parameters
    ----------
    windows : pyarrow.Table
        n rows: the key columns, ``window_start`` and ``window_end`` (int64 ticks; null for the
        global window).
    left, right : pyarrow.Table
        The rows of a side of all windows, one window after the other, each in order of arrival.
    left_offsets, right_offsets : int64[n + 1]
        The left rows of window i are ``left[left_offsets[i] : left_offsets[i + 1]]``.
    """

    windows: pa.Table
    left: pa.Table
    right: pa.Table
    left_offsets: Ints
    right_offsets: Ints

    def __len__(self) -> int:
        return len(self.windows)


class VectorCoGroupFunction(ABC):
    """Gets the rows of both sides of many windows at once, as Arrow; keeps no state."""

    @abstractmethod
    def co_group(self, batch: CoGroupBatch) -> Found:
        """Return the declared output columns: a row for each window, in their order.

        Or any number of rows, and for each the place of its window in the batch (int64[m],
        ascending).
        """

    @property
    def called(self) -> str:
        """What errors call it."""
        return type(self).__name__


class CoGroupFunction(ABC):
    """Gets the rows of both sides of one window (Flink: CoGroupFunction); keeps no state."""

    @abstractmethod
    def co_group(
        self, key: Row, window: Row, left: Any, right: Any
    ) -> Iterable[Mapping[str, object]]:
        """Return the result rows of a window, each a mapping of the declared output columns.

        ``window`` has ``window_start`` and ``window_end`` (ticks). ``left`` and ``right`` are
        pyarrow.Tables, or pandas.DataFrames where that was asked for, in order of arrival; either
        may have no row.
        """


@dataclass(frozen=True)
class SplitSides(VectorWindowFunction):
    """Gives both sides of windows to a function.

    Parameters
    ----------
    function : VectorCoGroupFunction
    left, right : mapping of str to str
        The name of a column to what the function shall see.
    """

    function: VectorCoGroupFunction
    left: Mapping[str, str]
    right: Mapping[str, str]

    def describe(self) -> str:
        """Return what is computed."""
        return "co-group"

    @property
    def called(self) -> str:
        """What errors call the user's function."""
        return self.function.called

    def process(self, batch: WindowBatch) -> Found:
        """Call the function."""
        sides = Sides(batch)
        tables, edges = [], []
        for places, names, counts in zip(
            (sides.left, sides.right), (self.left, self.right), sides.counts, strict=True
        ):
            rows = batch.rows.select([*names]).take(pa.array(places))
            tables.append(rows.rename_columns([*names.values()]))
            edges.append(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))
        return self.function.co_group(CoGroupBatch(batch.windows, *tables, *edges))


@dataclass(frozen=True)
class WindowByWindow(VectorCoGroupFunction):
    """Calls a function for one window after the other, in Python.

    Parameters
    ----------
    function : CoGroupFunction
    output : pyarrow.Schema
        Columns of the function's results.
    rows : {"arrow", "pandas"}
        How the function sees the rows of a side.
    """

    function: CoGroupFunction
    output: pa.Schema
    rows: RowsAs = "arrow"

    def __post_init__(self) -> None:
        check_declared(self.output, self.rows)

    @property
    def called(self) -> str:
        """What errors call the user's function."""
        return type(self.function).__name__

    def co_group(self, batch: CoGroupBatch) -> Found:
        """Call the function for every window."""
        found: list[Mapping[str, object]] = []
        places: list[int] = []
        names = batch.windows.column_names
        for i, window in enumerate(batch.windows.to_pylist()):
            key = {name: window[name] for name in names[:-2]}
            bounds = {name: window[name] for name in names[-2:]}
            rows = [
                self._shown(side.slice(edges[i], edges[i + 1] - edges[i]))
                for side, edges in (
                    (batch.left, batch.left_offsets),
                    (batch.right, batch.right_offsets),
                )
            ]
            given = self.function.co_group(key, bounds, *rows)
            for row in checked_rows(given, self.output, self.called):
                found.append(row)
                places.append(i)
        columns = [
            checked_column([row[field.name] for row in found], field, self.called)
            for field in self.output
        ]
        return pa.Table.from_arrays(columns, schema=self.output), np.array(places, np.int64)

    def _shown(self, rows: pa.Table) -> Any:
        return rows.to_pandas() if self.rows == "pandas" else rows


@dataclass(frozen=True)
class CollectSides(VectorCoGroupFunction):
    """The rows of both sides of a window: a list for each column.

    Parameters
    ----------
    left, right : tuple of str
        Names of the columns of each side.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]

    def co_group(self, batch: CoGroupBatch) -> Found:
        """Return a row for each window."""
        return pa.table(
            {
                **_lists(batch.left, self.left, batch.left_offsets),
                **_lists(batch.right, self.right, batch.right_offsets),
            }
        )


def _lists(rows: pa.Table, names: Sequence[str], edges: Ints) -> dict[str, pa.Array]:
    whole = pa.array(edges.astype(np.int32))
    return {
        name: pa.ListArray.from_arrays(whole, rows.column(name).combine_chunks()) for name in names
    }
