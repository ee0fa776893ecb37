"""A query that keeps the first rows of every key up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.functions.top_changes import TopChanges
from gpu_windows.planning.build import build_plan
from gpu_windows.planning.execution import Execution, check_options
from gpu_windows.planning.plan import QueryPlan, Strategy
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: What names of results must be.
TOP_NAMES = "keys, columns, number and change must have different names"


@dataclass(frozen=True, kw_only=True)
class TopQuery(Query):
    """The first rows of keys, as changes of a table of them. Other parameters: see `Query`.

    Parameters
    ----------
    top : TopChanges
    """

    top: TopChanges

    @property
    def used_columns(self) -> tuple[str, ...]:
        """What stands in results, and what orders rows."""
        return self.top.columns

    @property
    def carried_columns(self) -> frozenset[str]:
        """What stands in results, and orders nothing."""
        return frozenset(self.used_columns) - {self.top.columns[place] for place, _ in self.top.by}

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The row's columns, its number, and what the change is."""
        return self.top.fields

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """All times."""
        return LONG_MIN, LONG_MAX

    @property
    def needs_time(self) -> bool:
        """Whether a row needs a time: rows count as they arrive."""
        return False

    @property
    def timed_part(self) -> str:
        """Nothing that needs a time."""
        return self.top.describe()

    @property
    def uses_processing_time(self) -> bool:
        """Whether keys are forgotten."""
        return self.top.time_to_live is not None

    @property
    def ends_with_time(self) -> bool:
        """Whether the end of time clears what is kept: the first rows stay what they are."""
        return False

    @property
    def no_time_rule(self) -> str:
        """What is said: a result takes the place of an earlier one."""
        return (
            "a query goes on from results that stay, and a top of keys changes them: take the top "
            "of windows, .window(...).top(...)"
        )

    @property
    def is_upserted(self) -> bool:
        """Whether a change names the row that it replaces: by its number, or as the only one."""
        return self.top.by_number

    @property
    def gives_one(self) -> bool:
        """Whether a change is told by its key and number."""
        return self.is_upserted

    @property
    def change_column(self) -> str:
        """What is told of the row."""
        return self.top.change

    @property
    def clash_rule(self) -> str:
        """What is said where two columns of the result have one name."""
        return TOP_NAMES

    @property
    def upsert_rule(self) -> str:
        """What is said where it does not."""
        return "upsert tells rows of a key apart by their number: leave out number=None"

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The number, if there is one."""
        return () if self.top.number is None else (self.top.number,)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return what depends on the order of rows that are equal."""
        del bounded
        return ("which of equal rows are among the first",)

    def describe(self) -> Mapping[str, str]:
        """Return what is computed, part by part."""
        return {
            "top": self.top.describe(),
            "time": self.shown_time,
            "key": ", ".join(self.shown_keys),
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """What is kept of a key."""
        return {"top": self.top}


#: How the first rows of keys are kept up to date.
TopPlan: TypeAlias = QueryPlan[TopQuery]

_FIRST_ROWS = (
    "top: the rows of all keys that came together sorted once, with the first ones of each until "
    "now; the others are left out, and what has changed is given when all are taken"
)


def plan_top(query: TopQuery, execution: Execution) -> TopPlan:
    """Plan the first rows of keys."""
    check_options(query, "a top of keys", has_reference=False)
    return build_plan(query, Strategy.TOP, [_FIRST_ROWS], execution)
