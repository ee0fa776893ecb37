"""What is asked of every window function, and how those of users are declared.

A function answers for itself: its result columns, whether it keeps rows, why kernels cannot make
it, what of it depends on order. So no other place asks of what kind it is.
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
    """What becomes of the rows of a window that fires; a frozen value.

    Attributes
    ----------
    columns : tuple of str
        What it reads of the rows, each once.
    """

    columns: tuple[str, ...]

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Columns of the rows that are read for it, each once."""
        return self.columns

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Columns of which values are compared with each other, and not only handed on."""
        return self.read_columns

    @abstractmethod
    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the result columns; ``schema``: of the input."""

    @property
    def keeps_rows(self) -> bool:
        """Whether it needs the rows of a window themselves when it fires."""
        return True

    @property
    def why_rows(self) -> str | None:
        """Why partial aggregates are not enough for it, in words; None if they are."""
        return f"{self.kind} needs the rows, not partial aggregates"

    @property
    def has_one_result(self) -> bool:
        """Whether each window that fires has one result."""
        return False

    @property
    def result_time(self) -> str | None:
        """The result that is the last tick of the window, if one is."""
        return None

    @property
    def built_in(self) -> tuple[BoundAggregate, ...]:
        """The aggregates that it is made of and kernels know."""
        return ()

    @property
    def accumulated(self) -> tuple[BoundAggregate, ...]:
        """The built-in aggregates that are made as rows come, whoever sees them."""
        return self.built_in

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partials that it needs of the rows, besides their number."""
        return ()

    @property
    def why_in_python(self) -> str | None:
        """Why kernels cannot make it, in words; None if they can."""
        return f"{self.kind}: user code"

    @property
    def takes_rows(self) -> bool:
        """Whether rows are given to it as they are, by what is not a kernel."""
        return self.why_in_python is not None

    @property
    def ordered_parts(self) -> Iterator[str]:
        """What of it depends on the order in which rows arrive, in words."""
        yield from ()

    @property
    def owners(self) -> Mapping[str, str]:
        """What errors call the user's functions, by the result column that each gives."""
        return {}

    @property
    def user_function(self) -> RichFunction | None:
        """The function of the user's that is opened and may have side outputs, if there is one."""
        return None

    @property
    def pair_process(self) -> PairProcess | None:
        """What takes the pairs that it gives, where a function of the user's does."""
        return None

    @property
    def without_process(self) -> Self:
        """What gives the pairs themselves."""
        return self

    @property
    def kind(self) -> str:
        """What kind of function it is, in a word."""
        return type(self).__name__.lower()

    def describe(self) -> str:
        """Return what is computed, for ``explain()``."""
        return f"{self.kind}({', '.join(self.read_columns)})"

    def without(self, names: Container[str]) -> Self | None:
        """Return the same without some result columns; None where it is one thing."""
        del names
        return None

    def with_rows_since(self, since: Mapping[str, int]) -> Self:
        """Return the same with results that have rows from a start on: see `Partial`."""
        del since
        return self

    def check_merging(self) -> None:
        """Refuse what has no meaning for windows that merge.

        Raises
        ------
        InvalidFunctionError
        """
        return
