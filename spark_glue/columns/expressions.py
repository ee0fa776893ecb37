"""Errors of Spark about expressions, as `QueryError` in terms of the query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpu_windows.errors import ColumnNotFoundError, QueryError

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import Column


@contextmanager
def refusals_as_query_errors(text: str, columns: Sequence[str]) -> Iterator[None]:
    """Raise `QueryError` in terms of the query where Spark refuses an expression in SQL.

    Parameters
    ----------
    text : str
        The expression.
    columns : sequence of str
        Names of the columns that it may use.
    """
    from pyspark.errors import AnalysisException

    if not isinstance(text, str):
        raise QueryError("an expression is a text in SQL, such as 'price * 2'", value=repr(text))
    try:
        yield
    except AnalysisException as error:
        raise refusal_error(error, text, columns) from error
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise QueryError(f"{_COMPUTES}: {summary(error)}", value=text) from error


@contextmanager
def spark_errors_as_query_errors() -> Iterator[None]:
    """Raise `QueryError` for any error of Spark, PySpark or Py4J."""
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise QueryError(f"Spark refuses this: {summary(error)}") from error


def is_of_spark(error: Exception) -> bool:
    """Whether an error is of PySpark (Spark Connect included) or Py4J."""
    rooms = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not rooms.isdisjoint(("pyspark", "py4j", "grpc"))


def summary(error: Exception) -> str:
    """Return the message of an error, on one line and without Java's stack."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return _PLACE.sub("", text.strip().partition("\n")[0])


#: The position in Spark's own text, which is not the user's.
_PLACE = re.compile(r";? ?line \d+,? pos \d+;?$")
_COMPUTES = "an expression must be one that Spark computes"
#: Error conditions of Spark for an aggregate without groups.
_NO_GROUPS = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "GROUP_BY_AGGREGATE")


def refusal_error(
    error: AnalysisException, column: Column | str, columns: Sequence[str]
) -> QueryError:
    """Return the error to raise where Spark refuses an expression over the columns of an input.

    Parameters
    ----------
    error : AnalysisException
        Spark's error.
    column : Column or str
        The expression.
    columns : sequence of str
        Names of the columns that it may use.
    """
    condition = error.getCondition() or ""
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = (error.getMessageParameters() or {}).get("objectName", str(column)).strip("`")
        rule = f"the input has no such column; it has {', '.join(columns)}"
        return ColumnNotFoundError(rule, value=str(column), column=name)
    if condition.startswith(_NO_GROUPS):
        rule = "an expression gives a value for each row: for F.sum('v') write gw.sum('v')"
        return QueryError(rule, value=str(column))
    return QueryError(f"{_COMPUTES}: {summary(error)}", value=str(column))
