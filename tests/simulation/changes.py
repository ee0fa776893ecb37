"""Results that are changes of a table: drawn, applied micro-batch by micro-batch, and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa

from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.window import Aggregates
from gpu_windows.operators.build import build_operator
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EarlyAndLateTrigger,
    EventTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from tests.planning.queries import AGGREGATES
from tests.simulation.case import Case
from tests.simulation.outcome import Given, Outcome, Values
from tests.simulation.parts import aggregates
from tests.simulation.script import SCHEMA
from tests.simulation.user_parts import SessionsUpTo


def with_changes(query: Query, rng: Random) -> Query:
    """Return a query of windows that tells changes, in half of the cases where it can."""
    if not isinstance(query, WindowQuery) or rng.random() < 0.5:
        return query
    if rng.random() < 0.4 and not isinstance(query.function, WindowJoin):
        query = _growing(query, rng)
    try:
        return replace(query, changes=True, firing_columns=True)
    except GpuWindowsError:
        return query


def _growing(query: WindowQuery, rng: Random) -> WindowQuery:
    """Return a query of sessions that fire early, or late, and go on growing."""
    interval = rng.randint(1, 8)
    early: list[Trigger] = [CountTrigger(1), CountTrigger(2), ContinuousEventTimeTrigger(interval)]
    triggers = [
        EventTimeTrigger(),
        ContinuousEventTimeTrigger(interval),
        EarlyAndLateTrigger(rng.choice(early), None),
        EarlyAndLateTrigger(rng.choice(early), None),
        PurgingTrigger(rng.choice(early)),
        CountTrigger(1),
    ]
    gaps = EventTimeSessionWindows(rng.randint(5, 40)), EventTimeSessionWindows(0, "gap")
    return replace(
        query,
        assigner=rng.choice([*gaps, SessionsUpTo(10, 30)]),
        trigger=rng.choice(triggers),
        evictor=query.evictor if rng.random() < 0.3 else None,
        function=query.function if rng.random() < 0.4 else aggregates(rng, SCHEMA, AGGREGATES),
        allowed_lateness=rng.choice([0, 40, 1_000]),
        ranking=None,
        changed_only=False,
        grouping=None,
    )


@dataclass
class Table:
    """A table that changes keep up to date.

    Parameters
    ----------
    keys : int
        How many columns the key has; the bounds of windows are the two after them.
    rows : dict
        Key and bounds to the values of the row.
    problems : list of str
        Changes that mean nothing.
    """

    keys: int
    rows: dict[Values, Values] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def apply(self, results: Counter[Values]) -> None:
        """Apply what a micro-batch gives: rows of a key and window by the number of the firing."""
        for row in sorted(results.elements(), key=lambda row: row[-3]):
            name, values, change = row[: self.keys + 2], row[self.keys + 2 : -3], row[-1]
            if (change == "insert") == (name in self.rows):
                self.problems.append(f"{row}: the table has {self.rows.get(name)}")
            if change == "delete":
                self.rows.pop(name, None)
            else:
                self.rows[name] = values

    @property
    def overlaps(self) -> bool:
        """Whether a key has sessions that touch: one came after the other was dropped."""
        spans = sorted(self.rows, key=repr)
        return any(
            one[: self.keys] == other[: self.keys] and one[-2] <= other[-1] and other[-2] <= one[-1]
            for number, one in enumerate(spans)
            for other in spans[:number]
        )


def wrong_changes(case: Case, found: Outcome, facts: dict[str, int]) -> Iterator[str]:
    """Yield in words which changes mean nothing, and how the table differs from a batch run."""
    query = case.query
    if not (isinstance(query, WindowQuery) and query.changes) or found.error is not None:
        return
    if query.declared_sides or not (query.assigner.is_event_time or query.is_global):
        return  # processing time may go back, to windows that were dropped
    table = Table(len(query.keys))
    for segment in found.segments:
        table.apply(segment.results)
        facts["taken back"] = facts.get("taken back", 0) + sum(
            count for row, count in segment.results.items() if row[-1] == "delete"
        )
    if not isinstance(query.assigner, SessionsUpTo):  # the same session may come again
        yield from (f"change: {text}" for text in table.problems)
    if _ends_as_batch(query) and not (
        table.overlaps or any(s.counters.late for s in found.segments)
    ):
        facts["compared tables"] = 1
        yield from _against_batch(case, query, table)


def _ends_as_batch(query: WindowQuery) -> bool:
    """Whether the last result of a session is of all its rows, in whatever order they come."""
    function = query.function
    sums = isinstance(function, Aggregates) and not any(function.ordered_parts)
    sessions = isinstance(query.assigner, EventTimeSessionWindows)
    return sums and sessions and query.evictor is None and _fires_for_all(query.trigger)


def _fires_for_all(trigger: Trigger) -> bool:
    """Whether a trigger fires at the end of windows, and for each row that comes after it."""
    if isinstance(trigger, EarlyAndLateTrigger):
        return trigger.late is None
    return isinstance(trigger, EventTimeTrigger | ContinuousEventTimeTrigger)


def _against_batch(case: Case, query: WindowQuery, table: Table) -> Iterator[str]:
    from tests.simulation.differences import unmatched

    once = replace(
        query,
        changes=False,
        firing_columns=False,
        trigger=EventTimeTrigger(),
        allowed_lateness=0,
        options=Options(engine="reference"),
    )
    planned = plan(once, bounded=True, spark=True)
    operator, given = build_operator(planned), Given()
    segments = [each for each in case.segments() if each.rows]
    parts = [case.table(each.rows, planned, each.now) for each in segments]
    if parts:
        given.add(operator.process(pa.concat_tables(parts)))
    given.add(operator.advance_watermark(LONG_MAX))
    rows: Counter[Any] = Counter(name + values for name, values in table.rows.items())
    missing, extra = unmatched(given.results, rows)
    yield from (f"table: lacks {row}" for row in missing)
    yield from (f"table: has {row}" for row in extra)
