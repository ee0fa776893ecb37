"""Statements of ``MATCH_RECOGNIZE`` and their rows, thought up one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A statement and its rows.

    Parameters
    ----------
    name, description : str
    pattern : str
    define : mapping
        Conditions by variable.
    rows : str
        A value is a row of key ``a``, a second after the row before; ``b=5`` has another key,
        ``@1500=5`` and ``b@1500=5`` a time of their own; ``~2000`` is a watermark.
    more : mapping
        Parameters of `tests.oracle.matches.operator_of`.
    """

    name: str
    description: str
    pattern: str
    define: dict[str, str]
    rows: str
    more: dict[str, Any] = field(default_factory=dict)


#: Rows of 1 to 9 that rise and fall, so that conditions on them overlap.
WAVES = "1 2 3 4 5 3 2 1 ~6000 2 3 5 9 1 ~11000 3 3 4 4 2 6 1 ~30000 1 2 3 9"
LOW_MID_HIGH = {"A": "A.value <= 2", "B": "B.value BETWEEN 2 AND 4", "C": "C.value >= 4"}
#: Rows of 2 and 3 are of both loops.
OVERLAP = {
    "A": "A.value = 1",
    "B": "B.value IN (2, 3)",
    "C": "C.value IN (2, 3, 4)",
    "D": "D.value > 2",
}
OVERLAPS = "1 2 3 4 5 1 2 2 3 3 1 3 2 5 ~12000 1 5 1 4 4 3 1 2 4 2 ~20000 1 2 3 2 3 4 ~99000 1"


def _quantified(name: str, description: str, pattern: str) -> Case:
    return Case(name, description, pattern, LOW_MID_HIGH, WAVES, {"skip": "past_last_row"})


def _overlapping(name: str, description: str, pattern: str, skip: str = "to_next_row") -> Case:
    define = {variable: each for variable, each in OVERLAP.items() if variable in pattern}
    return Case(name, description, pattern, define, OVERLAPS, {"skip": skip})


