"""Functions that see the rows of many windows at once, as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.base import WindowFunction, check_declared, check_function
from gpu_windows.functions.failures import failure
from gpu_windows.functions.vector_results import Piece, Rows, VectorResult, checked_piece
from gpu_windows.user_values import as_read_only, lend_arrays
from gpu_windows.vocabulary.rich_functions import RichFunction


@dataclass(frozen=True)
class WindowBatch:
    """Many windows that fired, and their rows.

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
    """

    windows: pa.Table
    rows: pa.Table
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        lend_arrays(self)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def places(self) -> NDArray[np.int64]:
        """The window of every row: int64[rows], read only."""
        return as_read_only(np.repeat(np.arange(len(self)), np.diff(self.offsets)))


#: The results of many windows: a row for each, or any number and the window of each (ascending).
#: With side outputs or counters, a `VectorResult` of it.
Found: TypeAlias = Rows | VectorResult


class VectorWindowFunction(RichFunction, ABC):
    """Gets all rows of many windows at once, as Arrow; keeps no state."""

    #: Whether the order of the rows of a window means nothing to it.
    order_free: ClassVar[bool] = False
    #: The column of its results that is the last tick of their window, if one is.
    result_time: ClassVar[str | None] = None

    @abstractmethod
    def process(self, batch: WindowBatch) -> Found:
        """Return the declared output columns: a row for each window, in their order.

        Or any number of rows, and for each the place of its window in the batch (int64[m],
        ascending). Or a `VectorResult` of such rows, side outputs and counters. How windows are put
        into batches means nothing; several batches may be worked at in several threads at once.
        """

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        return "vectorised"

    @property
    def of_user(self) -> RichFunction:
        """What is opened, and has the side outputs."""
        return self


class BatchFunction(WindowFunction):
    """Takes a `WindowBatch`: the rows of many windows at once, as columns.

    Attributes
    ----------
    output : pyarrow.Schema
        Columns of its results.
    """

    output: pa.Schema

    @property
    @abstractmethod
    def in_pieces(self) -> bool:
        """Whether its results may be too many to be made at once."""

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the columns that were declared."""
        del schema
        return tuple(self.output)

    @property
    def why_in_python(self) -> str | None:
        """It takes what kernels give."""
        return None

    @property
    def takes_rows(self) -> bool:
        """Whether rows are given to it: always."""
        return True


@dataclass(frozen=True)
class Vectorised(BatchFunction):
    """All rows of many windows for a function of the user's that takes columns.

    Parameters
    ----------
    function : VectorWindowFunction
    columns : tuple of str
        Columns of the rows that it sees.
    output : pyarrow.Schema
        Columns of its results.
    """

    function: VectorWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema

    def __post_init__(self) -> None:
        check_function(self.function, VectorWindowFunction)
        check_declared(self.output)

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """None: values are handed on."""
        return ()

    @property
    def in_pieces(self) -> bool:
        """Whether its results may be too many to be made at once: it makes them at once."""
        return False

    @property
    def of_user(self) -> RichFunction:
        """What the function says."""
        return self.function.of_user

    @property
    def result_time(self) -> str | None:
        """What the function says."""
        return self.function.result_time

    def call(self, batch: WindowBatch) -> Piece:
        """Call the function; return its results and the window of each.

        Raises
        ------
        FunctionFailedError
            If it raises.
        InvalidFunctionError
            If the results are not what was declared.
        """
        of_user = self.function.of_user
        owner = type(of_user).__name__
        try:
            found = self.function.process(batch)
        except GpuWindowsError:  # it says where
            raise
        except Exception as error:
            at = f"a batch of {len(batch)} windows, {len(batch.rows)} rows"
            raise failure(error, f"{owner}, at {at}") from error
        return checked_piece(found, len(batch), self.output, of_user.side_outputs, owner)

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The function, unless it says otherwise."""
        if not self.function.order_free:
            yield "the process function"

    def describe(self) -> str:
        """Return what the function says of itself."""
        return f"{self.function.describe()}({', '.join(self.columns)})"
