"""Modes of sinks: results are appended, or replace earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gpu_windows.commits.records import LATE, RESULT, side_name
from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.planning.own_columns import FIRING
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame

_Place = TypeVar("_Place")
#: How results are written.
Mode = Literal["append", "upsert"]
#: Name of a temporary column: 1 for the last firing of a window.
_RANK = "__rank"


def check_is_mode(mode: str) -> None:
    """Raise `QueryError` for a value that is not a `Mode`.

    Raises
    ------
    QueryError
    """
    if mode not in ("append", "upsert"):
        raise QueryError('mode is "append" or "upsert"', value=repr(mode))


def copy_mapping(name: str, given: Any) -> dict[str, Any]:
    """Return a copy of a parameter of a sink that must be a mapping.

    Raises
    ------
    QueryError
    """
    if not isinstance(given, Mapping):
        raise QueryError(f"{name} of a sink is a mapping", value=repr(given))
    return dict(given)


def check_takes_over(takes_over: object) -> None:
    """Raise `QueryError` for a value of ``takes_over`` that is not a bool.

    Raises
    ------
    QueryError
    """
    if not isinstance(takes_over, bool):
        raise QueryError("takes_over is True or False", value=repr(takes_over))


def output_places(
    result: _Place, late: _Place | None, sides: Mapping[str, _Place]
) -> dict[str, _Place]:
    """Return the names of the outputs that a sink writes, to their places.

    Parameters
    ----------
    result, late
        Places of results, and of late and rejected rows if these are written.
    sides : mapping
        Tags of side outputs to their places.
    """
    places = {RESULT: result, **{side_name(tag): place for tag, place in sides.items()}}
    return places if late is None else {**places, LATE: late}


def check_places(places: Mapping[str, str]) -> None:
    """Raise `QueryError` if two outputs go to one place.

    Raises
    ------
    QueryError
    """
    if len({*places.values()}) < len(places):
        rule = "each output needs a place of its own"
        raise QueryError(rule, value=", ".join(places.values()))


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


def check_sides(plan: Plan, sides: Mapping[str, Any]) -> None:
    """Raise `QueryError` unless every side output has a place, and every place a side output.

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
        Names of the columns that identify rows.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    firings = Window.partitionBy(*map(quote_name, on)).orderBy(F.desc(FIRING[0].name))
    ranked = results.withColumn(_RANK, F.rank().over(firings))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK)