QUANTIFIERS = (
    _quantified("once", "no quantifier", "A B C"),
    _quantified("optional", "A B? C", "A B? C"),
    _quantified("star", "A B* C", "A B* C"),
    _quantified("plus", "A B+ C", "A B+ C"),
    _quantified("exactly_2", "A B{2} C", "A B{2} C"),
    _quantified("exactly_2_reluctant", "A B{2}? C", "A B{2}? C"),
    _quantified("at_least_2", "A B{2,} C", "A B{2,} C"),
    _quantified("from_1_to_3", "A B{1,3} C", "A B{1,3} C"),
    _quantified("from_0_to_2", "A B{0,2} C", "A B{0,2} C"),
    _quantified("star_reluctant", "A B*? C", "A B*? C"),
    _quantified("plus_reluctant", "A B+? C", "A B+? C"),
    _quantified("at_least_2_reluctant", "A B{2,}? C", "A B{2,}? C"),
    _quantified("from_1_to_3_reluctant", "A B{1,3}? C", "A B{1,3}? C"),
    _quantified("from_0_to_2_reluctant", "A B{0,2}? C", "A B{0,2}? C"),
    _quantified("begins_optional", "A? B C", "A? B C"),
    _quantified("begins_star", "A* C", "A* C"),
    _quantified("begins_plus", "A+ B", "A+ B"),
    _quantified("begins_plus_reluctant", "A+? B", "A+? B"),
    _quantified("begins_star_reluctant", "A*? B", "A*? B"),
    _quantified("begins_at_least_2", "A{2,} B", "A{2,} B"),
    _quantified("begins_from_1_to_2", "A{1,2} B", "A{1,2} B"),
    _quantified("ends_optional", "A C?", "A C?"),
    _quantified("ends_star_reluctant", "A B*?", "A B*?"),
    _quantified("ends_plus_reluctant", "A B+?", "A B+?"),
    _quantified("ends_exactly_2", "A B{2}", "A B{2}"),
    _quantified("ends_at_least_2_reluctant", "A B{2,}?", "A B{2,}?"),
    _quantified("ends_from_1_to_3_reluctant", "A B{1,3}?", "A B{1,3}?"),
    _quantified("one_variable", "A", "A"),
    _quantified("one_variable_plus_reluctant", "A+?", "A+?"),
)
OVERLAPPING = (
    _overlapping("greedy_plus_then_plus", "two loops, greedy", "A B+ C+ D"),
    _overlapping("greedy_star_then_plus", "two loops, greedy", "A B* C+ D"),
    _overlapping("reluctant_plus_then_greedy", "the first loop is reluctant", "A B+? C+ D"),
    _overlapping("greedy_plus_then_reluctant", "the second loop is reluctant", "A B+ C+? D"),
    _overlapping("reluctant_stars", "several matches of one start end in one row", "A B*? C*? D"),
    _overlapping(
        *("reluctant_stars_past_last_row", "one of several matches that end in one row"),
        *("A B*? C*? D", "past_last_row"),
    ),
    _overlapping(
        *("reluctant_stars_to_last", "several that end in one row, by their C"),
        *("A B+? C+? D", "to_last C"),
    ),
    _overlapping("optional_then_optional", "two that may be missing", "A B? C? D"),
    _overlapping("bounded_then_bounded", "two loops with bounds", "A B{1,2} C{1,2} D"),
    _overlapping("bounded_reluctant", "two reluctant loops with bounds", "A B{1,2}? C{0,2}? D"),
    _overlapping("three_loops", "three loops", "A* B+? C*? D"),
    _overlapping("begins_with_two_loops", "two loops in the beginning", "B* C+ D"),
    _overlapping("begins_with_two_reluctant", "the same, reluctant", "B*? C*? D"),
    _overlapping("ends_with_two_loops", "greedy, then reluctant at the end", "A B+ C+?"),
    _overlapping("optional_end_of_overlap", "the last may be missing", "A B+? C D?"),
    Case(
        *(
            "greedy_never_leaves",
            "a greedy loop that has every row of the variable behind it",
            "A B+ C",
        ),
        *({"A": "A.value = 1", "B": "B.value > 1", "C": "C.value > 3"}, OVERLAPS),
    ),
    Case(
        *("greedy_up_to_2", "the same with at most 2 rows", "A B{1,2} C"),
        *({"A": "A.value = 1", "B": "B.value > 1", "C": "C.value > 1"}, OVERLAPS),
    ),
    Case(
        *("greedy_up_to_2_or_none", "the same with none at the least", "A B{0,2} C"),
        *({"A": "A.value = 1", "B": "B.value > 1", "C": "C.value > 1"}, OVERLAPS),
    ),
    Case(
        *("optional_or_next", "an optional row that may be of the variable behind it", "A B? C"),
        *({"A": "A.value = 1", "B": "B.value > 1", "C": "C.value > 1"}, OVERLAPS),
    ),
    Case(
        *(
            "greedy_then_anything",
            "a greedy loop before a variable without a condition",
            "A B+ X C",
        ),
        *({"A": "A.value = 1", "B": "B.value < 4", "C": "C.value > 3"}, OVERLAPS),
    ),
)

RISING = {"A": "A.value < 3", "B": "B.value >= 3"}
STEPS = "1 2 1 3 4 5 1 2 3 ~5000 1 1 1 4 2 ~20000 2 3 4 3 1"
SKIPS = tuple(
    Case(
        f"skip_{skip.replace(' ', '_').lower()}",
        f"AFTER MATCH SKIP {skip}",
        pattern,
        define,
        STEPS,
        more,
    )
    for skip, pattern, define, more in (
        ("by default", "A+ B", RISING, {}),
        ("past_last_row", "A+ B", RISING, {"skip": "past_last_row"}),
        ("to_next_row", "A+ B", RISING, {"skip": "to_next_row"}),
        ("to_first B", "A+ B+ C", RISING, {"skip": "to_first B"}),
        ("to_last B", "A+ B+ C", RISING, {"skip": "to_last B"}),
        ("to B", "A+ B+ C", RISING, {"skip": "to B"}),
        ("to_last A", "A{2,} B", RISING, {"skip": "to_last A"}),
        ("to_first C", "A+? B+? C", RISING, {"skip": "to_first C"}),
        ("to_last C", "A+? B+? C+?", RISING, {"skip": "to_last C"}),
    )
)

