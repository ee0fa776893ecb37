"""Random statements of ``MATCH_RECOGNIZE``, none of which Flink refuses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.oracle.matches import NULL_VALUE, elements_of, rows_of, scenario_of
from tests.oracle.parts import Part
from tests.oracle.streams import Shape, around

ONCE: tuple[str, ...] = ("", "", "", "", "{2}", "?")
GREEDY = ("*", "+", "{2,}", "{1,2}", "{1,3}", "{0,2}", "{2,3}")
RELUCTANT = tuple(f"{quantifier}?" for quantifier in GREEDY)
#: Each of the rows of a variable ``{x}``, of which ``{y}`` comes before; numbers are from 0 to 4.
ALONE = (
    *("{x}.value <= {n}", "{x}.value >= {m}", "{x}.value <> {n}", "{x}.value IN ({n}, {m})"),
    *("MOD({x}.idx, 3) <> {m}", "{x}.value <= {n} OR {x}.value IS NULL"),
)
OF_A_LOOP = (
    "LAST({x}.value, 1) IS NULL OR {x}.value >= LAST({x}.value, 1)",
    "LAST({x}.value, 1) IS NULL OR {x}.value < LAST({x}.value, 1)",
    *("{x}.value >= FIRST({x}.value)", "SUM({x}.value) <= 2 * {n}", "COUNT({x}.value) <= {m}"),
    *("AVG({x}.value) <= {n}", "MAX({x}.value) - MIN({x}.value) <= {m}"),
    "COUNT({x}.idx) < 4 AND {x}.value <> {m}",
)
WITH_ANOTHER = (
    *("{x}.value >= {y}.value", "{x}.value <> LAST({y}.value)", "{x}.value <= FIRST({y}.value)"),
    *("{x}.value + {m} > {y}.value", "{x}.value <= SUM({y}.value)", "COUNT({y}.idx) <= {m}"),
    *("{x}.ts <= FIRST({y}.ts) + 3000", "{y}.value IS NULL OR {x}.value > LAST({y}.value, 1)"),
)
MEASURES = (
    *("SUM({x}.value)", "COUNT({x}.value)", "MIN({x}.value)", "MAX({x}.value)", "AVG({x}.value)"),
    *("{x}.value", "FIRST({x}.value, 1)", "LAST({x}.value, 1)", "LAST({x}.value, 2)", "{x}.ts"),
    *("{x}.value - {y}.value", "SUM({x}.idx) + COUNT({y}.value)", "AVG({x}.idx)", "MAX({x}.key)"),
    *("COUNT(*)", "SUM(value)", "AVG(value)", "MIN(idx)", "FIRST(ts)", "value", "LAST(value, 1)"),
)


def match(rng: random.Random) -> tuple[Part, Shape, dict[str, Any]]:
    """Return a statement, the shape of its rows, and its text."""
    pattern = draw_pattern(rng)
    elements = elements_of(pattern)
    nulls = rng.random() < 0.2
    within = rng.choice([None, None, None, 1000, 2500, 4000, 8000])
    scenario = scenario_of(
        pattern,
        _define(rng, elements),
        measures=rows_of(elements) | _measures(rng, elements),
        skip=_skip(rng, elements),
        within_ms=within,
        partition_by=rng.choice([("key",), ("key",), ("key",), ()]),
        order_by=rng.choice([("rt",), ("rt",), ("rt",), ("rt", "value DESC")]),
        nulls=nulls,
    )
    shape = Shape(
        rng.choice([40, 120, 200]),
        rng.choice([50, 300]),
        1000,
        value=lambda: NULL_VALUE if nulls and rng.random() < 0.2 else rng.randint(0, 4),
        echoes=(0,) if within is None else around(within),
    )
    return scenario.pop("operator"), shape, scenario


def draw_pattern(rng: random.Random) -> str:
    """Draw a pattern of two to five variables."""
    while True:
        variables = "ABCDE"[: rng.choice([2, 2, 3, 3, 4, 5])]
        quantifiers = [rng.choice(rng.choice([ONCE, ONCE, GREEDY, RELUCTANT])) for _ in variables]
        if _is_taken(quantifiers):
            return " ".join(map("".join, zip(variables, quantifiers, strict=True)))


def _is_taken(quantifiers: Sequence[str]) -> bool:
    """Return whether Flink takes them: the last may not be a greedy loop, and so on."""
    optional = [each.startswith(("?", "*", "{0")) for each in quantifiers]
    behind_greedy = (
        may_miss and before in GREEDY
        for before, may_miss in zip(quantifiers, optional[1:], strict=False)
    )
    return quantifiers[-1] not in GREEDY and not all(optional) and not any(behind_greedy)


def _define(rng: random.Random, elements: Sequence[Part]) -> dict[str, str]:
    """Return conditions of most variables, of the first one at the least."""
    define: dict[str, str] = {}
    for index, element in enumerate(elements):
        if index and rng.random() < 0.2:
            continue
        name, before = element["variable"], elements[max(index - 1, 0)]
        known = define.get(before["variable"])
        if known and before["max"] != 1 and before["greedy"] and rng.random() < 0.6:
            # a greedy loop is left only by a row that is none of its own
            define[name] = f"NOT ({known.replace(before['variable'] + '.', name + '.')})"
        else:
            define[name] = _condition(rng, element, elements[:index])
    return define


def _condition(rng: random.Random, element: Part, before: Sequence[Part]) -> str:
    choices: list[tuple[str, ...]] = [ALONE, ALONE]
    if element["max"] != 1:
        choices += [OF_A_LOOP]
    if before:
        choices += [WITH_ANOTHER]
    y = rng.choice(before)["variable"] if before else ""
    n, m = rng.randint(1, 3), rng.randint(0, 2)
    condition = rng.choice(rng.choice(choices))
    return condition.format(x=element["variable"], y=y, n=n, m=m)


def _measures(rng: random.Random, elements: Sequence[Part]) -> dict[str, str]:
    names = [element["variable"] for element in elements]
    return {
        f"m{index}": rng.choice(MEASURES).format(x=rng.choice(names), y=rng.choice(names))
        for index in range(rng.randint(0, 4))
    }


def _skip(rng: random.Random, elements: Sequence[Part]) -> str | None:
    """Return where to go on: never at the first row of the match, nor at one that may miss."""
    sure = [element["variable"] for element in elements if element["min"]]
    choices = [None, "past_last_row", "past_last_row", "to_next_row"]
    if len(sure) > 1:
        choices += [f"{rng.choice(['to_first', 'to_last', 'to'])} {rng.choice(sure[1:])}"]
    return rng.choice(choices)
