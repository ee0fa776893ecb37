"""Modes of sinks: results are appended, or replace earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.planning.own_columns import FIRING
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.sink import SinkQuery
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame

#: How results are written.
Mode = Literal["append", "upsert"]
#: Name of a temporary column: 1 for the last firing of a window.
_RANK = "__rank"


def check_is_mode(mode: str) -> None:
    """Raise `QueryError` for a value that is not a `Mode`."""
    if mode not in ("append", "upsert"):
        raise QueryError('mode is "append" or "upsert"', value=repr(mode))


def check_can_upsert(plan: Plan) -> None:
    """Raise for results without the columns that identify the row each replaces.

    Raises
    ------
    QueryError
        If the query could have them.
    UnsupportedQueryError
        If these are not results of windows.
    """
    query = plan.query
    if query.is_upserted:
        return
    if not query.has_windows:
        raise UnsupportedQueryError(query.upsert_message, value=plan.strategy.value)
    raise QueryError(query.upsert_message, value=", ".join(query.result_names))


def check_mode(plan: Plan, mode: Mode) -> None:
    """Raise if a mode needs results to replace each other and they cannot.

    Raises
    ------
    QueryError, UnsupportedQueryError
    """
    if mode == "append":
        return
    check_can_upsert(plan)
    if not plan.query.is_unique_per_firing:
        rule = 'mode="upsert" is for one result of a key and window: this function may give several'
        raise UnsupportedQueryError(rule, value=plan.query.describe().get("function"))


@dataclass(frozen=True)
class Replacement:
    """How results replace earlier ones.

    Parameters
    ----------
    on : tuple of str
        Names of the columns that identify rows.
    change : str, optional
        The column that marks deleted rows, which tables do not have.
    fires : bool
        Whether results are firings of windows: then the last one in a micro-batch counts. Other
        results occur once in a micro-batch.
    """

    on: tuple[str, ...]
    change: str | None = None
    fires: bool = True

    @classmethod
    def of(cls, query: SinkQuery) -> Self:
        """Return how the results of a query do."""
        computed = query.plan.query
        return cls(query.row_columns, computed.change_column, computed.has_windows)

    def latest(self, results: DataFrame) -> DataFrame:
        """Return the results of a micro-batch that count."""
        if not self.fires:
            return results
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

        firings = Window.partitionBy(*map(quote_name, self.on)).orderBy(F.desc(FIRING[0].name))
        ranked = results.withColumn(_RANK, F.rank().over(firings))
        return ranked.where(F.col(_RANK) == 1).drop(_RANK)
