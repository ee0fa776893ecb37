"""Selections and SQL expressions over DataFrames, checked and computed by Spark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.errors import QueryError
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.selection import Arrangement, Selection, SortKey
from gpu_windows.spark_glue.columns.expressions import refusals_as_query_errors
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.types import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Error conditions of Spark for aggregates, OVER and generators where none is allowed.
_OF_MANY = (
    "INVALID_WHERE_CONDITION",
    "UNSUPPORTED_GENERATOR",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
)


def apply_selections(frame: DataFrame, selections: Iterable[Selection]) -> DataFrame:
    """Return results after selections.

    Raises
    ------
    QueryError
        If Spark refuses an expression.
    """
    for each in selections:
        frame = _arrange(frame, each) if isinstance(each, Arrangement) else _apply(frame, each)
    return frame


def check_by_row(frame: DataFrame, texts: Iterable[str], columns: Sequence[str]) -> None:
    """Raise `QueryError` unless expressions depend on one row alone.

    Spark allows aggregates, OVER and generators in SELECT, and would compute them per micro-batch;
    it refuses them in a condition, where this checks them. Nothing is run.
    """
    rows = frame.alias("some")  # through which Spark sees no groups
    for text in texts:
        with refusals_as_query_errors(text, columns):
            value = F.expr(text)
            try:
                _ = rows.where(value.isNull()).schema
            except AnalysisException as error:
                if not (error.getCondition() or "").startswith(_OF_MANY):
                    raise
                rule = "an expression gives a value for each row: aggregates, OVER, explode do not"
                raise QueryError(rule, value=text) from error


def check_among(frame: DataFrame, names: Sequence[str], where: str) -> None:
    """Raise `QueryError` unless a condition uses these columns alone."""
    some = frame.select(*map(quote_name, names)).alias("some")  # through which Spark sees no others
    apply_selections(some, [Selection({}, frozenset(), where)])


def _arrange(frame: DataFrame, arrangement: Arrangement) -> DataFrame:
    with refusals_as_query_errors(arrangement.describe(), frame.columns):
        if arrangement.distinct:
            frame = frame.distinct()
        if arrangement.sort_keys:
            frame = frame.orderBy(*map(_sort_order, arrangement.sort_keys))
        if arrangement.offset:
            frame = frame.offset(arrangement.offset)
        if arrangement.limit is not None:
            frame = frame.limit(arrangement.limit)
        _ = frame.schema
    return frame


def _sort_order(key: SortKey) -> Column:
    column = F.col(quote_name(key.column))
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def _apply(frame: DataFrame, selection: Selection) -> DataFrame:
    columns = frame.columns
    if selection.where is not None:
        with refusals_as_query_errors(selection.where, columns):
            frame = frame.where(selection.where)
            _ = frame.schema
    if not selection.columns:
        return frame
    texts = {
        name: quote_name(name) if name in selection.unchanged else text
        for name, text in selection.columns.items()
    }
    with refusals_as_query_errors(", ".join(texts.values()), columns):
        frame = frame.select(*(F.expr(text).alias(name) for name, text in texts.items()))
        _ = frame.schema
    return frame


class SparkOutputs(Outputs):
    """Base of outputs that are DataFrames: Spark checks their selections."""

    @abstractmethod
    def _analyzed_results(self) -> DataFrame:
        """Return a DataFrame with the schema of the results; it is analyzed, never run."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of `result`, in Arrow's types."""
        return to_arrow_schema(self._analyzed_results().schema)

    def _check_selection(self) -> None:
        """Let Spark analyze the selected results."""
        _ = self._analyzed_results().schema

    def _check_by_row(self, texts: Sequence[str]) -> None:
        """Let Spark check the expressions; see `check_by_row`."""
        results = self._analyzed_results()
        check_by_row(results, texts, results.columns)

    def _check_among(self, names: Sequence[str], where: str) -> None:
        """Let Spark check the condition over these columns."""
        check_among(self._analyzed_results(), names, where)
