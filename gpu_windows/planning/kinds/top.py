"""A query that keeps the first rows of every key up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.functions.top_changes import TopChanges
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

#: Error message for clashing names of results.
TOP_NAMES = "keys, columns, number and change must have different names"


@dataclass(frozen=True, kw_only=True)
class TopQuery(Query):
    """The first rows of keys, as changes of a table of them. Other parameters: see `Query`.

    Parameters
    ----------
    top : TopChanges
    """

    top: TopChanges
    usable_ticks = LONG_MIN, LONG_MAX
    #: Rows count as they arrive.
    needs_time = False
    #: The first rows stay.
    ends_with_time = False
    #: Error message for a query over results that replace earlier ones.
    no_time_message = (
        "a later stage needs final results, and a top of keys changes them: use the top of "
        "windows, .window(...).top(...)"
    )
    clash_message = TOP_NAMES
    #: Error message for upsert without numbers.
    upsert_message = "upsert identifies rows of a key by their number: leave out number=None"

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that results carry, and those that order rows."""
        return self.top.columns

    @property
    def carried_columns(self) -> frozenset[str]:
        """Columns that results carry, and that order nothing."""
        return frozenset(self.used_columns) - {self.top.columns[i] for i, _ in self.top.by}

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The row's columns, its number, and the kind of change."""
        return self.top.fields

    @property
    def uses_processing_time(self) -> bool:
        """Whether state of keys expires."""
        return self.top.time_to_live is not None

    @property
    def is_upserted(self) -> bool:
        """Whether a change identifies the row it replaces: by number, or as the only one."""
        return self.top.by_number

    @property
    def is_unique_per_firing(self) -> bool:
        """Whether key and number identify a change."""
        return self.is_upserted

    @property
    def change_column(self) -> str:
        """The result column with the kind of change."""
        return self.top.change

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The column with the number, if there is one."""
        return () if self.top.number is None else (self.top.number,)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return a description of what depends on the order of equal rows."""
        del bounded
        return ("which of equal rows are among the first",)

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        return {
            "top": self.top.describe(),
            "time": self.time_description,
            "key": ", ".join(self.display_keys),
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The first rows of a key."""
        return {"top": self.top}


#: How the first rows of keys are kept up to date.
TopPlan: TypeAlias = QueryPlan[TopQuery]

_FIRST_ROWS = (
    "top: the rows of all keys that came together sorted once, with the current first rows of each "
    "key; other rows are dropped, and changes are emitted after the whole batch"
)


def plan_top(query: TopQuery, execution: Execution) -> TopPlan:
    """Plan the first rows of keys."""
    check_options(query, "a top of keys")
    check_no_reference(query, "a top of keys")
    return build_plan(query, Strategy.TOP, [_FIRST_ROWS], execution)
