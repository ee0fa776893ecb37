"""The Spark batch runner of scenarios: the public API, a millisecond being a tick."""

from __future__ import annotations

import gpu_windows as gw
from gpu_windows.planning.own_columns import REASON
from gpu_windows.vocabulary.options import Options
from tests.conformance.cases import Case
from tests.conformance.compare import compare_rows, compare_sides
from tests.conformance.frames import SharedSession, emissions_of
from tests.conformance.processed import tells_the_clock
from tests.conformance.scenario import Scenario
from tests.conformance.verdict import Run


class BatchRunner:
    """Runs scenarios as Spark batch jobs, each one query, in one shared session.

    Parameters
    ----------
    options : Options
        Engine and device.
    """

    #: A microsecond of Spark's TIMESTAMP stands for a millisecond of the scenario. With 1,000, the
    #: last tick of a window would lie behind its last millisecond, where a timer may fit between.
    ticks_per_ms = 1

    def __init__(self, options: Options) -> None:
        self._options = options
        self._session = SharedSession()

    def close(self) -> None:
        """Stop the session, if this runner has started one."""
        self._session.close()

    def skips(self, scenario: Scenario) -> str | None:
        """Return why a scenario that we could run is not run."""
        if not scenario.is_bounded:
            return "a batch has no watermarks between its rows (see the bounded_* families)"
        function = scenario.operator.function
        if function is not None and tells_the_clock(function):
            return "the clock of a batch is that of the machine, and the function tells it"
        if scenario.operator.kind == "broadcast_process" and _is_mixed(scenario):
            return "a batch takes the rows that are broadcast before all others"
        return None

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Run a scenario as a batch job and compare."""
        session, frames = self._session.get(), []
        for side in case.sides:
            records = [record for record in scenario.records if record.side == side]
            frames.append(session.createDataFrame(case.table(records, self.ticks_per_ms)))
        watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
        outputs = case.outputs(frames, self._options, watermarks)
        found = emissions_of(outputs.result().toArrow(), case, self.ticks_per_ms)
        sides = {
            tag: [*emissions_of(outputs.side(tag).toArrow(), case, self.ticks_per_ms)]
            for tag in outputs.plan.query.side_outputs
        }
        steps = range(len(scenario.input) + 1)
        differences = (
            *compare_rows(scenario, list(found)),
            *compare_sides(scenario, steps, sides),
        )
        reasons: list[str] = []
        if scenario.expected_error is not None:
            reasons = outputs.rejected().toArrow().column(REASON).to_pylist()
        return Run(outputs.plan.strategy, differences, frozenset(reasons))


def _is_mixed(scenario: Scenario) -> bool:
    """Whether a row of the left side comes before one of the right side."""
    sides = [record.side for record in scenario.records]
    return sides != sorted(sides, key=lambda side: side != "right")
