"""What becomes of results: they are added, or replace the ones before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.planning.kinds.firing_columns import FIRING
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.columns.names import quoted

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame

#: What may become of results.
Mode = Literal["append", "upsert"]
#: Name of a column of a moment: 1 for the last firing of a window.
_RANK = "__rank"


def check_known(mode: str) -> None:
    """Refuse what is no `Mode`.

    Raises
    ------
    QueryError
    """
    if mode not in ("append", "upsert"):
        raise QueryError('mode is "append" or "upsert"', value=repr(mode))


def checked_mapping(name: str, given: Any) -> dict[str, Any]:
    """Return a parameter of a sink as a dictionary of its own.

    Raises
    ------
    QueryError
    """
    if not isinstance(given, Mapping):
        raise QueryError(f"{name} of a sink is a mapping", value=repr(given))
    return dict(given)


def check_places(places: Mapping[str, str]) -> None:
    """Refuse two outputs that go to one place.

    Raises
    ------
    QueryError
    """
    if len({*places.values()}) < len(places):
        rule = "each output goes to a place of its own"
        raise QueryError(rule, value=", ".join(places.values()))


def check_upserted(plan: Plan) -> None:
    """Refuse results without what names the row that each replaces.

    Raises
    ------
    QueryError
        If they could be asked for.
    UnsupportedQueryError
        If these are results of no window.
    """
    query = plan.query
    if query.is_upserted:
        return
    if not query.has_windows:
        raise UnsupportedQueryError(query.upsert_message, value=plan.strategy.value)
    raise QueryError(query.upsert_message, value=", ".join(query.result_names))


def check_mode(plan: Plan, mode: Mode) -> None:
    """Refuse results that cannot replace each other, where they are to.

    Raises
    ------
    QueryError, UnsupportedQueryError
    """
    if mode == "append":
        return
    check_upserted(plan)
    if not plan.query.is_unique_per_firing:
        rule = 'mode="upsert" is for one result of a key and window: this function may give several'
        raise UnsupportedQueryError(rule, value=plan.query.describe().get("function"))


def check_sides(plan: Plan, sides: Mapping[str, Any]) -> None:
    """Refuse side outputs that have no place, and places of side outputs that are not there.

    Raises
    ------
    QueryError
    """
    tags = tuple(plan.query.side_outputs)
    if sorted(tags) != sorted(sides):
        rule = f"sides says where each side output of the query goes: {', '.join(tags) or 'none'}"
        raise QueryError(rule, value=", ".join(sides) or "none")


def latest(results: DataFrame, on: tuple[str, ...]) -> DataFrame:
    """Return the results of the last firings.

    Parameters
    ----------
    results : DataFrame
        With the firing columns.
    on : tuple of str
        Names of the columns that tell rows apart.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    firings = Window.partitionBy(*map(quoted, on)).orderBy(F.desc(FIRING[0].name))
    ranked = results.withColumn(_RANK, F.rank().over(firings))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK)
