"""Scenarios of joins with versions in Flink's SQL: ``FOR SYSTEM_TIME AS OF``.

``python -m tests.golden.generate_sql_versions DIR`` writes them without results, which a run of
Apache Flink adds (`tests/oracle`): ``sql_version_join`` with late rows of the right side,
``sql_version_join_late`` of both; and ``bounded_sql_version_join``, every watermark removed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.generate_twins import bounded
from tests.oracle.scenarios import write

SQL = (
    "SELECT L.`key` AS lk, R.`key` AS rk, L.ts AS left_ts, R.ts AS right_ts, L.`value` AS l, "
    "R.`value` AS r, L.idx AS left_seq, R.idx AS right_seq FROM L {join} JOIN R "
    "FOR SYSTEM_TIME AS OF L.rt ON {key} = R.`key`{condition}"
)
#: The key that is null on the left side, where one is.
NULL = "n"


def elements_of(rng: random.Random, late: tuple[str, ...], keys: str) -> list[dict[str, Any]]:
    """Return records of two sides and their watermarks, which those of some sides may follow."""
    elements: list[dict[str, Any]] = []
    now, reached = 20_000, {"left": 0, "right": 0}
    for _ in range(45):
        now += rng.choice([0, 100, 250, 500, 1500])
        side = rng.choice(["left", "right"])
        if rng.random() < 0.35:
            time = now - rng.choice([0, 500, 1500])
            if time > reached[side]:
                reached[side] = time
                elements.append({"watermark": time, "side": side})
        least = now - 2500 if side in late else max(min(reached.values()) + 1, now - 1500)
        ts = round(rng.randint(least, now), -2) if rng.random() < 0.5 else rng.randint(least, now)
        ts = max(ts, least)
        key, value = rng.choice(keys), rng.randint(-40, 40) / 4
        elements.append({"side": side, "key": key, "ts": ts, "value": value})
    return elements


def scenarios() -> Iterator[dict[str, Any]]:
    """Yield the scenarios."""
    for seed in range(18):
        rng = random.Random(seed)
        join = ("INNER", "LEFT", "LEFT")[seed % 3]
        late = ((), ("right",), ("left", "right"))[seed // 6]
        has_nulls, condition = seed % 6 == 4, "less" if seed % 6 in (3, 5) else None
        operator = {"kind": "sql_version_join", "join": join.lower(), "condition": condition,
                    "null_key": NULL if has_nulls else None}  # fmt: skip
        scenario = {
            "name": f"versions_{seed:02}_{join.lower()}",
            "family": "sql_version_join_late" if "left" in late else "sql_version_join",
            "description": "a temporal join, late: " + (", ".join(late) or "none"),
            "operator": {name: each for name, each in operator.items() if each is not None},
            "sql": SQL.format(
                join=join,
                key=f"NULLIF(L.`key`, '{NULL}')" if has_nulls else "L.`key`",
                condition=" AND L.`value` < R.`value`" if condition else "",
            ),
            "input": elements_of(rng, late, "aabcn" if has_nulls else "aabc"),
        }
        yield scenario
        if seed % 3 != 2:
            yield {**bounded(scenario), "family": "bounded_sql_version_join"}


if __name__ == "__main__":
    write(scenarios(), Path(sys.argv[1]))
