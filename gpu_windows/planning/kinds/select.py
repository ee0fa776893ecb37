"""A query that selects columns of rows: each row comes as it is, and nothing is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.planning.own_columns import ResultTimes
from gpu_windows.planning.plan import (
    Execution,
    QueryPlan,
    Strategy,
    build_plan,
    check_no_reference,
    check_options,
)
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN


@dataclass(frozen=True, kw_only=True)
class SelectQuery(Query):
    """Columns of rows, a result for each row. Other parameters: see `Query`.

    Parameters
    ----------
    columns : mapping of str to str
        Names of results to columns of the input.
    expressions : mapping of str to str
        Names of results to the expressions that their columns were computed by.
    """

    columns: Mapping[str, str]
    expressions: Mapping[str, str] = field(default_factory=dict, compare=False)
    #: Rows have no key.
    key_fields = ()
    #: Rows are not shuffled.
    shard_keys = ()
    usable_ticks = LONG_MIN, LONG_MAX
    time_dependent_part = "select"
    #: There is no state.
    ends_with_time = True
    #: Error message for a query over results of rows without a time.
    no_time_message = "rows need a time: call event_time(column, watermarks) before select"
    #: Error message for upsert of rows, which replace nothing.
    upsert_message = (
        "upsert keeps one result for each key and window: selected rows replace nothing"
    )

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that results have."""
        return tuple(dict.fromkeys(self.columns.values()))

    @property
    def carried_columns(self) -> frozenset[str]:
        """All columns: none is compared."""
        return frozenset(self.used_columns)

    @property
    def passed_columns(self) -> Mapping[str, str]:
        """Results with the values of a column: all."""
        return self.columns

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The selected columns."""
        return tuple(
            self.schema.field(column).with_name(name) for name, column in self.columns.items()
        )

    @property
    def needs_time(self) -> bool:
        """Whether rows too far in the future are rejected: those of a guard are.

        A row without a time is a result like any other.
        """
        return self.has_time and self.watermarks.is_guarded

    @property
    def results_in_time(self) -> ResultTimes:
        """The time of the row."""
        for name, column in self.columns.items():
            if column == self.time:
                return ResultTimes(name)
        return super().results_in_time

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        texts = {name: self.display_name(column) for name, column in self.columns.items()}
        columns = (
            name if name == text else f"{name} = {text}"
            for name, text in {**texts, **self.expressions}.items()
        )
        return {"select": ", ".join(columns), "time": self.time_description}

    @property
    def parts(self) -> Mapping[str, object]:
        """Nothing: there is no state."""
        return {}


#: How rows are selected.
SelectPlan: TypeAlias = QueryPlan[SelectQuery]

_IN_SPARK = "rows are selected and filtered by Spark: none crosses to Python"
_ON_STREAM = "the tasks that read rows write them as results: no shuffle, no state"
_LOCAL = "rows are results as they come: no state"


def plan_select(query: SelectQuery, execution: Execution) -> SelectPlan:
    """Plan a selection of rows."""
    check_options(query, "a selection of rows")
    check_no_reference(query, "a selection of rows")
    in_spark = execution.spark and execution.bounded
    why = _IN_SPARK if in_spark else _ON_STREAM if execution.spark else _LOCAL
    return build_plan(query, Strategy.SELECT, [why], execution, crosses=not in_spark)
