"""The first rows of keys in Flink's SQL: ROW_NUMBER over all rows of a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gpu_windows as gw
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.vocabulary.options import Options
from tests.conformance.errors import ScenarioError
from tests.conformance.keyed_rows import KeyedRows
from tests.conformance.scenario import Scenario

#: What Flink calls our changes.
CHANGES = {"insert": "+I", "update_after": "+U", "delete": "-D"}
#: Columns that statements order by: the time of a row is not that of the query here.
_COLUMNS = {"ts": "at", "value": "value"}
_NUMBER = "rn"


@dataclass(frozen=True)
class SqlTopN(KeyedRows):
    """The first rows of every key, as they change."""

    count: int
    order: Mapping[str, bool]
    number: str | None
    is_changelog: ClassVar[bool] = True

    def _keyed(self, keyed: KeyedStream, options: Options) -> gw.typing.Outputs:
        return keyed.with_outputs().top(
            self.count,
            [*self.order],
            descending=[*self.order.values()],
            columns=["value", "seq", "at"],
            number=self.number,
            arrival_order=["seq"],
            **vars(options),
        )

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the number, if it was asked for."""
        return {} if self.number is None else {self.number: row[self.number]}

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        of_row = {"key": row["key"], "ts": row["at"], "value": row["value"], "seq": row["seq"]}
        return {"op": CHANGES[row["change"]], **of_row, **self.payload(row), "timestamp": None}


def top_n(scenario: Scenario, ticks_per_ms: int) -> SqlTopN:
    """Return the first rows of keys."""
    del ticks_per_ms
    whole = scenario.operator.whole
    order: dict[str, bool] = {}
    for said in whole.words("order"):
        column, _, direction = said.partition(" ")
        if column not in _COLUMNS or direction not in ("asc", "desc"):
            rule = f"an order is of {', '.join(_COLUMNS)}, asc or desc"
            raise ScenarioError(rule, value=repr(said))
        order[_COLUMNS[column]] = direction == "desc"
    number = _NUMBER if whole.parameters.get("numbered") is True else None
    return SqlTopN(whole.integer("n"), order, number)
