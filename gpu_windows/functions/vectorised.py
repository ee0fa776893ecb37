"""Window functions that are given the rows of many windows at once, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gpu_windows.functions.declarations import check_declaration, check_function
from gpu_windows.functions.failures import call_user
from gpu_windows.functions.vector_results import Piece, checked_piece
from gpu_windows.functions.vector_window import VectorWindowFunction, WindowBatch
from gpu_windows.functions.window import WindowFunction
from gpu_windows.vocabulary.rich_functions import RichFunction


class BatchFunction(WindowFunction):
    """A window function of a `WindowBatch`: the rows of many windows at once, as columns.

    Attributes
    ----------
    output : pyarrow.Schema
        Columns of its results.
    """

    output: pa.Schema
    #: It is called with the rows that kernels emit.
    why_in_python = None
    takes_rows = True
    #: Whether its results may be too many for one batch.
    in_pieces: ClassVar[bool] = False

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the declared columns."""
        del schema
        return tuple(self.output)


@dataclass(frozen=True)
class Vectorised(BatchFunction):
    """A user's function of all rows of many windows, as columns.

    Parameters
    ----------
    function : VectorWindowFunction
    columns : tuple of str
        Columns of the rows that it is given.
    output : pyarrow.Schema
        Columns of its results.
    """

    function: VectorWindowFunction
    columns: tuple[str, ...]
    output: pa.Schema
    #: Values are passed on.
    compared_columns = ()

    def __post_init__(self) -> None:
        check_function(self.function, VectorWindowFunction)
        check_declaration(self.output)

    @property
    def user_function(self) -> RichFunction:
        """The user's function."""
        return self.function.user_function

    @property
    def result_time(self) -> str | None:
        """The result column with the last tick of the window, as the function declares."""
        return self.function.result_time

    def call(self, batch: WindowBatch) -> Piece:
        """Call the function; return its results and the window of each.

        Raises
        ------
        FunctionFailedError
            If it raises.
        InvalidFunctionError
            If the results are not as declared.
        """
        user_function = self.function.user_function
        owner = type(user_function).__name__
        at = f"a batch of {len(batch)} windows, {len(batch.rows)} rows"
        returned = call_user(self.function.process, lambda: f"{owner}, at {at}", batch)
        return checked_piece(returned, len(batch), self.output, user_function.side_outputs, owner)

    @property
    def ordered_parts(self) -> Iterator[str]:
        """The function, unless it declares ``order_free``."""
        if not self.function.order_free:
            yield "the process function"

    def describe(self) -> str:
        """Return the function's description, with the columns that it is given."""
        return f"{self.function.describe()}({', '.join(self.columns)})"
