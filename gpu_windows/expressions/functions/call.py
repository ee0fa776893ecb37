"""Calls of scalar functions: checked arguments, as aligned arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.numbers import is_number
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Value

#: Maximum number of arguments of functions that take any number.
UNLIMITED = 1_000
#: Kinds of arguments: a test of the type, what it is called, and the type of NULL alone.
_KINDS: dict[str, tuple[Callable[[pa.DataType], bool], str, pa.DataType]] = {
    "text": (types.is_string, "strings", pa.string()),
    "data": (lambda t: types.is_string(t) or types.is_binary(t), "strings", pa.string()),
    "texts or lists": (lambda t: types.is_string(t) or types.is_list(t), "strings", pa.string()),
    "integer": (types.is_integer, "integers", pa.int32()),
    "number": (is_number, "numbers", pa.float64()),
    "time": (lambda t: types.is_timestamp(t) or types.is_date32(t), "times", pa.timestamp("us")),
    "list": (types.is_list, "lists", pa.list_(pa.null())),
    "map": (types.is_map, "maps", pa.map_(pa.string(), pa.null())),
    "nested": (lambda t: types.is_list(t) or types.is_map(t), "lists", pa.list_(pa.null())),
    "any": (lambda t: True, "values", pa.null()),
}


def count_rule(min_count: int, max_count: int, count: int) -> str | None:
    """Return the rule that a number of arguments breaks, or None."""
    if min_count <= count <= max_count:
        return None
    several = "" if min_count == max_count else f" to {max_count}"
    return f"takes {min_count}{several} arguments, got {count}"


@dataclass(frozen=True)
class Call:
    """A call over some rows.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        For positions of errors.
    arrays : sequence of pyarrow.Array
        The arguments, of one length.
    literals : sequence
        The values of arguments that are literals; None for others.
    """

    node: exp.Expr
    arrays: Sequence[pa.Array]
    literals: Sequence[Any]

    def has_literal(self, index: int) -> bool:
        """Whether an argument is a literal that is not NULL, or is not there."""
        return index >= len(self.arrays) or self.literals[index] is not None

    def literal(self, index: int, default: Any = None) -> Any:
        """Return the value of a literal; the default for an argument that is not there.

        Raises
        ------
        SqlError
            If the argument is not a literal.
        """
        if index >= len(self.arrays):
            return default
        if self.literals[index] is None:
            rule = f"over Arrow tables argument {index + 1} must be a literal"
            raise sql_error(self.node, rule)
        return self.literals[index]


@dataclass(frozen=True)
class ArrowFunction:
    """A scalar function over Arrow arrays.

    Parameters
    ----------
    kinds : tuple of str
        A kind for each argument, of `_KINDS`; the last is repeated for further arguments.
    compute : callable
        Returns the values for a `Call`.
    min_arguments, max_arguments : int, optional
        Default: one argument for each kind.
    """

    kinds: tuple[str, ...]
    compute: Callable[[Call], pa.Array]
    min_arguments: int | None = None
    max_arguments: int | None = None

    def evaluate(self, node: exp.Expr, name: str, arguments: Sequence[Value]) -> Value:
        """Return the values of a call.

        Raises
        ------
        SqlError
            If arguments have another number or type, or in a condition of a join, which is an
            Arrow expression.
        """
        self._check_count(node, name, len(arguments))
        if any(each.expression is not None for each in arguments):
            rule = f"conditions of joins over Arrow tables have no {name}: add a column before"
            raise sql_error(node, rule)
        checked = [self._check_type(node, name, at, each) for at, each in enumerate(arguments)]
        literals = [None if one.literal is None else one.literal.as_py() for one in arguments]
        if all(isinstance(each.rows, pa.Scalar) for each in checked):
            single = [pa.array([each.rows.as_py()], each.dtype) for each in checked]
            return Value(self.compute(Call(node, single, literals))[0])
        return Value(self._compute_by_chunk(node, checked, literals))

    def _compute_by_chunk(
        self, node: exp.Expr, arguments: Sequence[Value], literals: Sequence[Any]
    ) -> pa.ChunkedArray:
        """Compute for chunks of rows that are aligned, so that no column is copied."""
        columns = [each.rows for each in arguments if not isinstance(each.rows, pa.Scalar)]
        table = pa.table(columns, names=[str(at) for at in range(len(columns))])
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        chunks = []
        for batch in batches:
            arrays = iter(batch.columns)
            aligned = [
                pa.repeat(each.rows, len(batch)) if isinstance(each.rows, pa.Scalar)
                else next(arrays)
                for each in arguments
            ]  # fmt: skip
            chunks.append(self.compute(Call(node, aligned, literals)))
        return pa.chunked_array(chunks)

    def _check_count(self, node: exp.Expr, name: str, count: int) -> None:
        min_count = len(self.kinds) if self.min_arguments is None else self.min_arguments
        max_count = len(self.kinds) if self.max_arguments is None else self.max_arguments
        rule = count_rule(min_count, max_count, count)
        if rule is not None:
            raise sql_error(node, f"{name} {rule}")

    def _check_type(self, node: exp.Expr, name: str, index: int, value: Value) -> Value:
        is_kind, kind, default = _KINDS[self.kinds[min(index, len(self.kinds) - 1)]]
        if types.is_null(value.dtype):
            return value.cast(default)
        if not is_kind(value.dtype):
            rule = f"over Arrow tables argument {index + 1} of {name} takes {kind}: cast it before"
            raise sql_error(node, rule, str(value.dtype))
        return value
