"""What selections make of the results of a query, in Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.runners.outputs import Selection
from gpu_windows.spark_glue.expressions import says_what_spark_refuses
from gpu_windows.spark_glue.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def _selected(frame: DataFrame, selection: Selection) -> DataFrame:
    known = frame.columns
    if selection.where is not None:
        with says_what_spark_refuses(selection.where, known):
            frame = frame.where(F.expr(selection.where))
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
