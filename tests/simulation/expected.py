"""The run that is the truth: one operator, row at a time, that is never put away."""

from __future__ import annotations

from gpu_windows.errors import GpuWindowsError
from tests.simulation.case import Case
from tests.simulation.groupings import truth
from tests.simulation.outcome import Given, Outcome


def expected(case: Case) -> Outcome:
    """Run a case without cuts, crashes, shards and stores."""
    planned = case.wanted
    operator = truth(planned, case.grouping)
    found: list[Given] = []
    try:
        for segment in case.segments():
            given = Given()
            found.append(given)
            if case.query.reads_processing_time:
                given.add(operator.advance_processing_time(segment.now))
            if segment.rows:
                given.add(operator.process(case.table(segment.rows, planned, segment.now)))
            if segment.after is not None:
                given.add(operator.advance_watermark(segment.after))
    except GpuWindowsError as error:
        return Outcome(found, {}, error)
    return Outcome(found, {name: n for name, n in operator.state_size().items() if n})
