"""Parts of functions: checked arguments, and builders of Spark expressions.

A statement is parsed before the types of columns are known: a call whose expression in Spark
depends on the types of its arguments is a `TypedCall` until `gpu_windows.sql.syntax.value_types`
knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from sqlglot import exp

from gpu_windows.expressions.sql_text import parse_expression, sql_error


class TypedCall(exp.Expression, exp.Func):
    """A call of a function of Flink: ``this`` is its name, ``expressions`` its arguments."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}
    _sql_names: ClassVar[list[str]] = []


def typed_call(name: str, *arguments: exp.Expr) -> TypedCall:
    """Return a call that is rewritten when types are known."""
    return TypedCall(this=name, expressions=[*arguments])


class UnsupportedCallError(Exception):
    """A call whose result would differ from Flink's; the message is the rule."""


@contextmanager
def call_errors(node: exp.Expr, name: str, after: str = "") -> Iterator[None]:
    """Raise `UnsupportedCallError` as errors at a node: the name of the call, and its rule."""
    try:
        yield
    except UnsupportedCallError as error:
        raise sql_error(node, f"{name} {error}{after}") from None


@dataclass(frozen=True)
class Function:
    """A function.

    Parameters
    ----------
    min_arguments, max_arguments : int
        Number of arguments.
    make : callable
        Returns the Spark expression for arguments.
    on_arrow : str, optional
        The function over Arrow tables, if that is none of Spark's.
    """

    min_arguments: int
    max_arguments: int
    make: Callable[..., exp.Expr]
    on_arrow: str | None = None


#: Maximum number of arguments of functions that take any number.
UNLIMITED = 1_000


def spark_function(name: str) -> Callable[..., exp.Expr]:
    """Return a builder of calls of a function of Spark."""
    return lambda *each: exp.Anonymous(this=name, expressions=[*each])


def spark_functions(count: int, names: str) -> dict[str, Function]:
    """Return functions that Spark has by the same names, with a number of arguments."""
    return {name: Function(count, count, spark_function(name)) for name in names.split()}


def template(text: str) -> Callable[..., exp.Expr]:
    """Return a builder of a Spark expression over columns a, b, c, ...: its arguments.

    Examples
    --------
    >>> template("UPPER(a)")(exp.column("name")).sql()
    'UPPER(name)'
    """

    def build(*arguments: exp.Expr) -> exp.Expr:
        values = {"abcdefgh"[at]: in_parentheses(each) for at, each in enumerate(arguments)}
        tree = _parse_template(text).copy()
        for column in [*tree.find_all(exp.Column)]:
            if column.name not in values:  # a unit, such as DAY
                column.replace(exp.Var(this=column.name))
                continue
            value = values[column.name].copy()
            if column is tree:
                return value
            column.replace(value)
        return tree

    return build


@cache
def _parse_template(text: str) -> exp.Expr:
    tree = parse_expression(text)
    for node in tree.walk():
        for key in ("line", "col", "start", "end"):
            node.meta.pop(key, None)
    return tree


def in_parentheses(node: exp.Expr) -> exp.Expr:
    """Return an operand, in parentheses if it has operators."""
    bare = (exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Cast, exp.Case, exp.Null)
    return node if isinstance(node, bare) else exp.Paren(this=node)


def integer_literal(node: exp.Expr | None, min_value: int | None = None) -> int | None:
    """Return the value of an integer literal of at min_value a minimum; None for other nodes."""
    node = None if node is None else node.unnest()
    if isinstance(node, exp.Neg):
        value = integer_literal(node.this)
        found = None if value is None else -value
    else:
        found = int(node.name) if isinstance(node, exp.Literal) and node.is_int else None
    return None if found is None or (min_value is not None and found < min_value) else found


def text_literal(node: exp.Expr | None) -> str | None:
    """Return the value of a string literal; None for other nodes."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def need_text(node: exp.Expr, what: str) -> str:
    """Return the value of a string literal.

    Raises
    ------
    UnsupportedCallError
        For other nodes.
    """
    text = text_literal(node)
    if text is None:
        raise UnsupportedCallError(f"takes a literal {what}")
    return text


def need_some_text(node: exp.Expr, what: str) -> str:
    """Return the value of a string literal that is not empty; see `need_text`."""
    text = need_text(node, f"{what} that is not empty")
    if not text:
        raise UnsupportedCallError(f"takes a literal {what} that is not empty")
    return text


def need_choice(value: Any, choices: tuple[Any, ...], what: str) -> Any:
    """Return a value that is one of the choices.

    Raises
    ------
    UnsupportedCallError
        If it is not.
    """
    if value not in choices:
        raise UnsupportedCallError(f"takes {what} of {', '.join(map(str, choices))}")
    return value


def string(text: str) -> exp.Expr:
    """Return a string literal."""
    return exp.Literal.string(text)


def number(value: int) -> exp.Expr:
    """Return a number literal."""
    literal = exp.Literal.number(abs(value))
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal


def null_if_any(make: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Return a builder of a call that is NULL if an argument is, where Spark skips nulls."""

    def build(*each: exp.Expr) -> exp.Expr:
        nulls = [exp.Is(this=one.copy(), expression=exp.Null()) for one in each]
        value = make(*each)
        return exp.Case(ifs=[exp.If(this=exp.or_(*nulls), true=exp.Null())], default=value)

    return build
