"""Errors of single rows, which are found while a query runs, on Spark in an executor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from gpu_windows.errors import ExpressionError, SqlError
from gpu_windows.sql.scripts.catalog import Catalog

#: Text of an error: a record that a table has, or a row that an INSERT gives. The latter is in the
#: query, which is compared at a restart, and so has no position, which an edit elsewhere changes.
_TEXT = re.compile(
    r"(?P<rule>table [^\n]*?), got (?P<value>.*?) \("
    r"(?:line (?P<line>\d+), position (?P<position>\d+) of the SQL|INSERT INTO (?P<target>.*?))\)",
    re.DOTALL,
)


def fail_where(condition: exp.Expr, target: str, rule: str) -> exp.If:
    """Return a branch of CASE that is an error for the rows of a condition.

    Parameters
    ----------
    condition : sqlglot.exp.Expr
    target : str
        The table of INSERT.
    rule : str
        What the rows break.
    """
    text = exp.Literal.string(f"table {target}: {rule}, got NULL (INSERT INTO {target})")
    message = exp.Case().when(condition.copy(), text)  # null elsewhere: see RAISE_ERROR over Arrow
    return exp.If(this=condition, true=exp.Anonymous(this="RAISE_ERROR", expressions=[message]))


@contextmanager
def errors_of_rows(catalog: Catalog) -> Iterator[None]:
    """Raise errors of rows as `SqlError`, with a position in the script."""
    from gpu_windows.spark_glue.columns.expressions import is_of_spark

    try:
        yield
    except Exception as error:
        found = _TEXT.search(str(error))
        if found is None or not (isinstance(error, ExpressionError) or is_of_spark(error)):
            raise
        rule, value, target = found["rule"], found["value"], found["target"]
        if target is not None:
            place = next(task.insert.place for task in catalog.inserts if task.name == target)
            raise place.error(rule, value) from error
        line, position = int(found["line"]), int(found["position"])
        raise SqlError(rule, value=value, line=line, position=position) from error
