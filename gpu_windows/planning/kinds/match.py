"""A query that finds patterns in the rows of each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.errors import InvalidDurationError
from gpu_windows.functions.patterns.match import Match
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

    def _check_own(self) -> None:
        within = self.match.within
        if within is not None and not 0 < within < LONG_MAX:
            raise InvalidDurationError("a match is within some time", value=within)

    @property
    def used_columns(self) -> tuple[str, ...]:
        """What conditions and results read."""
        then = (name for name, _ in self.match.then)
        used = dict.fromkeys((*self.match.columns, *then))
        return tuple(name for name in used if name != self.time)

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """What is told of a match."""
        return self.match.fields(self.schema)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """Those beside which ``within`` fits 64 bits."""
        return LONG_MIN + 1 + (self.match.within or 0), LONG_MAX - 1 - (self.match.within or 0)

    @property
    def needs_time(self) -> bool:
        """Whether a row needs a time: always, for it tells their order."""
        return True

    @property
    def timed_part(self) -> str:
        """The pattern."""
        return self.match.describe()

    @property
    def ends_with_time(self) -> bool:
        """Whether the end of time clears what is kept: no row comes after it."""
        return True

    @property
    def no_time_rule(self) -> str:
        """What is said: a match waits for earlier ones."""
        return (
            "a query goes on from results that come in time: a match may come later than its last "
            "row, after earlier ones that were not over"
        )

    @property
    def clash_rule(self) -> str:
        """What is said where two columns of the result have one name."""
        return "keys and what is told of a match must have different names"

    @property
    def upsert_rule(self) -> str:
        """What is said where results are to replace others."""
        return "upsert keeps one result for each key and window: matches have no windows"

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return what depends on the order of rows of the same time: everything."""
        del bounded
        return ("which of the rows of one time comes first in a pattern",)

    def describe(self) -> Mapping[str, str]:
        """Return what is computed, part by part."""
        measures = ", ".join(f"{name} = {text}" for name, text in self.match.measure_texts.items())
        return {
            "match": self.match.describe(),
            "measures": measures,
            "time": self.shown_time,
            "key": ", ".join(self.shown_keys),
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The pattern, and what is told of matches."""
        return {"match": self.match.facts, "measures": dict(self.match.measure_texts)}
