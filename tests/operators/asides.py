"""What operators give in all, side outputs too, whether or not they are put away in between."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gpu_windows as gw
from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from tests.operators.slices.tasks import with_arrival
from tests.planning.queries import rows_of


class Given:
    """Sums up what operators give."""

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()
        self.counts: Counter[str] = Counter()

    def take(self, operator: Operator, step: Any) -> None:
        """Do a step: rows, or a watermark."""
        is_watermark = isinstance(step, int)
        emissions = operator.advance_watermark(step) if is_watermark else operator.process(step)
        for emission in emissions:
            for tag, table in {"": emission.results, **emission.sides}.items():
                self.rows.update((tag, row) for row in rows_of(table))
            self.counts.update({"fired": emission.counters.fired, **dict(emission.counters.user)})


def steps_of(outputs: Any) -> list[Any]:
    """Return the rows of a local query one by one, in order of time, and watermarks after them."""
    time = outputs.plan.query.time
    rows = with_arrival(outputs.data.sort_by(time))
    steps: list[Any] = []
    for place, at in enumerate(rows[time].to_pylist()):
        steps += [rows.slice(place, 1), at - 1]
    return [*steps, LONG_MAX]


def given(outputs: gw.typing.Outputs, *, put_away: bool) -> Given:
    """Return what a query gives row by row; its operator may be put away after each step."""
    planned, store, found = plan(outputs.plan.query, bounded=False), MemoryLog(), Given()
    operator = build_operator(planned)
    for step in steps_of(outputs):
        if put_away:
            operator = restore_operator(planned, store)
            found.take(operator, step)
            operator.save()
        else:
            found.take(operator, step)
    return found


def same_put_away(outputs: gw.typing.Outputs) -> Given:
    """Return what a query gives, which is the same if it is put away after each step."""
    found, wanted = (given(outputs, put_away=put_away) for put_away in (True, False))
    assert found.rows == wanted.rows
    assert found.counts == wanted.counts
    return found


def tags(found: Given) -> set[str]:
    """Return of which side outputs there are rows; the results are ""."""
    return {tag for tag, _ in found.rows}
