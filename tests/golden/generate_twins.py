"""Scenarios that are recorded ones over again, in another way.

``python -m tests.golden.generate_twins DIR`` writes them without results, which a run of Apache
Flink adds (`tests/oracle`):

- ``bounded_sql_*``: the keyed windows of ``sql_window_tvf`` and ``sql_group_window`` with every
  watermark removed, as a batch job sees them;
- ``bounded_sql_over``: aggregates over the rows before a row, likewise;
- ``bounded_process_*``, ``bounded_co_process*``, ``bounded_broadcast_process``: process functions,
  likewise, and without clock and restarts; rows that are broadcast come first;
- ``sql_window_tvf_one_phase``: the windows before 1970. Flink's default, aggregation in two phases,
  loses those that a watermark up to 1970 fires.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.processed import tells_the_clock
from tests.conformance.scenario import Part
from tests.oracle.scenarios import write

GOLDEN = Path(__file__).parent
#: What a scenario has before it is recorded.
ASKED = ("name", "family", "description", "operator", "sql", "sql_options", "input")
STATEMENTS = ("sql_window_tvf", "sql_group_window")
PROCESSES = (
    *("process_function", "process_clock", "process_side_outputs"),
    *("co_process", "co_process_clock", "broadcast_process"),
)

Scenario = dict[str, Any]


def bounded(scenario: Scenario) -> Scenario:
    """Return a scenario's records only; those that are broadcast come first."""
    records = [element for element in scenario["input"] if "key" in element]
    if scenario["operator"]["kind"] == "broadcast_process":
        records.sort(key=lambda record: record["side"] != "right")
    return {**scenario, "family": f"bounded_{scenario['family']}", "input": records}


def in_one_phase(scenario: Scenario) -> Scenario:
    """Return a statement that is not aggregated before its rows are sent by key."""
    options = {"table.optimizer.agg-phase-strategy": "ONE_PHASE"}
    return {**scenario, "family": f"{scenario['family']}_one_phase", "sql_options": options}


def twins() -> Iterator[Scenario]:
    """Yield all of them."""
    for family in STATEMENTS:
        for path, scenario in _recorded(family):
            if scenario["operator"].get("group_by") == ["key", "window"]:
                yield bounded(scenario)
                if "negative" in path.stem and "session" not in path.stem:
                    yield in_one_phase(scenario)
    for _, scenario in _recorded("sql_over"):
        yield bounded(scenario)
    for family in PROCESSES:
        yield from _bounded_processes(family)


def _bounded_processes(family: str) -> Iterator[Scenario]:
    """Yield those with records, each once; a batch has another clock for functions that tell it."""
    known: list[tuple[Any, Any]] = []
    for _, scenario in _recorded(family):
        function = scenario["operator"]["function"]
        twin = bounded(scenario)
        asked = twin["operator"], twin["input"]
        told = tells_the_clock(Part("function", function["type"], function))
        if twin["input"] and not told and asked not in known:
            known.append(asked)
            yield twin


def _recorded(family: str) -> Iterator[tuple[Path, Scenario]]:
    for path in sorted((GOLDEN / family).glob("*.json")):
        recorded = json.loads(path.read_text(encoding="utf-8"))
        yield path, {name: recorded[name] for name in ASKED if name in recorded}


if __name__ == "__main__":
    write(twins(), Path(sys.argv[1]))
