"""Conditions and new columns over drawn folders, in SQL."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

#: Conditions on each column, which statistics of row groups may decide.
_ON = {
    "ts": ("ts > TIMESTAMP '2024-01-01 00:00:00'", "ts IS NULL"),
    "i": ("i > 0", "i = 7", "I <> 7", "i IN (1, NULL, 7)", "i BETWEEN -1 AND 1", "NOT i <= 1"),
    "n": ("n < -50", "n + 1 > 90", "n NOT IN (3, 4)", "n IS NOT NULL", "n / n = 1"),
    "f": ("f > 1", "f = 0.0", "NOT f > 1", "f < -1", "f IS NULL", "f <=> f"),
    "d": ("d > 1.5", "d = 0", "d IN (0.001, 2)", "d BETWEEN -1.5 AND 2.25", "NOT d < 0"),
    "t": ("t = 'a'", "t > 'B'", "t < 'aa'", f"t = '{'a' * 70}'", "t IN ('b', 'é')", "t <> ''"),
    "day": ("day < DATE '1970-01-01'", "day = DATE '2024-01-01'", "day >= DATE '2024-01-02'"),
    "flag": ("flag", "NOT flag", "flag IS NULL", "flag = true"),
    "part": ("part IS NULL", "part IS NOT NULL"),
    "one": ("one > 5", "one = 5"),
    "two": ("two = 'A'", "two > 'a'"),
}
#: Columns that replace others, and conditions on these are of what they become.
_NEW = {"i": "i * -1", "n": "n + 1", "t": "upper(t)", "d": "d * 2", "flag": "NOT flag"}


def draw_condition(rng: Random, names: Collection[str], depth: int = 2) -> str:
    """Return a condition on some columns."""
    kind = rng.choice(["on", "on", "and", "or", "not", "both"]) if depth else "on"
    if kind == "on":
        known = [name for name in names if name in _ON]
        return rng.choice(_ON[rng.choice(known)])
    parts = [draw_condition(rng, names, depth - 1) for _ in range(2)]
    if kind == "not":
        return f"NOT ({parts[0]})"
    return f"({parts[0]}) {'OR' if kind == 'or' else 'AND'} ({parts[1]})"


def draw_columns(rng: Random, names: Collection[str]) -> dict[str, str]:
    """Return expressions of new columns, and of some that are replaced."""
    known = [name for name in names if name in _NEW]
    replaced = rng.sample(known, min(len(known), rng.randint(0, 2)))
    return {**{name: _NEW[name] for name in replaced}, "fresh": "i + 1"}
