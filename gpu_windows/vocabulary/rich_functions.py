"""What functions of users have besides what they compute (Flink: RichFunction).

They are opened and closed once in a Python worker, add rows to side outputs, and count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, Protocol

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError


class RuntimeContext(Protocol):
    """What a function may ask when it is opened."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns, with which side outputs begin; none where rows have no key."""


class FunctionContext(Protocol):
    """What a function may do wherever it is called."""

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output that was declared.

        Raises
        ------
        InvalidFunctionError
            If it was not, or the row has other columns.
        """

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of yours, which `Outputs.metrics` shows."""


if TYPE_CHECKING:
    declared = property
else:

    class declared(property):  # noqa: N801 - a decorator
        """What a function declares: in its class, or as a property of it."""

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __set__(self, function: object, value: object) -> NoReturn:
            """Refuse: whoever assigns in ``__init__`` is told what to write."""
            name, kind = self._name, type(function).__name__
            rule = f"{kind} declares {name} in the class or as a property, it is not assigned"
            raise InvalidFunctionError(rule, value=f"self.{name} = {value!r}")


class Closable:
    """What is let go of."""

    def close(self) -> None:
        """Let go of what `open` took: after a bounded input without Spark, and after an error.

        Elsewhere on a best effort: Spark ends its Python workers without a word.
        """


class Openable(Closable):
    """What gets ready before it is called."""

    def open(self, context: RuntimeContext) -> None:
        """Get ready, once in a Python worker, before the first call."""


class GivesAside:
    """What has side outputs."""

    @declared
    def side_outputs(self) -> Mapping[str, pa.Schema]:
        """Columns of each side output, by tag; the keys come before them."""
        return {}


class RichFunction(Openable, GivesAside):
    """What functions and evictors of users declare, and may override."""


def opens(part: Openable) -> bool:
    """Whether there is something to open or to close."""
    kind = type(part)
    return kind.open is not Openable.open or kind.close is not Closable.close
