"""Scenarios that are recorded ones over again, in another way.

``python -m tests.golden.generate_twins DIR`` writes them without results, which a run of Apache
Flink adds (`tests/oracle`):

- ``bounded_sql_*``: the keyed windows of ``sql_window_tvf`` and ``sql_group_window`` with every
  watermark removed, as a batch job sees them;
- ``sql_window_tvf_one_phase``: the windows before 1970. Flink's default, aggregation in two phases,
  loses those that a watermark up to 1970 fires.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.oracle.scenarios import write

GOLDEN = Path(__file__).parent
#: What a scenario has before it is recorded.
ASKED = ("name", "family", "description", "operator", "sql", "sql_options", "input")

Scenario = dict[str, Any]


def bounded(scenario: Scenario) -> Scenario:
    """Return a scenario without its watermarks."""
    records = [element for element in scenario["input"] if "watermark" not in element]
    return {**scenario, "family": f"bounded_{scenario['family']}", "input": records}


def in_one_phase(scenario: Scenario) -> Scenario:
    """Return a statement that is not aggregated before its rows are sent by key."""
    options = {"table.optimizer.agg-phase-strategy": "ONE_PHASE"}
    return {**scenario, "family": f"{scenario['family']}_one_phase", "sql_options": options}


def twins() -> Iterator[Scenario]:
    """Yield all of them."""
    for family in ("sql_window_tvf", "sql_group_window"):
        for path in sorted((GOLDEN / family).glob("*.json")):
            recorded = json.loads(path.read_text(encoding="utf-8"))
            scenario = {name: recorded[name] for name in ASKED if name in recorded}
            if recorded["operator"].get("group_by") == ["key", "window"]:
                yield bounded(scenario)
                if "negative" in path.stem and "session" not in path.stem:
                    yield in_one_phase(scenario)


if __name__ == "__main__":
    write(twins(), Path(sys.argv[1]))
