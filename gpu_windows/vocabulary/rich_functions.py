"""The life cycle of users' functions, their side outputs and counters (Flink: RichFunction).

They are opened and closed once in a Python worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, Protocol

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError


class RuntimeContext(Protocol):
    """The context in which a function is opened.

    Examples
    --------
    >>> class Lines(gw.functions.ProcessWindowFunction):
    ...     def open(self, context):
    ...         self.keys = context.keys
    ...
    ...     def process(self, key, context, rows):
    ...         return [{"line": f"{self.keys}: {len(rows)}"}]
    >>> pairs = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user").count_window(2)
    >>> pairs.process(Lines(), ["user"], output="line STRING")["line"].to_pylist()
    ["('user',): 2"]
    """

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns, with which side outputs begin; empty if rows have no key."""


class FunctionContext(Protocol):
    """The context of every call of a function."""

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output that the function declares.

        Raises
        ------
        InvalidFunctionError
            If it is not declared, or the row has other columns.
        """

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of yours, which `Outputs.metrics` shows."""


if TYPE_CHECKING:
    declaration = property
else:

    class declaration(property):  # noqa: N801 - a decorator
        """A declaration of a function: an attribute of its class, or a property."""

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __set__(self, function: object, value: object) -> NoReturn:
            """Refuse assignments, as in ``__init__``, with a message that says what to write."""
            name, kind = self._name, type(function).__name__
            rule = f"{kind} declares {name} in the class or as a property, it is not assigned"
            raise InvalidFunctionError(rule, value=f"self.{name} = {value!r}")


class Closable:
    """A function that may be closed."""

    def close(self) -> None:
        """Release what `open` acquired: after a bounded input without Spark, and after an error.

        Otherwise on a best effort: Spark ends its Python workers without notice.
        """


class Openable(Closable):
    """A function that may be opened before its first call."""

    def open(self, context: RuntimeContext) -> None:
        """Get ready, once in a Python worker, before the first call."""


class HasSideOutputs:
    """A function with side outputs."""

    @declaration
    def side_outputs(self) -> Mapping[str, pa.Schema]:
        """Columns of each side output, by tag; the keys come before them."""
        return {}


class RichFunction(Openable, HasSideOutputs):
    """The declarations of users' functions and evictors, to be overridden."""


def opens(part: Openable) -> bool:
    """Whether a function overrides `open` or `close`, in its class or afterwards."""
    kind = type(part)
    return kind.open is not Openable.open or kind.close is not Closable.close
