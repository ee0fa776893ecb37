"""The base of all window functions, built in or of users.

A function describes itself: its result columns, whether it keeps rows, why kernels cannot evaluate
it, and which of its parts depend on order. So no other module checks its class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from typing import Self

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.partials import Partial
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.vocabulary.rich_functions import RichFunction


class WindowFunction(ABC):
    """A function of the rows of a window that fires; a frozen value.

    Attributes
    ----------
    columns : tuple of str
        Columns of the rows that it reads, each once.
    """

    columns: tuple[str, ...]

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Columns of the rows that are read for its results, each once."""
        return self.columns

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Columns whose values are compared, not only passed on."""
        return self.read_columns

    @abstractmethod
    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the result columns; ``schema``: of the input."""

    @property
    def keeps_rows(self) -> bool:
        """Whether it needs the rows of a window when it fires, not only partials."""
        return True

    @property
    def why_rows(self) -> str | None:
        """Reason why partial aggregates are not enough; None if they are."""
        return f"{self.kind} needs the rows, not partial aggregates"

    @property
    def has_one_result(self) -> bool:
        """Whether each window that fires has one result."""
        return False

    @property
    def result_time(self) -> str | None:
        """The result column with the last tick of the window, if one has it."""
        return None

    @property
    def built_in(self) -> tuple[BoundAggregate, ...]:
        """The aggregates of its results that kernels evaluate."""
        return ()

    @property
    def incremental_aggregates(self) -> tuple[BoundAggregate, ...]:
        """The built-in aggregates that rows are added to, for results or for a user's function."""
        return self.built_in

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partials that it needs, other than the number of rows."""
        return ()

    @property
    def why_in_python(self) -> str | None:
        """Reason why kernels cannot evaluate it; None if they can."""
        return f"{self.kind}: user code"

    @property
    def takes_rows(self) -> bool:
        """Whether it is given whole rows, outside of kernels."""
        return self.why_in_python is not None

    @property
    def ordered_parts(self) -> Iterator[str]:
        """Descriptions of its parts that depend on the order of arrival."""
        yield from ()

    @property
    def owners(self) -> Mapping[str, str]:
        """Names of the user's functions for errors, by the result column of each."""
        return {}

    @property
    def user_function(self) -> RichFunction | None:
        """The user's function, which is opened and may have side outputs, if there is one."""
        return None

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that its pairs go to, if there is one."""
        return None

    @property
    def without_process(self) -> Self:
        """The same function with pairs as results, not those of a user's function of them."""
        return self

    @property
    def kind(self) -> str:
        """One word for the kind of function."""
        return type(self).__name__.lower()

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        return f"{self.kind}({', '.join(self.read_columns)})"

    def without(self, names: Container[str]) -> Self | None:
        """Return the function without some result columns; None if it cannot do without them."""
        del names
        return None

    def with_rows_since(self, since: Mapping[str, int]) -> Self:
        """Return the function with results that cover only rows since a start: see `Partial`."""
        del since
        return self

    def check_merging(self) -> None:
        """Refuse functions that windows that merge cannot have.

        Raises
        ------
        InvalidFunctionError
        """
        return
