"""Sinks that write each output of a query to a place of its own: a topic, or a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from gpu_windows.commits.records import LATE, RESULT, side_name
from gpu_windows.errors import OutputError, QueryError
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.sink import Sink, SinkBatch
from gpu_windows.sinks.modes import Mode, check_is_mode, check_mode

_Place = TypeVar("_Place")


class PlacedSink(Sink):
    """A sink with a place for each output; subclasses are frozen dataclasses.

    Attributes
    ----------
    mode : {"append", "upsert"}
    sides : mapping
        Tags of side outputs to their places.
    """

    mode: Mode
    sides: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_is_mode(self.mode)
        check_takes_over(getattr(self, "takes_over", False))
        object.__setattr__(self, "sides", copy_mapping("sides", self.sides))

    def check(self, plan: Plan) -> None:
        """Raise for results that cannot replace each other, and for side outputs without a place.

        Raises
        ------
        QueryError, UnsupportedQueryError
        """
        self._check_mode(plan)
        tags = tuple(plan.query.side_outputs)
        if sorted(tags) != sorted(self.sides):
            names = ", ".join(tags) or "none"
            rule = f"sides says where each side output of the query goes: {names}"
            raise QueryError(rule, value=", ".join(self.sides) or "none")

    def _check_mode(self, plan: Plan) -> None:
        check_mode(plan, self.mode)


def copy_mapping(name: str, given: Any) -> dict[str, Any]:
    """Return a copy of a parameter of a sink; raise `QueryError` unless it is a mapping."""
    if not isinstance(given, Mapping):
        raise QueryError(f"{name} of a sink is a mapping", value=repr(given))
    return dict(given)


def check_takes_over(takes_over: object) -> None:
    """Raise `QueryError` for a value of ``takes_over`` that is not a bool."""
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
    """Raise `QueryError` if two outputs go to one place."""
    if len({*places.values()}) < len(places):
        rule = "each output needs a place of its own"
        raise QueryError(rule, value=", ".join(places.values()))


def is_written(
    batch: SinkBatch, number: int, rows: int, planned_ms: int | None, *, holder: str, table: str
) -> bool:
    """Whether the last micro-batch in a table is this one; not if it is an earlier one.

    Parameters
    ----------
    batch : SinkBatch
    number, rows, planned_ms
        Of the last one.
    holder, table : str
        The table, in the text of the error and as its value.

    Raises
    ------
    OutputError
        If it is a later one, or another one of the same number.
    """
    if number < batch.number:
        return False
    if number > batch.number or not batch.is_again(rows, planned_ms):
        rule = (
            f"the checkpoint continues with micro-batch {batch.number} of {batch.rows} rows, and "
            f"{holder} holds micro-batch {number} of {rows} rows: either the checkpoint is an "
            "older copy, or what comes before gw.stream has changed. Write to another table"
        )
        raise OutputError(rule, value=table)
    return True
