"""What Spark refuses of an expression, in the words of queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpu_windows.errors import ColumnNotFoundError, QueryError

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import Column


@contextmanager
def says_what_spark_refuses(text: str, known: Sequence[str]) -> Iterator[None]:
    """Raise `QueryError` in the words of queries where Spark refuses an expression in SQL.

    Parameters
    ----------
    text : str
        The expression.
    known : sequence of str
        Names of the columns.
    """
    from pyspark.errors import AnalysisException

    if not isinstance(text, str):
        raise QueryError("an expression is a text in SQL, such as 'price * 2'", value=repr(text))
    try:
        yield
    except AnalysisException as error:
        raise refused(error, text, known) from error


#: What Spark calls an aggregate where there are no groups.
_NO_GROUPS = ("MISSING_GROUP_BY", "MISSING_AGGREGATION", "GROUP_BY_AGGREGATE")


def refused(error: AnalysisException, column: Column | str, known: Sequence[str]) -> QueryError:
    """Return what is said where Spark refuses an expression over the columns of an input.

    Parameters
    ----------
    error : AnalysisException
        What Spark said.
    column : Column or str
        The expression.
    known : sequence of str
        Names of the columns.
    """
    condition = error.getCondition() or ""
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = (error.getMessageParameters() or {}).get("objectName", str(column)).strip("`")
        rule = f"the input has no such column; it has {', '.join(known)}"
        return ColumnNotFoundError(rule, value=str(column), column=name)
    if condition.startswith(_NO_GROUPS):
        rule = "an expression gives a value for each row: for F.sum('v') write gw.sum('v')"
        return QueryError(rule, value=str(column))
    said = str(error).partition("\n")[0]
    return QueryError(f"an expression must be one that Spark computes: {said}", value=str(column))
