"""Checks of the functions of users and their declared results."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from gpu_windows.errors import QueryError

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
