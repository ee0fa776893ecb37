"""What Spark refuses of an expression, in the words of queries."""

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
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise QueryError(f"{_COMPUTES}: {summary(error)}", value=text) from error


@contextmanager
def refuses_as_query() -> Iterator[None]:
    """Raise `QueryError` for an error of Spark's, PySpark's or Py4J's, whatever it is of."""
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise QueryError(f"Spark refuses this: {summary(error)}") from error


def is_of_spark(error: Exception) -> bool:
    """Whether an error is Spark's own: PySpark's, of Spark Connect or not, or Py4J's."""
    rooms = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not rooms.isdisjoint(("pyspark", "py4j", "grpc"))


def summary(error: Exception) -> str:
    """Return what an error says, on one line and without Java's stack."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return _PLACE.sub("", text.strip().partition("\n")[0])


#: Where in its own text Spark found it, which is not the user's.
_PLACE = re.compile(r";? ?line \d+,? pos \d+;?$")
_COMPUTES = "an expression must be one that Spark computes"
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
    return QueryError(f"{_COMPUTES}: {summary(error)}", value=str(column))
