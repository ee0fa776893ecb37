"""SQL text: parses it, adds positions to errors, and generates it for Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpu_windows.errors import QueryError, SqlError, require_extra

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

_MAX_EXCERPT = 60


def parse_tree(text: str) -> exp.Expr:
    """Parse a statement.

    Raises
    ------
    SqlError
        With the position where it cannot be parsed.
    """
    _require_sqlglot()
    from gpu_windows.expressions.dialect import FlinkDialect, double_quote

    offset = double_quote(str(text))
    if offset is not None:
        rule = "strings take single quotes, and names that need quotes take backquotes"
        raise error_at(text, offset, rule, '"')
    return _parse(text, None, FlinkDialect)


def parse_expression(text: str) -> exp.Expr:
    """Parse an expression of Spark's; see `parse_tree`."""
    _require_sqlglot()
    from sqlglot import exp

    from gpu_windows.expressions.dialect import ExpressionDialect
    from gpu_windows.expressions.spark_literals import fold_literals

    return fold_literals(_parse(text, exp.Condition, ExpressionDialect))


def check_text(text: object) -> str:
    """Return an SQL text; refuse what is none."""
    if not isinstance(text, str) or not text.strip():
        raise SqlError("SQL must be a string that is not empty", value=repr(text))
    return text


def _parse(text: object, into: type[exp.Expr] | None, language: type[Dialect]) -> exp.Expr:
    text = check_text(text)
    from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

    from gpu_windows.expressions.dialect import upper_keywords, without_comments
    from gpu_windows.expressions.parse_hints import missing_sign, table_function_rule

    try:
        dialect, level = language(), ErrorLevel.IMMEDIATE
        if into is None:
            found = dialect.parse(without_comments(text), error_level=level)
        else:
            found = dialect.parse_into(into, text, error_level=level)
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        description = str(detail.get("description") or error).partition("<")[0].rstrip(" :")
        rule = f"the SQL cannot be parsed: {description}"
        if into is None and (hint := table_function_rule(text)) is not None:
            raise error_at(text, *hint) from None
        word, line, position = (detail.get(each) for each in ("highlight", "line", "col"))
        if word and line and position:
            position -= len(word) - 1  # of its first letter
            if into is None and description.startswith("Invalid expression"):
                rule += missing_sign(text, word, line, position)
        raise SqlError(rule, value=word or None, line=line, position=position) from None
    except (SqlglotError, ValueError, RecursionError) as error:
        raise SqlError("the SQL cannot be parsed", value=shorten(text)) from error
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1:
        raise SqlError("SQL must be one statement", value=shorten(text))
    _check_whole(trees[0])
    upper_keywords(trees[0])
    return trees[0]


def _check_whole(tree: exp.Expr) -> None:
    """Refuse a tree that the parser accepted although a part is missing."""
    for node in tree.walk():
        lists = (each for each in node.args.values() if isinstance(each, list))
        has_gap = any(one is None for each in lists for one in each)
        if has_gap or node.error_messages():
            raise sql_error(node, "the SQL cannot be parsed: something is missing here")


def _require_sqlglot() -> None:
    require_extra("sqlglot", "sql", "SQL")


def sql_error(node: exp.Expr, rule: str, value: object = None) -> SqlError:
    """Return an error with the position of a node; the value defaults to an excerpt of it."""
    line, position = _position_of(node)
    return SqlError(
        rule, value=excerpt(node) if value is None else value, line=line, position=position
    )


def error_at(text: str, offset: int, rule: str, value: str) -> SqlError:
    """Return an error with the position of an offset in a text."""
    line, before = text.count("\n", 0, offset) + 1, text.rfind("\n", 0, offset)
    return SqlError(rule, value=value, line=line, position=offset - before)


@contextmanager
def errors_at(node: exp.Expr) -> Iterator[None]:
    """Add the position of a node to errors of queries that have none."""
    try:
        yield
    except QueryError as error:
        if isinstance(error, SqlError) and error.line is not None:
            raise
        line, position = _position_of(node)
        kind = {} if error.column is None else {"column": error.column}
        raise SqlError(
            error.rule, value=error.value, line=line, position=position, **kind
        ) from error


def excerpt(node: exp.Expr) -> str:
    """Return the SQL of a node for a message, shortened to one line."""
    return shorten(written_text(node))


def written_text(node: exp.Expr) -> str:
    """Return the SQL of a node as it was written, but for spaces and the case of keywords."""
    from sqlglot.errors import ErrorLevel, SqlglotError

    from gpu_windows.expressions.dialect import FlinkDialect

    try:
        return node.sql(dialect=FlinkDialect, unsupported_level=ErrorLevel.IGNORE)
    except (SqlglotError, ValueError, RecursionError):
        return type(node).__name__


def canonical_text(node: exp.Expr) -> str:
    """Return SQL that is equal for equal expressions."""
    from sqlglot.errors import ErrorLevel

    return node.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE)


def to_spark_sql(node: exp.Expr) -> str:
    """Return an expression as SQL that Spark parses alike under all settings for literals.

    Raises
    ------
    SqlError
        If Spark has no syntax for a part of it.
    """
    from sqlglot.errors import ErrorLevel, SqlglotError

    from gpu_windows.expressions.spark_literals import SparkLiterals

    try:
        return node.sql(dialect=SparkLiterals, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise sql_error(node, f"Spark has no such expression: {error}") from None


def shorten(text: str) -> str:
    """Return a text on one line, of a length for messages."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_EXCERPT else f"{line[: _MAX_EXCERPT - 3]}..."


def position_meta(node: exp.Expr) -> dict[str, Any]:
    """Return the metadata with the position of the first part of a node that has one, or none."""
    return next((part.meta for part in node.walk(bfs=False) if "line" in part.meta), {})


def _position_of(node: exp.Expr) -> tuple[int | None, int | None]:
    """Return line and position of the first part of a node that has them, or of an ancestor."""
    around: exp.Expr | None = node
    while around is not None:
        meta = position_meta(around)
        if meta:
            return meta["line"], meta["col"] - (meta["end"] - meta["start"])
        around = around.parent
    return None, None
