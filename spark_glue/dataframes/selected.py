"""What selections make of the results of a query, in Spark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.errors import QueryError
from gpu_windows.runners.choosing import Selection
from gpu_windows.runners.outputs import Outputs
from gpu_windows.spark_glue.columns.expressions import says_what_spark_refuses
from gpu_windows.spark_glue.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What Spark calls aggregates, OVER and generators where there can be none.
_OF_MANY = (
    "INVALID_WHERE_CONDITION",
    "UNSUPPORTED_GENERATOR",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
)


def selected(frame: DataFrame, selections: Iterable[Selection]) -> DataFrame:
    """Return what selections make of results.

    Raises
    ------
    QueryError
        If Spark refuses an expression.
    """
    for each in selections:
        frame = _selected(frame, each)
    return frame


def check_by_row(frame: DataFrame, texts: Iterable[str], known: Sequence[str]) -> None:
    """Raise `QueryError` unless expressions are of one row alone.

    Spark takes aggregates, OVER and generators where it chooses columns, and would compute them of
    each micro-batch; in a condition it takes none. Nothing is run.
    """
    rows = frame.alias("some")  # through which Spark sees no groups
    for text in texts:
        with says_what_spark_refuses(text, known):
            value = F.expr(text)
            try:
                _ = rows.where(value.isNull()).schema
            except AnalysisException as error:
                if not (error.getCondition() or "").startswith(_OF_MANY):
                    raise
                rule = "an expression gives a value for each row: aggregates, OVER, explode do not"
                raise QueryError(rule, value=text) from error


def check_among(frame: DataFrame, names: Sequence[str], where: str) -> None:
    """Raise `QueryError` unless a condition is over these columns alone."""
    some = frame.select(*map(quoted, names)).alias("some")  # through which Spark sees no others
    selected(some, [Selection({}, frozenset(), where)])


def _selected(frame: DataFrame, selection: Selection) -> DataFrame:
    known = frame.columns
    if selection.where is not None:
        with says_what_spark_refuses(selection.where, known):
            frame = frame.where(selection.where)
            _ = frame.schema
    if not selection.columns:
        return frame
    texts = {
        name: quoted(name) if name in selection.as_they_are else text
        for name, text in selection.columns.items()
    }
    with says_what_spark_refuses(", ".join(texts.values()), known):
        frame = frame.select(*(F.expr(text).alias(name) for name, text in texts.items()))
        _ = frame.schema
    return frame


class SelectedInSpark(Outputs):
    """Outputs whose selections Spark checks."""

    @abstractmethod
    def _analyzed_results(self) -> DataFrame:
        """Return the results as Spark analyzes them; nothing is run."""

    def _check_selection(self) -> None:
        """Ask Spark, which is lazy."""
        _ = self._analyzed_results().schema

    def _check_by_row(self, texts: Sequence[str]) -> None:
        """Ask Spark, which would compute others of each micro-batch."""
        results = self._analyzed_results()
        check_by_row(results, texts, results.columns)

    def _check_among(self, names: Sequence[str], where: str) -> None:
        """Ask Spark about these columns alone."""
        check_among(self._analyzed_results(), names, where)
