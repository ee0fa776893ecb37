"""A seed is tried, and what comes of it told."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_windows.planning.plan import explain
from gpu_windows.vocabulary.options import Device
from tests.simulation.case import Case, Crash, Cut, Mark, Row
from tests.simulation.changes import wrong_changes
from tests.simulation.differences import differences
from tests.simulation.draw import case_of
from tests.simulation.execution import Execution
from tests.simulation.expected import expected
from tests.simulation.shrink import shrink

#: Differences that are shown.
_SHOWN = 12

MakeExecution = Callable[[Case], Execution]


@dataclass(frozen=True)
class Trial:
    """What came of a seed.

    Parameters
    ----------
    seed : int
    strategy : str
        Of the execution.
    facts : mapping of str to int
        What there was of it: rows, results, calls, crashes.
    failure : str, optional
        What is wrong, of the smallest case that was found.
    is_left_out : bool
        Whether it was not run.
    """

    seed: int
    strategy: str
    facts: dict[str, int] = field(default_factory=dict)
    failure: str | None = None
    is_left_out: bool = False


def try_seed(
    seed: int, device: Device = "cpu", make: MakeExecution = Execution, *, only: str = ""
) -> Trial:
    """Run the case of a seed; make it smaller if it fails.

    ``only``: a word of the strategies that are run; the others' seeds are left out.
    """
    case, refused = case_of(seed, device)
    strategy = case.executed.strategy.value
    if only not in strategy:
        return Trial(seed, strategy, is_left_out=True)
    facts = {"refused": refused}
    wrong = _wrong(case, make, facts)
    if not wrong:
        return Trial(seed, strategy, facts)
    smallest = shrink(case, lambda smaller: bool(_wrong(smaller, make, {})))
    told = _told(smallest, _wrong(smallest, make, {}), device)
    return Trial(seed, strategy, facts, told)


def _wrong(case: Case, make: MakeExecution, facts: dict[str, int]) -> list[str]:
    """Return what is wrong with a case; whatever is raised is."""
    try:
        execution = make(case)
        wanted, found = expected(case), execution.run()
        facts |= {
            "rows": sum(isinstance(each, Row) for each in case.script),
            "results": sum(each.results.total() for each in wanted.segments),
            "late": sum(each.counters.late for each in wanted.segments),
            "errors": int(wanted.error is not None),
            "calls": execution.calls,
            "crashes": execution.crashes,
            "aggregated": sum(each.counters.locally_aggregated for each in found.segments),
        }
        return [*differences(case, wanted, found), *wrong_changes(case, found, facts)]
    except Exception as error:  # noqa: BLE001 - a failure is what is looked for
        return traceback.format_exception(error)[-8:]


def _told(case: Case, wrong: list[str], device: Device) -> str:
    flag = "" if device == "cpu" else f" --device {device}"
    lines = [
        f"seed {case.seed}: python -m tests.simulation --seeds {case.seed}..{case.seed + 1}{flag}",
        explain(case.executed),
        f"run as    {case.options}, tight: {case.is_tight}, ahead: {case.ahead}",
        f"          results: {', '.join(case.query.result_names)}",
        *map(_shown, case.script),
        *(text.rstrip() for text in wrong[:_SHOWN]),
    ]
    if len(wrong) > _SHOWN:
        lines.append(f"and {len(wrong) - _SHOWN} more")
    return "\n".join(lines)


def _shown(element: Row | Mark | Cut | Crash) -> str:
    if not isinstance(element, Row):
        return f"  {element}"
    values = ", ".join(f"{name}={value!r}" for name, value in element.values.items())
    return f"  row {element.seq} (place {element.place:.2f}): {values}"
