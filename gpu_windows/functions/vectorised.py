"""Window functions that are given the rows of many windows at once, as columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.base import WindowFunction
from gpu_windows.functions.checks import check_declaration, check_function
from gpu_windows.functions.failures import failure
from gpu_windows.functions.vector_results import Piece, checked_piece
from gpu_windows.functions.vector_window import VectorWindowFunction, WindowBatch
from gpu_windows.vocabulary.rich_functions import RichFunction


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
        check_declaration(self.output)

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """None: values are handed on."""
        return ()

    @property
    def in_pieces(self) -> bool:
        """Whether its results may be too many to be made at once: it makes them at once."""
        return False

    @property
    def user_function(self) -> RichFunction:
        """What the function says."""
        return self.function.user_function

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
        user_function = self.function.user_function
        owner = type(user_function).__name__
        try:
            found = self.function.process(batch)
        except GpuWindowsError:  # it says where
            raise
        except Exception as error:
            at = f"a batch of {len(batch)} windows, {len(batch.rows)} rows"
            raise failure(error, f"{owner}, at {at}") from error
        return checked_piece(found, len(batch), self.output, user_function.side_outputs, owner)

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The function, unless it says otherwise."""
        if not self.function.order_free:
            yield "the process function"

    def describe(self) -> str:
        """Return what the function says of itself."""
        return f"{self.function.describe()}({', '.join(self.columns)})"
