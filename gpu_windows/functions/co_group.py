"""Functions over the rows of both inputs of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.checked_results import checked_rows
from gpu_windows.functions.counts import Counts
from gpu_windows.functions.declarations import RowsAs, check_declaration
from gpu_windows.functions.failures import describe_pane, errors_located
from gpu_windows.functions.side_outputs import GatheredRows, GatheredSides
from gpu_windows.functions.two_inputs import Sides
from gpu_windows.functions.vector_results import VectorResult
from gpu_windows.functions.vector_window import Found, VectorWindowFunction, WindowBatch
from gpu_windows.vocabulary.rich_functions import FunctionContext, RichFunction
from gpu_windows.vocabulary.triggers.base import Row
from gpu_windows.vocabulary.windows.base import Window, window_of

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

    Examples
    --------
    >>> class Totals(gw.functions.VectorCoGroupFunction):
    ...     def co_group(self, batch: gw.typing.CoGroupBatch):
    ...         ends = zip(batch.right_offsets[:-1], batch.right_offsets[1:])
    ...         paid = [sum(batch.right["amount"][a:b].to_pylist()) for a, b in ends]
    ...         return pa.table({"paid": pa.array(paid, pa.float64())})
    >>> ends = gw.GlobalWindows.create_with_end_of_stream_trigger()
    >>> orders = gw.stream(pa.table({"user": ["ann", "bob"], "order": [1, 2]})).key_by("user")
    >>> payments = gw.stream(pa.table({"user": ["ann"], "amount": [9.5]})).key_by("user")
    >>> both = orders.co_group(payments).window(ends)
    >>> both.process(Totals(), ["order"], ["amount"], output="paid DOUBLE")["paid"].to_pylist()
    [9.5, 0.0]
    """

    windows: pa.Table
    left: pa.Table
    right: pa.Table
    left_offsets: Ints
    right_offsets: Ints

    def __len__(self) -> int:
        return len(self.windows)


class VectorCoGroupFunction(RichFunction, ABC):
    """Gets the rows of both sides of many windows at once, as Arrow; keeps no state.

    Examples
    --------
    >>> import numpy as np
    >>> class Sizes(gw.functions.VectorCoGroupFunction):
    ...     def co_group(self, batch):
    ...         left, right = np.diff(batch.left_offsets), np.diff(batch.right_offsets)
    ...         return pa.table({"orders": left, "payments": right})
    >>> ends = gw.GlobalWindows.create_with_end_of_stream_trigger()
    >>> orders = gw.stream(pa.table({"user": ["ann", "ann"], "order": [1, 2]})).key_by("user")
    >>> payments = gw.stream(pa.table({"user": ["ann"], "amount": [9.5]})).key_by("user")
    >>> both = orders.co_group(payments).window(ends)
    >>> sizes = both.process(
    ...     Sizes(), ["order"], ["amount"], output="orders BIGINT, payments BIGINT"
    ... )
    >>> sizes.select(["user", "orders", "payments"]).to_pylist()
    [{'user': 'ann', 'orders': 2, 'payments': 1}]
    """

    @abstractmethod
    def co_group(self, batch: CoGroupBatch) -> Found:
        """Return the declared output columns: a row for each window, in their order.

        Or any number of rows, and for each the index of its window in the batch (int64[m],
        ascending). Or a `VectorResult` of such rows, side outputs and counters.
        """

    @property
    def user_function(self) -> RichFunction:
        """The function that is opened, and has the side outputs."""
        return self


class WindowContext(FunctionContext, Protocol):
    """The context of a window of two inputs.

    Examples
    --------
    A function that sends windows without payments to a side output:

    >>> class Paid(gw.functions.CoGroupFunction):
    ...     side_outputs = {"unpaid": pa.schema({"orders": pa.int64()})}
    ...
    ...     def co_group(self, key, context, left, right):
    ...         if len(right):
    ...             return [{"paid": sum(right["amount"].to_pylist())}]
    ...         context.output("unpaid", {"orders": len(left)})
    ...         return []
    >>> ends = gw.GlobalWindows.create_with_end_of_stream_trigger()
    >>> orders = gw.stream(pa.table({"user": ["ann", "bob"], "order": [1, 2]})).key_by("user")
    >>> payments = gw.stream(pa.table({"user": ["ann"], "amount": [9.5]})).key_by("user")
    >>> both = orders.co_group(payments).window(ends).with_outputs()
    >>> both.process(Paid(), ["order"], ["amount"], output="paid DOUBLE").side("unpaid").to_pylist()
    [{'user': 'bob', 'orders': 1}]
    """

    @property
    def window(self) -> Window:
        """The window: ``start``, ``end`` (None for the global one), ``max_timestamp``, in ticks."""


