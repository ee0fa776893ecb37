"""Scenarios of ``MATCH_RECOGNIZE`` in Flink's SQL.

``python -m tests.golden.generate_sql_matches DIR`` writes the cases of `match_cases` and
`match_rows` without results, which a run of Apache Flink adds (`tests/oracle`): ``sql_match``;
those with a watermark once more without, ``bounded_sql_match``; random ones,
``sql_match_random``; and what Flink refuses, ``sql_match_refused``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden import match_cases, match_rows
from tests.golden.generate_twins import Scenario, bounded
from tests.golden.match_cases import Case
from tests.oracle.families import scenario as random_scenario
from tests.oracle.matches import scenario_of
from tests.oracle.scenarios import write
from tests.oracle.streams import Element, number

ELEMENT = re.compile(r"~(?P<mark>-?\d+)|(?:(?P<key>\w*)(?:@(?P<ts>-?\d+))?=)?(?P<value>-?[\d.]+)")
CASES = (
    *(*match_cases.QUANTIFIERS, *match_cases.OVERLAPPING, *match_cases.SKIPS, *match_cases.WITHIN),
    *(*match_rows.ROWS, *match_rows.MEASURES, *match_rows.CONDITIONS, *match_rows.ENDS),
)
SEED, EACH = 20, 40


def elements_of(rows: str) -> list[Element]:
    """Return the elements that a case's rows are written for."""
    elements: list[Element] = []
    ts = 0
    for word in rows.split():
        found = ELEMENT.fullmatch(word)
        assert found is not None, word
        if found["mark"] is not None:
            elements.append({"watermark": int(found["mark"])})
            continue
        ts = ts + 1000 if found["ts"] is None else int(found["ts"])
        value = number(float(found["value"]))
        elements.append({"key": found["key"] or "a", "ts": ts, "value": value})
    return elements


def asked(case: Case, family: str) -> Scenario:
    """Return the scenario of a case."""
    return {
        "name": case.name,
        "family": family,
        "description": case.description,
        **scenario_of(case.pattern, case.define, **case.more),
        "input": elements_of(case.rows),
    }


def scenarios() -> Iterator[Scenario]:
    """Yield all of them."""
    for case in CASES:
        scenario = asked(case, "sql_match")
        yield scenario
        if "~" in case.rows:
            yield bounded(scenario)
    for index in range(EACH):
        drawn = random_scenario(SEED, index, ("match",))
        yield {**drawn, "name": f"match_{index:02d}", "family": "sql_match_random"}
    for case in match_rows.REFUSED:
        yield asked(case, "sql_match_refused")


if __name__ == "__main__":
    write(scenarios(), Path(sys.argv[1]))
