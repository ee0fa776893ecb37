"""The local runner of scenarios: every field and the order, one operator, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpu_windows.planning.planner import plan as make_plan
from gpu_windows.rules import REASONS
from gpu_windows.vocabulary.options import Options
from tests.conformance.cases import Case
from tests.conformance.compare import Difference, compare_replay
from tests.conformance.replay import replay
from tests.conformance.scenario import Scenario
from tests.conformance.verdict import Run
from tests.reference.run import reference_plan


class LocalRunner:
    """Runs scenarios on the operator that the planner chooses.

    Parameters
    ----------
    options : Options
        Engine and device.
    """

    #: A tick is a millisecond.
    ticks_per_ms = 1

    def __init__(self, options: Options) -> None:
        self._options = options

    def skips(self, scenario: Scenario) -> str | None:
        """Return why a scenario that we could run is not run: for no reason."""
        del scenario
        return None

    def run(self, scenario: Scenario, case: Case) -> Run:
        """Replay a scenario and compare.

        Rows between two watermarks are one batch. Where rows themselves make windows fire, a
        batch does not tell which row did, so the scenario is replayed row by row as well; only so
        where the pairs of a firing are in Flink's hash order, and one must know which those are, or
        where a table changes with each row.
        """
        device, engine = self._options.device, self._options.engine
        query = case.query(replace(self._options, engine="auto"))
        make = reference_plan if engine == "reference" else make_plan
        plan = make(query, bounded=scenario.is_bounded)
        hashed = not scenario.elements_in_arrival_order and scenario.operator.kind == "window_join"
        split = 1 if hashed or case.is_changelog else None
        replayed = replay(scenario, plan, case, device=device, engine=engine, split=split)
        differences = compare_replay(scenario, replayed)
        if not differences and any(e["step"] is None for e in replayed.emissions):
            row_by_row = replay(scenario, plan, case, device=device, engine=engine, split=1)
            differences = list(_row_by_row(compare_replay(scenario, row_by_row)))
        counters = replayed.counters
        reasons = (reason for reason in REASONS.values() if getattr(counters, reason))
        return Run(plan.strategy, tuple(differences), frozenset(reasons))


def _row_by_row(differences: list[Difference]) -> Iterator[Difference]:
    for difference in differences:
        yield replace(difference, what=f"{difference.what}, fed row by row")