class CoGroupFunction(RichFunction, ABC):
    """Gets the rows of both sides of one window (Flink: CoGroupFunction); keeps no state.

    Examples
    --------
    >>> class Sizes(gw.functions.CoGroupFunction):
    ...     def co_group(self, key, context, left, right):
    ...         return [{"orders": len(left), "payments": len(right)}]
    >>> ends = gw.GlobalWindows.create_with_end_of_stream_trigger()
    >>> orders = gw.stream(pa.table({"user": ["ann", "ann"], "order": [1, 2]})).key_by("user")
    >>> payments = gw.stream(pa.table({"user": ["ann"], "amount": [9.5]})).key_by("user")
    >>> both = orders.co_group(payments).window(ends)
    >>> sizes = both.process(
    ...     Sizes(), ["order"], ["amount"], output="orders BIGINT, payments BIGINT"
    ... )
    >>> sizes.select(["user", "orders", "payments"]).to_pylist()
    [{'user': 'ann', 'orders': 2, 'payments': 1}]
    """

    @abstractmethod
    def co_group(
        self, key: Row, context: WindowContext, left: Any, right: Any
    ) -> Iterable[Mapping[str, object]]:
        """Return the result rows of a window, each a mapping of the declared output columns.

        ``left`` and ``right`` are pyarrow.Tables, or pandas.DataFrames with ``rows="pandas"``, in
        order of arrival; either may have no row. Several threads may call it at once.
        """


@dataclass(frozen=True)
class SplitSides(VectorWindowFunction):
    """Splits the rows of windows by side for a co-group function.

    Parameters
    ----------
    function : VectorCoGroupFunction
    left, right : mapping of str to str
        Names of columns to the names that the function is given.
    """

    function: VectorCoGroupFunction
    left: Mapping[str, str]
    right: Mapping[str, str]

    def describe(self) -> str:
        """Return what is computed."""
        return "co-group"

    @property
    def user_function(self) -> RichFunction:
        """The user's function that it calls."""
        return self.function.user_function

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
        How the function is given the rows of a side.
    """

    function: CoGroupFunction
    output: pa.Schema
    rows: RowsAs = "arrow"

    def __post_init__(self) -> None:
        check_declaration(self.output, self.rows)

    @property
    def user_function(self) -> RichFunction:
        """The function."""
        return self.function

    def co_group(self, batch: CoGroupBatch) -> VectorResult:
        """Call the function for every window."""
        function, owner = self.function, type(self.function).__name__
        results: GatheredRows[int] = GatheredRows(self.output, owner)
        context = _OfOneWindow(GatheredSides(function.side_outputs, owner))
        names = batch.windows.column_names
        for i, window in enumerate(batch.windows.to_pylist()):
            key = {name: window[name] for name in names[:-2]}
            context.place, context.window = i, window_of(*(window[name] for name in names[-2:]))
            rows = [
                self._as_declared(side.slice(edges[i], edges[i + 1] - edges[i]))
                for side, edges in (
                    (batch.left, batch.left_offsets),
                    (batch.right, batch.right_offsets),
                )
            ]
            at = partial(describe_pane, key, context.window)
            with errors_located(f"{owner}.co_group", at, function.co_group):
                for row in checked_rows(function.co_group(key, context, *rows), self.output, owner):
                    results.add(i, row)
        return context.result(results)

    def _as_declared(self, rows: pa.Table) -> Any:
        return rows.to_pandas() if self.rows == "pandas" else rows


class _OfOneWindow:
    """A `WindowContext` for one window after the other.

    Attributes
    ----------
    window : Window
    place : int
        Index of the window in the batch.
    """

    window: Window
    place: int

    def __init__(self, sides: GatheredSides[int]) -> None:
        self._sides, self._counts = sides, Counts()

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output."""
        self._sides.add(tag, self.place, row)

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of the user's."""
        self._counts.add(counter, by)

    def result(self, results: GatheredRows[int]) -> VectorResult:
        """Return the results and side outputs of all windows."""
        sides = {tag: _with_places(*rows) for tag, rows in self._sides.take().items()}
        return VectorResult(rows=_with_places(*results.take()), sides=sides, counts=self._counts)


def _with_places(places: list[int], rows: pa.Table) -> tuple[pa.Table, Ints]:
    return rows, np.array(places, np.int64)


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
