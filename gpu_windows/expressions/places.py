"""Reads texts, and says where in them something is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpu_windows.errors import GpuWindowsError, QueryError, SqlError

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

_LONGEST = 60


def parsed(text: str) -> exp.Expr:
    """Return the tree of a statement.

    Raises
    ------
    SqlError
        With the place where it cannot be read.
    """
    _require_sqlglot()
    from gpu_windows.expressions.dialect import Flink, double_quote

    place = double_quote(str(text))
    if place is not None:
        rule = "texts stand in single quotes, names that need it in backquotes"
        line, before = text.count("\n", 0, place) + 1, text.rfind("\n", 0, place)
        raise SqlError(rule, value='"', line=line, position=place - before)
    return _parse(text, None, Flink)


def parsed_expression(text: str) -> exp.Expr:
    """Return the tree of an expression of Spark's; see `parsed`."""
    _require_sqlglot()
    from sqlglot import exp

    from gpu_windows.expressions.dialect import Expressions
    from gpu_windows.expressions.literals import with_folded_texts

    return with_folded_texts(_parse(text, exp.Condition, Expressions))


def parse_ddl(text: str) -> list[exp.Expr]:
    """Return the columns of a text in Spark's DDL: ``total DOUBLE, n INT NOT NULL``.

    Raises
    ------
    SqlError
        If the text cannot be read.
    """
    _require_sqlglot()
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    rule = "output= as a text is DDL, such as 'total DOUBLE, n INT'"
    try:
        tree = parse_one(f"CREATE TABLE output (\n{text}\n)", dialect="spark")
    except (SqlglotError, ValueError, RecursionError):
        raise SqlError(rule, value=_short(text)) from None
    columns = tree.this
    ends_open = text.rstrip().endswith(",")
    if ends_open or not isinstance(columns, exp.Schema) or _given(tree) - {"this", "kind"}:
        raise SqlError(rule, value=_short(text))
    return list(columns.expressions)


def _given(tree: exp.Expr) -> set[str]:
    return {name for name, value in tree.args.items() if value}


def _parse(text: object, into: type[exp.Expr] | None, language: type[Dialect]) -> exp.Expr:
    if not isinstance(text, str) or not text.strip():
        raise SqlError("SQL is a text", value=repr(text))
    from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

    from gpu_windows.expressions.dialect import fold_words, without_comments

    try:
        dialect, level = language(), ErrorLevel.IMMEDIATE
        if into is None:
            found = dialect.parse(without_comments(text), error_level=level)
        else:
            found = dialect.parse_into(into, text, error_level=level)
    except ParseError as error:
        said = error.errors[0] if error.errors else {}
        description = str(said.get("description") or error).partition("<")[0].rstrip(" :")
        rule = f"the SQL cannot be read: {description}"
        value = said.get("highlight") or None
        raise SqlError(rule, value=value, line=said.get("line"), position=said.get("col")) from None
    except (SqlglotError, ValueError, RecursionError) as error:
        raise SqlError("the SQL cannot be read", value=_short(text)) from error
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1:
        raise SqlError("there is one statement at a time", value=_short(text))
    _check_whole(trees[0])
    fold_words(trees[0])
    return trees[0]


def _check_whole(tree: exp.Expr) -> None:
    """Refuse what the parser took though a part of it is missing."""
    for node in tree.walk():
        lists = (each for each in node.args.values() if isinstance(each, list))
        has_gap = any(one is None for each in lists for one in each)
        if has_gap or node.error_messages():
            raise refused(node, "the SQL cannot be read: something is missing here")


def _require_sqlglot() -> None:
    if find_spec("sqlglot") is None:
        raise QueryError("SQL needs the extra `sql`", value="pip install 'gpu-windows[sql]'")


def refused(node: exp.Expr, rule: str, value: object = None) -> SqlError:
    """Return what is said of a part of a text, with its place."""
    line, position = _place(node)
    return SqlError(
        rule, value=shown(node) if value is None else value, line=line, position=position
    )


@contextmanager
def placed(node: exp.Expr) -> Iterator[None]:
    """Say where in the text it was that something was refused."""
    try:
        yield
    except QueryError as error:
        if isinstance(error, SqlError) and error.line is not None:
            raise
        line, position = _place(node)
        kind = {} if error.column is None else {"column": error.column}
        raise SqlError(
            error.rule, value=error.value, line=line, position=position, **kind
        ) from error
    except GpuWindowsError:
        raise


def shown(node: exp.Expr) -> str:
    """Return a part of a text, and not all of it if it is long."""
    from sqlglot.errors import ErrorLevel, SqlglotError

    from gpu_windows.expressions.dialect import Flink

    try:
        return _short(node.sql(dialect=Flink, unsupported_level=ErrorLevel.IGNORE))
    except (SqlglotError, ValueError, RecursionError):
        return type(node).__name__


def key_of(node: exp.Expr) -> str:
    """Return a text that is the same for the same expressions."""
    from sqlglot.errors import ErrorLevel

    return node.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE)


def written(node: exp.Expr) -> str:
    """Return an expression as Spark reads it, whatever its settings for literals are.

    Raises
    ------
    SqlError
        If Spark has no words for a part of it.
    """
    from sqlglot.errors import ErrorLevel, SqlglotError

    from gpu_windows.expressions.literals import SparkText

    try:
        return node.sql(dialect=SparkText, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise refused(node, f"Spark has no such expression: {error}") from None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def _place(node: exp.Expr) -> tuple[int | None, int | None]:
    """Return line and position of the first part of a node that knows them, or of one around it."""
    around: exp.Expr | None = node
    while around is not None:
        for part in around.walk(bfs=False):
            if "line" in part.meta:
                length = part.meta["end"] - part.meta["start"]
                return part.meta["line"], part.meta["col"] - length
        around = around.parent
    return None, None
