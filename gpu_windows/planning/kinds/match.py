"""A query that finds patterns in the rows of each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.errors import InvalidDurationError
from gpu_windows.functions.patterns.match import Match
from gpu_windows.planning.plan import (
    REFERENCE,
    Execution,
    QueryPlan,
    Strategy,
    build_plan,
    check_options,
    check_watermarks_move,
)
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX, LONG_MIN


@dataclass(frozen=True, kw_only=True)
class MatchQuery(Query):
    """Matches of a pattern in the rows of each key, in order of time. For others see `Query`.

    Parameters
    ----------
    match : Match
    """

    match: Match
    #: Time orders the rows.
    needs_time = True
    #: No row comes after the end of time.
    ends_with_time = True
    #: Error message for a query over matches, which may come after earlier ones.
    no_time_message = (
        "a later stage needs results in time: a match may come later than its last row, after "
        "earlier ones that were still open"
    )
    clash_message = "keys and measures of a match must have different names"
    upsert_message = "upsert keeps one result for each key and window: matches have no windows"

    def _check_own(self) -> None:
        within = self.match.within
        if within is not None and not 0 < within < LONG_MAX:
            raise InvalidDurationError("a match is within some time", value=within)

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that conditions and results read."""
        then = (name for name, _ in self.match.then)
        used = dict.fromkeys((*self.match.columns, *then))
        return tuple(name for name in used if name != self.time)

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the measures of a match."""
        return self.match.fields(self.schema)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """The times for which ``within`` before and after them fits int64 ticks."""
        return LONG_MIN + 1 + (self.match.within or 0), LONG_MAX - 1 - (self.match.within or 0)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return what depends on the order of rows of the same time: all matches."""
        del bounded
        return ("which of the rows of one time comes first in a pattern",)

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        measures = ", ".join(f"{name} = {text}" for name, text in self.match.measure_texts.items())
        return {
            "match": self.match.describe(),
            "measures": measures,
            "time": self.time_description,
            "key": ", ".join(self.display_keys),
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The pattern and the measures."""
        return {"match": self.match.facts, "measures": dict(self.match.measure_texts)}


#: How patterns are found.
MatchPlan: TypeAlias = QueryPlan[MatchQuery]

_IN_AUTOMATON = (
    "match: the rows that the watermark has reached sorted by key and time, and an automaton "
    "compiled for the CPU that takes them key by key; what is true of one row is a column before"
)
_ONE_SHARD = "there is no key, so all rows go to one shard: one task finds patterns in them"


def plan_match(query: MatchQuery, execution: Execution) -> MatchPlan:
    """Plan a search for patterns."""
    check_options(query, "a pattern")
    check_watermarks_move(query, "a pattern on streams would never be found", execution)
    strategy, why = Strategy.MATCH, _IN_AUTOMATON
    if query.options.engine == "reference":
        strategy, why = Strategy.ROW_AT_A_TIME, REFERENCE
    reasons = [why] if query.has_key or not execution.spark else [why, _ONE_SHARD]
    return build_plan(query, strategy, reasons, execution)
