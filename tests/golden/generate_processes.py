"""Scenarios of process functions: by the clock, with side outputs, broadcast, restarted.

``python -m tests.golden.generate_processes DIR`` writes them without results, which a run of Apache
Flink adds (`tests/oracle`). First those of :mod:`process_cases` and :mod:`broadcast_cases`, then
small random ones of the families of :mod:`tests.oracle.families`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.golden import broadcast_cases, process_cases
from tests.golden.process_cases import Case
from tests.oracle.families import FAMILIES
from tests.oracle.scenarios import write
from tests.oracle.streams import Shape, stream

#: What is in each family: kinds of operators, and the cases of each.
CASES: dict[str, tuple[tuple[str, tuple[Case, ...]], ...]] = {
    "process_clock": (("process", process_cases.PROCESS_CLOCK),),
    "process_side_outputs": (("process", process_cases.PROCESS_SIDE_OUTPUTS),),
    "co_process_clock": (("co_process", process_cases.CO_PROCESS_CLOCK),),
    "broadcast_process": (
        ("broadcast_process", broadcast_cases.BROADCAST_PROCESS),
        ("broadcast_process", broadcast_cases.BROADCAST_RESTART),
    ),
    "process_restart": (
        ("process", broadcast_cases.PROCESS_RESTART),
        ("co_process", broadcast_cases.CO_PROCESS_RESTART),
    ),
}
#: How many random scenarios of each family.
RANDOM = {
    "process_clock": 30,
    "process_side_outputs": 28,
    "co_process_clock": 24,
    "broadcast_process": 24,
    "process_restart": 24,
}
_SEED = 18


def scenarios() -> Iterator[dict[str, Any]]:
    """Yield all scenarios."""
    for family, kinds in CASES.items():
        for kind, cases in kinds:
            yield from (_by_hand(family, kind, case) for case in cases)
        yield from (_random(family, index) for index in range(RANDOM[family]))


def _by_hand(family: str, kind: str, case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "family": family,
        "description": case.why,
        "operator": case.operator(kind),
        "input": list(case.input),
    }


def _random(family: str, index: int) -> dict[str, Any]:
    rng = random.Random(f"{_SEED}/{family}/{index}")
    operator, shape, *_ = FAMILIES[family].ask(rng)
    return {
        "name": f"random_{index:02d}_{operator['function']['type']}",
        "family": family,
        "description": f"random, seed {_SEED}, number {index}",
        "operator": operator,
        "input": _short(rng, shape),
    }


def _short(rng: random.Random, shape: Shape) -> list[dict[str, Any]]:
    """Return at most 60 elements of that shape."""
    return stream(rng, replace(shape, records=rng.choice([15, 30, 45])))[:60]


if __name__ == "__main__":
    write(scenarios(), Path(sys.argv[1]))
