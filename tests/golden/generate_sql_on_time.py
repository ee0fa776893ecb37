"""Scenarios of interval joins in Flink's SQL, in which no record is late.

``python -m tests.golden.generate_sql_on_time DIR`` writes them without results, which a run of
Apache Flink adds (`tests/oracle`). Late records join in SQL with what happens to be there: see
docs/joins.md.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.oracle.scenarios import write

SQL = (
    "SELECT L.`key` AS lk, R.`key` AS rk, L.ts AS left_ts, R.ts AS right_ts, L.`value` AS l, "
    "R.`value` AS r, L.idx AS left_seq, R.idx AS right_seq FROM L {join} JOIN R ON L.`key` = "
    "R.`key` AND R.rt BETWEEN L.rt {lower} AND L.rt {upper}"
)


def shift(ms: int) -> str:
    """Return an interval that is added to a time, in SQL."""
    return f"{'+' if ms >= 0 else '-'} INTERVAL '{abs(ms) // 1000}' SECOND"


def elements_of(rng: random.Random) -> list[dict[str, Any]]:
    """Return records of two sides and their watermarks, which are behind all that follow."""
    elements: list[dict[str, Any]] = []
    now, reached = 20_000, {"left": 0, "right": 0}
    for _ in range(60):
        now += rng.choice([0, 100, 250, 500, 1500])
        side = rng.choice(["left", "right"])
        if rng.random() < 0.2:
            time = now - rng.choice([1500, 2500])
            if time > reached[side]:
                reached[side] = time
                elements.append({"watermark": time, "side": side})
        least = max(min(reached.values()) + 1, now - 1500)
        key, ts, value = rng.choice("aabc"), rng.randint(least, now), rng.randint(-40, 40) / 4
        elements.append({"side": side, "key": key, "ts": ts, "value": value})
    return elements


def scenarios() -> Iterator[dict[str, Any]]:
    """Yield the scenarios."""
    bounds = [(-1000, 2000), (0, 3000), (-4000, 0), (1000, 5000), (-5000, -2000)]
    for seed in range(16):
        rng = random.Random(seed)
        join = ("inner", "left", "right", "full")[seed % 4]
        lower, upper = rng.choice(bounds)
        yield {
            "name": f"on_time_{seed:02}_{join}",
            "family": "sql_interval_join_on_time",
            "description": "an SQL interval join in which no record is late",
            "operator": {
                "kind": "sql_interval_join",
                "join": join,
                "lower_bound_ms": lower,
                "upper_bound_ms": upper,
            },
            "sql": SQL.format(join=join.upper(), lower=shift(lower), upper=shift(upper)),
            "input": elements_of(rng),
        }


if __name__ == "__main__":
    write(scenarios(), Path(sys.argv[1]))
