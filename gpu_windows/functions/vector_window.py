"""Users' functions over the rows of many windows at once, as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.vector_results import Rows, VectorResult
from gpu_windows.user_values import as_read_only, make_read_only
from gpu_windows.vocabulary.rich_functions import RichFunction


@dataclass(frozen=True)
class WindowBatch:
    """A batch of windows that fired, with their rows.

    Arrays are read only: writing into one raises `ValueError`. Copy those that you want to change.

    Parameters
    ----------
    windows : pyarrow.Table
        n rows: the key columns, ``window_start`` and ``window_end`` (int64 ticks; null for the
        global window).
    rows : pyarrow.Table
        The rows of all windows, one window after the other, each in order of arrival.
    offsets : int64[n + 1]
        The rows of window i are ``rows[offsets[i] : offsets[i + 1]]``.

    Examples
    --------
    >>> class Sizes(gw.functions.VectorWindowFunction):
    ...     def process(self, batch: gw.typing.WindowBatch):
    ...         return pa.table({"rows": batch.offsets[1:] - batch.offsets[:-1]})
    >>> users = gw.stream(pa.table({"user": ["ann", "ann", "bob", "bob"]})).key_by("user")
    >>> users.count_window(2).process(Sizes(), ["user"], output="rows BIGINT")["rows"].to_pylist()
    [2, 2]
    """

    windows: pa.Table
    rows: pa.Table
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        make_read_only(self)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def places(self) -> NDArray[np.int64]:
        """The index of the window of every row: int64[rows], read only."""
        return as_read_only(np.repeat(np.arange(len(self)), np.diff(self.offsets)))


#: The results of many windows: a row for each, or any number and the window of each (ascending); or
#: a `VectorResult` of these, side outputs and counters.
Found: TypeAlias = Rows | VectorResult


class VectorWindowFunction(RichFunction, ABC):
    """Processes all rows of many windows at once, as Arrow; has no state.

    Examples
    --------
    >>> import numpy as np
    >>> class Total(gw.functions.VectorWindowFunction):
    ...     def process(self, batch):
    ...         amounts = batch.rows["amount"].to_numpy()
    ...         return pa.table({"total": np.add.reduceat(amounts, batch.offsets[:-1])})
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "b", "b"], "amount": [1.0, 2.0, 4.0, 8.0]}))
    >>> pairs = sales.key_by("shop").count_window(2)
    >>> pairs.process(Total(), ["amount"], output="total DOUBLE")["total"].to_pylist()
    [3.0, 12.0]
    """

    #: Whether its results do not depend on the order of the rows of a window.
    order_free: ClassVar[bool] = False
    #: The column of its results with the last tick of their window, if one has it.
    result_time: ClassVar[str | None] = None

    @abstractmethod
    def process(self, batch: WindowBatch) -> Found:
        """Return the declared output columns: a row for each window, in their order.

        Or any number of rows, and for each the index of its window in the batch (int64[m],
        ascending). Or a `VectorResult` of such rows, side outputs and counters. Results must not
        depend on how windows are put into batches. Several threads may call it at once.
        """

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return "vectorised"

    @property
    def user_function(self) -> RichFunction:
        """The function that is opened, and has the side outputs."""
        return self
