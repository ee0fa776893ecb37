"""The run that is the truth: one operator, row at a time, that is never put away."""

from __future__ import annotations

from gpu_windows.errors import GpuWindowsError
from gpu_windows.spark_glue.times import Times
from tests.simulation.case import Case
from tests.simulation.groupings import truth
from tests.simulation.outcome import Given, Outcome


def expected(case: Case) -> Outcome:
    """Run a case without cuts, crashes, shards and stores."""
    planned = case.wanted
    operator, times = truth(planned, case.grouping), Times(case.query, case.clock)
    found: list[Given] = []
    try:
        for segment in case.segments():
            given = Given()
            found.append(given)
            time = times.processing_time(segment.now)
            if time is not None:
                given.add(operator.advance_processing_time(time))
            watermark = times.watermark(segment.now, segment.watermark)
            if watermark is not None:
                given.add(operator.advance_watermark(watermark))
            if segment.rows:
                given.add(operator.process(case.table(segment.rows, planned, segment.now)))
    except GpuWindowsError as error:
        return Outcome(found, {}, error)
    return Outcome(found, {name: n for name, n in operator.state_size().items() if n})
