"""Statements that `gw.sql` rewrites to what the API has: joins, subqueries, names.

``python -m tests.golden.generate_rewrites DIR`` writes them without results, which a run of Apache
Flink adds (`tests/oracle`): ``rewrites``, and ``bounded_rewrites``, the same with every watermark
removed, as a batch job sees them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.golden.generate_twins import Scenario, bounded
from tests.golden.rewritten_texts import STATEMENTS
from tests.oracle.scenarios import write

#: Rows of one table, and of two.
_ROWS = {False: 60, True: 40}
_STEP_MS, _DISORDER_MS = 500, 2_000


def rewrites() -> Iterator[Scenario]:
    """Yield all of them."""
    for name, sql in STATEMENTS.items():
        words = f" {sql} ".replace(",", " ").replace("(", " ").split()
        sides = bool({"L", "R"} & {*words})
        made: Scenario = {
            "name": name,
            "family": "rewrites",
            "description": "a statement that is rewritten",
            "operator": {"kind": "sql_rewrite"},
            "sql": " ".join(sql.split()),
            "input": [*_elements(sides=sides)],
        }
        yield made
        yield bounded(made)


def _elements(*, sides: bool) -> Iterator[Mapping[str, Any]]:
    """Yield rows a little out of order, none of them late, and watermarks between them."""
    rng = random.Random(41)
    for index in range(_ROWS[sides]):
        record: dict[str, Any] = {"key": rng.choice("abc")}
        if sides:
            record = {"side": rng.choice(["left", "right"]), **record}
        time = 10_000 + index * _STEP_MS - rng.randrange(0, _DISORDER_MS, 250)
        yield {**record, "ts": time, "value": rng.randrange(-8, 24) / 4}
        if index % 6 == 5:
            yield {"watermark": 10_000 + index * _STEP_MS - _DISORDER_MS}


if __name__ == "__main__":
    write(rewrites(), Path(sys.argv[1]))
