"""Draws patterns, over columns as they are: a script has no others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from tests.oracle.random_matches import draw_pattern
from tests.simulation import parts

#: Of the rows of a variable ``{x}``, of which ``{y}`` comes before.
_CONDITIONS = (
    *("{x}.b", "{x}.b OR {x}.text = {y}.text", "{x}.day > {y}.day", "{x}.d <> {y}.d"),
    *("COUNT({x}.i) <= 2", "SUM({x}.small) > {y}.small", "AVG({x}.f) < {y}.f + 1.5"),
    *("MAX({x}.i) - MIN({x}.i) <= 5", "{x}.ts - {y}.ts < 9", "{x}.text <= LAST({x}.text, 1)"),
    "LAST({x}.i, 1) IS NULL OR {x}.i >= LAST({x}.i, 1)",
    "CASE WHEN {x}.i > {y}.i THEN {x}.b ELSE {y}.b END",
)
_MEASURES = (
    *("FIRST({x}.i)", "LAST({x}.text, 1)", "{x}.d", "text", "COUNT({x}.b)", "COUNT(*)"),
    *("SUM({x}.small)", "MIN({x}.text)", "MAX({x}.d)", "AVG({x}.f)", "MATCH_ROWTIME()"),
    *("SUM(value)", "FIRST(day)", "MAX(text)"),
)


def match(rng: Random, schema: pa.Schema, watermarks: WatermarkStrategy) -> Query:
    """Draw a pattern, conditions and measures."""
    text = draw_pattern(rng)
    names = Pattern.of(text).names
    define = {
        name: rng.choice(_CONDITIONS).format(x=name, y=names[max(place - 1, 0)])
        for place, name in enumerate(names)
        if rng.random() < 0.7
    }
    keyed = gw.stream(schema.empty_table()).event_time("ts", watermarks).key_by(*parts.keys(rng))
    matched = keyed.match_recognize(
        text,
        define,
        within=rng.choice([None, timedelta(microseconds=rng.randint(1, 40))]),
        after=_after(rng, Pattern.of(text)),
    )
    if rng.random() < 0.2:
        matched = matched.then_by("i", "text", descending=[True, False])
    outputs = matched.arrival_order("seq").with_outputs().measures(**_measures(rng, names))
    return outputs.plan.query


def _measures(rng: Random, names: Sequence[str]) -> dict[str, str]:
    drawn = rng.sample(_MEASURES, rng.randint(1, 4))
    return {f"m{place}": each.format(x=rng.choice(names)) for place, each in enumerate(drawn)}


def _after(rng: Random, pattern: Pattern) -> str:
    sure = [each.name for each in pattern.variables[1:] if each.min_rows]
    choices = ["skip to next row", "skip past last row"]
    if sure and pattern.variables[0].min_rows:
        choices.append(f"skip to {rng.choice(['first', 'last'])} {rng.choice(sure)}")
    return rng.choice(choices)
