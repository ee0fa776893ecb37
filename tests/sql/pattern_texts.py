"""Random statements with MATCH_RECOGNIZE, and the patterns of the API."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.functions.patterns.pattern import Pattern
from tests.oracle.random_matches import draw_pattern
from tests.sql.texts import Text

_CONDITIONS = (
    *("{x}.ok", "{x}.v > 0", "NOT {x}.ok OR {x}.v IS NULL", "{x}.v >= {y}.v", "v < LAST({y}.v)"),
    *("{x}.x <> {y}.x", "SUM({x}.v) < 20", "COUNT({x}.n) <= 2", "AVG({x}.x) > {y}.x - 1"),
    "LAST({x}.v, 1) IS NULL OR {x}.v > LAST({x}.v, 1)",
    "{x}.ts - {y}.ts < INTERVAL '5' SECONDS",
    "CASE WHEN {x}.n = 1 THEN {x}.v > {y}.v ELSE TRUE END",
)
_MEASURES = (
    *("{x}.v", "FIRST({x}.v)", "LAST({x}.x, 1)", "COUNT({x}.v)", "SUM(v)", "MAX(k)", "COUNT(*)"),
    *("MATCH_ROWTIME()", "{x}.v - FIRST({y}.v)", "COALESCE({x}.n, -1)", "AVG({x}.v) / COUNT(*)"),
    "UPPER({x}.k)",
)


def patterns(rng: random.Random) -> Text:
    """Return matches of a pattern."""
    pattern = draw_pattern(rng)
    names = Pattern.of(pattern).names
    keys = rng.choice([[], ["k"], ["k", "n"]])
    define = {
        name: rng.choice(_CONDITIONS).format(x=name, y=names[max(place - 1, 0)])
        for place, name in enumerate(names)
        if rng.random() < 0.7
    }
    told = {f"m{place}": _measure(rng, names) for place in range(rng.randrange(1, 4))}
    after, within = _after(rng, Pattern.of(pattern)), rng.choice([None, 1, 5, 60])
    then = rng.choice([None, "v", "v DESC"])
    where = rng.choice(["", "m0 IS NOT NULL"])
    clauses = [
        f"PARTITION BY {', '.join(keys)}" if keys else "",
        f"ORDER BY ts{'' if then is None else f', {then}'}",
        f"MEASURES {', '.join(f'{text} AS {name}' for name, text in told.items())}",
        rng.choice(["", "ONE ROW PER MATCH"]),
        f"AFTER MATCH {after.upper()}" if after else "",
        f"PATTERN ({pattern})",
        f"WITHIN INTERVAL '{within}' SECOND" if within else "",
        f"DEFINE {', '.join(f'{n} AS {text}' for n, text in define.items())}" if define else "",
    ]
    shown = rng.choice([["*"], ["m0"], [*keys, "q.m0"]])
    sql = (
        f"SELECT {', '.join(shown)} FROM t MATCH_RECOGNIZE ({' '.join(filter(None, clauses))}) "
        f"AS q{f' WHERE {where}' if where else ''}"
    )

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        options: dict[str, Any] = {"within": within and f"{within} s"}
        if after:
            options["after"] = after
        if keys:
            matched = tables["t"].key_by(*keys).match_recognize(pattern, define, **options)
        else:
            matched = tables["t"].match_recognize_all(pattern, define, **options)
        if then is not None:
            matched = matched.then_by("v", descending="DESC" in then)
        outputs = matched.with_outputs().measures(**told)
        found = (outputs.select(where=where) if where else outputs).result()
        return found if shown == ["*"] else found.select([n.removeprefix("q.") for n in shown])

    return Text(sql, of)


def _measure(rng: random.Random, names: Sequence[str]) -> str:
    return rng.choice(_MEASURES).format(x=rng.choice(names), y=rng.choice(names))


def _after(rng: random.Random, pattern: Pattern) -> str:
    sure = [each.name for each in pattern.variables[1:] if each.min_rows]
    choices = ["", "skip to next row", "skip past last row"]
    if sure and pattern.variables[0].min_rows:
        choices.append(f"skip to {rng.choice(['first', 'last'])} {rng.choice(sure)}")
    return rng.choice(choices)
