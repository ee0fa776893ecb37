"""Makes a case that fails smaller: fewer rows, marks, cuts, crashes and shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gpu_windows.planning.kinds.match import MatchQuery
from gpu_windows.planning.kinds.window import WindowQuery
from tests.simulation.case import Case, Element

#: Whether a case fails.
Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails) -> Case:
    """Return a case that fails, and does not without any one element of its script.

    Parameters
    ----------
    case : Case
        One that fails.
    fails : callable
    """
    case = _simpler_options(case, fails)
    size = max(1, len(case.script) // 2)
    while True:
        smaller = next((each for each in _without(case, size) if fails(each)), None)
        if smaller is not None:
            case = smaller
            size = min(size, max(1, len(case.script)))
        elif size > 1:
            size //= 2
        else:
            return case


def _simpler_options(case: Case, fails: Fails) -> Case:
    loose = replace(case, is_tight=False)
    if case.is_tight and fails(loose):
        case = loose
    changes: list[dict[str, Any]] = [{"shards": 1}, {"batch_rows": 1 << 17}]
    if isinstance(case.query, WindowQuery | MatchQuery) and case.grouping is None:
        changes.append({"engine": "reference", "device": "cpu"})  # it is of a CPU alone
    for change in changes:
        simpler = replace(case, options=replace(case.options, **change))
        if simpler != case and fails(simpler):
            case = simpler
    return case


def _without(case: Case, size: int) -> Iterator[Case]:
    """Yield the case without ``size`` elements of its script, the last ones first."""
    script: tuple[Element, ...] = case.script
    for begin in reversed(range(0, len(script), size)):
        yield replace(case, script=script[:begin] + script[begin + size :])