UP_TO_9 = {"A": "A.value = 1", "B": "B.value < 9", "C": "C.value = 9"}
WITHIN = (
    Case(
        *("within_bound", "last - first is 3 s, 1 ms less and 1 ms more", "A B* C", UP_TO_9),
        "@1000=1 2 @4000=9 @11000=1 @12000=2 @13999=9 @21000=1 2 @24001=9 ~30000 @31000=1 @34000=9",
        {"within_ms": 3000},
    ),
    Case(
        *("within_1_ms", "only rows of one time", "A B", {"A": "A.value = 1", "B": "B.value = 2"}),
        *("@1000=1 @1000=2 @2000=1 @2001=2 ~9000", {"within_ms": 1}),
    ),
    Case(
        *("within_of_0", "a time of 0 s", "A B", {"A": "A.value = 1", "B": "B.value = 2"}),
        *("@1000=1 @1000=2 @2000=1 @2001=2 ~9000 @9001=1 @19000=2", {"within_ms": 0}),
    ),
    Case(
        *("within_shortens_a_loop", "the start is too early, a later one is not", "A B* C"),
        {"A": "A.value < 9", "B": "B.value < 9", "C": "C.value = 9"},
        *("1 2 3 4 5 9 1 2 ~5000 3 4 9 ~99000", {"within_ms": 3000}),
    ),
    Case(
        *("within_frees_those_behind", "a match waits until an earlier start is too old", "A B* C"),
        {
            "A": "A.value < 3",
            "B": "B.value < 9 AND FIRST(A.value) = 1",
            "C": "C.value = 3 OR C.value = 9",
        },
        "1 2 3 4 ~2500 ~4000 4 4 ~5999 ~6000 4 4 4 4 ~10999 ~11000 ~11001 ~12000 4 4 2 3 "
        "~30000 1 2 3",
        {"within_ms": 10_000, "skip": "to_next_row"},
    ),
    Case(
        *("within_by_watermark", "a watermark makes the start too old, and no row", "A B* C"),
        {
            "A": "A.value < 3",
            "B": "B.value < 9 AND FIRST(A.value) = 1",
            "C": "C.value = 9 OR C.value = 4",
        },
        "1 2 4 ~3000 ~5999 ~6000 ~6001 @7000=9 ~8000 @9000=1 2 4 ~13999 b=1 ~14000 ~20000",
        {"within_ms": 5000, "skip": "to_next_row"},
    ),
    Case(
        *("within_at_the_end", "waits at the end behind a start that is too old then", "A B* C"),
        {
            "A": "A.value < 3",
            "B": "B.value < 9 AND FIRST(A.value) = 1",
            "C": "C.value = 3 OR C.value = 9",
        },
        *("1 2 3 2 3 ~4000", {"within_ms": 5000, "skip": "to_next_row"}),
    ),
    Case(
        *("within_past_last_row", "skipped rows, and starts that are too old", "A+ B+ C"),
        *({"A": "A.value < 3", "B": "B.value < 9", "C": "C.value = 9"}, WAVES),
        {"within_ms": 3001, "skip": "past_last_row"},
    ),
    Case(
        *("within_out_of_order", "rows out of order", "A B+ C", UP_TO_9),
        "@3000=9 @1000=1 @2000=5 ~2500 @4000=1 @6000=9 @5000=3 @5500=4 ~7000 @9000=9 "
        "@7001=1 @8000=2 ~8500 ~9000",
        {"within_ms": 2000},
    ),
)
