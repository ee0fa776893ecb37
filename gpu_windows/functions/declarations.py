"""Declarations of users' functions, and checks of them: their class, results and state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError, QueryError
from gpu_windows.vocabulary.rich_functions import Closable, HasSideOutputs, declaration

#: How a user's function is given rows: as a pyarrow.Table or a pandas.DataFrame.
RowsAs: TypeAlias = Literal["arrow", "pandas"]


def check_function(function: Any, *kinds: type) -> None:
    """Raise `QueryError` if a function is not of one of these kinds."""
    if not isinstance(function, kinds):
        names = " or ".join(f"a {kind.__name__}" for kind in kinds)
        raise QueryError(f"process takes {names}", value=repr(function))


def check_declaration(output: Any, rows: Any = "arrow") -> None:
    """Raise `QueryError` unless ``output`` is a schema, and ``rows`` one of `RowsAs`."""
    if not isinstance(output, pa.Schema):
        rule = "output= is a pyarrow.Schema, such as pa.schema([('total', pa.float64())])"
        raise QueryError(rule, value=repr(output))
    if rows not in get_args(RowsAs):
        raise QueryError(f"rows= is one of {', '.join(get_args(RowsAs))}", value=repr(rows))


def check_state_types(types: Any, owner: str, what: str = "state") -> None:
    """Raise `InvalidFunctionError` unless names are mapped to Arrow types.

    ``what``: the attribute of the owner that declares it.
    """
    rule = f"{owner}.{what} maps names of columns to Arrow types, such as pa.int64()"
    check_names(types, pa.DataType, rule)


def check_names(given: Any, kind: type, rule: str) -> None:
    """Raise `InvalidFunctionError` by a rule unless strings are mapped to values of a kind."""
    if not isinstance(given, Mapping):
        raise InvalidFunctionError(rule, value=repr(given))
    for name, value in given.items():
        if not (isinstance(name, str) and isinstance(value, kind)):
            raise InvalidFunctionError(rule, value=f"{name!r}: {value!r}")


class ProcessDeclarations(Closable, HasSideOutputs):
    """The declarations of functions over rows of keys, to be overridden."""

    @declaration
    def state(self) -> Mapping[str, Any]:
        """State of each key, by name."""
        return {}

    @declaration
    def uses_processing_time(self) -> bool:
        """Whether the function sets timers of processing time."""
        return False
