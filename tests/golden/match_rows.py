"""Rows, measures and conditions of ``MATCH_RECOGNIZE``, and what Flink refuses of it."""

from __future__ import annotations

from tests.golden.match_cases import WAVES, Case

RISE = {"A": "A.value < 4", "B": "B.value > A.value"}
FALL = {"A": "A.value > 3", "B": "B.value < 4", "C": "C.value > 4"}
ROWS = (
    Case(
        *("out_of_order", "rows out of order are sorted as the watermark passes", "A B+ C", FALL),
        "@3000=2 @1000=5 @2000=3 ~1500 @5000=5 @4000=2 ~4000 ~5000 @9000=9 @7000=3 "
        "@6000=1 ~6500 @8000=2 ~9000",
    ),
    Case(
        *("equal_times", "rows of one time stay in order of arrival", "A B+ C", FALL),
        "@1000=5 @1000=3 @1000=2 @1000=7 ~999 @2000=3 @1000=1 @2000=2 ~2000 @3000=8 "
        "@3000=1 @3000=9 ~3000",
    ),
    Case(
        *("equal_times_by_value", "rows of one time in order of another column", "A B+ C", FALL),
        "@1000=3 @1000=5 @1000=2 @1000=7 ~999 @2000=8 @2000=2 @2000=9 ~2000 @3000=1 @3000=9 ~3000",
        {"order_by": ("rt", "value DESC")},
    ),
    Case(
        *("late", "rows at the watermark and before are dropped", "A B+ C", FALL),
        "@1000=5 @2000=3 ~2000 @2000=9 @1500=2 @2001=2 @3000=6 ~2999 @2999=1 @3000=1 "
        "@4000=7 ~5000 ~4000 @4500=1 @5001=5 @6000=1 @7000=8",
    ),
    Case(
        *("keys", "keys match by themselves", "A B+ C", FALL),
        "5 b=3 2 b=7 c@1500=4 b=2 ~2000 c=1 7 b=2 9 ~5000 c@6000=1 c@7000=9 b@6000=1 "
        "b@7000=9 ~6500 b@8000=2 b@9000=9",
    ),
    Case(
        *("null_keys", "rows without a key are of one", "A B", RISE),
        *("n=1 a=2 n=3 n=1 b=1 n=0 ~3000 b=4 n=5 a=9", {"nulls": True}),
    ),
    Case(
        *("without_partitions", "one for all keys", "A B", RISE),
        "1 b=2 c=1 b=3 ~2000 5 b@1500=1 c@4500=2 1 ~9000 b@9500=1 c@9501=4",
        {
            "partition_by": (),
            "measures": {"ka": "A.key", "kb": "B.key", "a": "A.idx", "b": "B.idx"},
        },
    ),
    Case(
        *("partitions_of_two_columns", "by a key and a value", "A B", {"B": "B.ts < A.ts + 5000"}),
        *("1 2 1 b=1 2 b=2 b=1 1 ~6000 2 1 1 2", {"partition_by": ("key", "value")}),
    ),
    Case(
        *("null_values", "a condition on null does not hold", "A B+ C"),
        {"A": "A.value > 3", "B": "B.value <= 3 OR B.value IS NULL", "C": "C.value > 3"},
        "5 -1 9 5 2 -1 -1 7 -1 4 3 8 ~99000 -1 5 -1 9",
        {
            "nulls": True,
            "measures": {
                "a": "A.idx", "last": "LAST(B.value)", "first": "FIRST(B.value)",
                "n": "COUNT(B.value)", "s": "SUM(B.value)", "m": "AVG(B.value)",
                "x": "MAX(B.value)", "d": "B.value + C.value",
            },
        },
    ),
    Case(
        *("negative_times", "about 1970", "A B+ C", FALL),
        "@-3000=5 2 ~-2500 1 3 7 ~1000 @1500=8 ~1600 1 ~2600 9",
    ),
    Case(
        *("watermarks_astray", "repeated, going back, behind all rows", "A B+ C", FALL),
        "~-5 5 3 ~900 ~900 ~1000 2 ~500 8 ~1500 ~4000 ~4000 ~3999 1 9 2 ~5999 9",
    ),
    Case("watermark_of_each_row", "a watermark behind each row", "A B+? C", FALL,
         " ".join(f"{value} ~{time}000" for time, value in enumerate("5328132975319", 1))),
)  # fmt: skip

#: A, then B as long as it falls, and C, which does not.
V_SHAPE = {
    "A": "A.value > 0",
    "B": "(LAST(B.value, 1) IS NULL AND B.value < A.value) OR B.value < LAST(B.value, 1)",
    "C": "C.value > LAST(B.value)",
}
PRICES = "10 8 6.5 3 7 ~4000 12 9 9 8 8.5 20 4 2 1 ~11000 5 ~99000 9 5 3 1 2"


def _measured(name: str, description: str, **measures: str) -> Case:
    return Case(name, description, "A B+ C", V_SHAPE, PRICES, {"measures": measures})


def _optional(name: str, description: str, **measures: str) -> Case:
    define = {"A": "A.value = 1", "B": "B.value = 2", "C": "C.value = 3"}
    return Case(
        name, description, "A B? C", define, "1 2 3 1 3 ~9000 1 3 2 1 2 3", {"measures": measures}
    )


MEASURES = (
    _measured(
        *("first_and_last", "of each variable, with offsets"),
        f="FIRST(B.value)", f1="FIRST(B.value, 1)", f2="FIRST(B.value, 2)", f9="FIRST(B.value, 9)",
        l="LAST(B.value)", l0="LAST(B.value, 0)", l1="LAST(B.value, 1)", l2="LAST(B.value, 2)",
        a1="FIRST(A.value, 1)",
    ),
    _measured(
        *("bare_columns", "columns of variables and of none"),
        a="A.value", b="B.value", b_ts="B.ts", b_rt="B.rt", v="value", i="idx", f="FIRST(idx)",
        f1="FIRST(idx, 1)", l="LAST(idx)", l1="LAST(idx, 1)",
    ),
    _measured(
        *("aggregates_of_a_variable", "sums, numbers, extremes and means"),
        s="SUM(B.value)", n="COUNT(B.value)", mi="MIN(B.value)", ma="MAX(B.value)",
        av="AVG(B.value)", si="SUM(B.idx)", ai="AVG(B.idx)", st="SUM(B.ts)", t="AVG(B.ts)",
        mk="MAX(B.key)",
    ),
    _measured(
        *("aggregates_of_all_rows", "of the rows of all variables"),
        s="SUM(value)", n="COUNT(*)", ni="COUNT(idx)", mi="MIN(value)", ma="MAX(value)",
        av="AVG(value)", ai="AVG(idx)",
    ),
    _measured(
        *("arithmetic", "between variables"),
        d="C.value - LAST(B.value)", t="C.ts - A.ts", q="SUM(B.value) / COUNT(B.value)",
        p="A.value * 2 + MIN(B.value)", m="MOD(C.idx, 3)", h="A.idx / 2",
        w="CASE WHEN C.value > A.value THEN 'up' ELSE 'down' END",
        x="SUM(B.value * 2 + 1)", y="FIRST(B.value + 1)", k="A.key || '!'",
    ),
    _measured("final", "FINAL is the default", a="FINAL LAST(B.idx)", s="FINAL SUM(B.value)"),
    _measured("rowtime", "the time of the last row", r="MATCH_ROWTIME()", a="A.rt", c="C.ts"),
    _measured("names_of_columns", "measures with names of columns", ts="C.ts", idx="B.idx"),
    _optional(
        *("of_a_missing_variable", "measures of a variable that no row was matched to"),
        b="B.value", f="FIRST(B.idx)", l="LAST(B.idx)", n="COUNT(B.value)", s="SUM(B.value)",
        mi="MIN(B.value)", av="AVG(B.value)", d="C.value - B.value", c="C.idx",
    ),
    Case(
        *("not_null_columns", "of a missing variable, where the columns cannot be null", "A B? C"),
        {"A": "A.v = 1", "B": "B.v = 2", "C": "C.v = 3"},
        "1 2 3 1 3 ~9000 1 3 2 1 2 3",
        {
            "not_null": True,
            "measures": {
                "b": "B.v", "f": "FIRST(B.i)", "l": "LAST(B.i)", "n": "COUNT(B.v)",
                "s": "SUM(B.v)", "k": "B.k", "d": "C.v - B.v", "c": "C.i",
            },
        },
    ),
)  # fmt: skip

CONDITIONS = (
    Case("v_shape", "falls with LAST(B.x, 1), then rises", "A B+ C", V_SHAPE, PRICES),
    Case(
        *("v_shape_not_null", "the same where LAST(B.x, 1) cannot be null", "A B+ C"),
        {
            "A": "A.v > 0",
            "B": "(LAST(B.v, 1) IS NULL AND B.v < A.v) OR B.v < LAST(B.v, 1)",
            "C": "C.v > LAST(B.v)",
        },
        *(PRICES, {"not_null": True, "measures": {"a": "A.i", "b": "LAST(B.i)", "c": "C.i"}}),
    ),
    Case(
        *("constants", "TRUE, FALSE and none", "A B? C X"),
        *({"A": "A.value > 2", "B": "FALSE", "C": "TRUE"}, WAVES),
    ),
    Case(
        "only_undefined",
        "all variables but one without a condition",
        "A B C",
        {"C": "C.value > 3"},
        WAVES,
    ),
    Case(
        *("of_variables_before", "columns of variables before", "A B C"),
        {
            "A": "A.value > 0",
            "B": "B.value > A.value",
            "C": "C.value > B.value AND C.value - A.value < 5",
        },
        *(WAVES, {"skip": "to_next_row"}),
    ),
    Case(
        *("of_a_loop_before", "the first and the last of a loop before", "A B+? C"),
        {
            "A": "A.value < 4",
            "B": "B.value > A.value AND B.value > LAST(A.value)",
            "C": "C.value < LAST(B.value) AND C.value >= FIRST(B.value)",
        },
        *(WAVES, {"skip": "to_next_row"}),
    ),
    Case(
        *("first_of_itself", "FIRST(B.x) is this row, if it is the first", "A B+? C"),
        *({"B": "B.value >= FIRST(B.value)", "C": "C.value < FIRST(B.value)"}, WAVES),
    ),
    Case(
        *("offsets", "FIRST(B.x, 1) and LAST(B.x, 2)", "A B+? C"),
        {
            "A": "A.value > 0",
            "B": "LAST(B.value, 2) IS NULL OR B.value <> LAST(B.value, 2)",
            "C": "C.value = FIRST(B.value, 1)",
        },
        *(WAVES, {"skip": "to_next_row"}),
    ),
    Case(
        *("average_below", "AVG(B.x) with this row", "A B+ C", {"B": "AVG(B.value) < 3"}),
        *(WAVES, {"skip": "to_next_row"}),
    ),
    Case(
        *("sum_below", "SUM(A.x) with this row, as long as it is small", "A+ B"),
        *({"A": "SUM(A.value) < 10"}, WAVES),
    ),
    Case(
        *("count_below", "COUNT(B.x) with this row, and of the loop before", "A+? B+ C"),
        {
            "B": "COUNT(B.value) <= 2 AND B.value >= LAST(A.value)",
            "C": "COUNT(A.value) = 2 AND C.value > 2",
        },
        *(WAVES, {"skip": "to_next_row"}),
    ),
    Case(
        *("extremes", "MIN and MAX of a loop before, and of itself", "A B+ C"),
        {
            "B": "MAX(B.value) < 5 AND MIN(B.value) > 1",
            "C": "C.value > MAX(B.value) + SUM(A.value)",
        },
        WAVES,
    ),
    Case(
        *("strings", "keys as values", "A B+ C"),
        {
            "A": "A.key = 'a'",
            "B": "B.key IN ('b', 'c') AND B.key >= LAST(B.key)",
            "C": "C.key LIKE 'd%'",
        },
        "1 b=1 c=1 d=1 a=1 c=1 b=1 d=1 ~9000 a=1 b=1 b=1 b=1 ~11000 d=1",
        {"partition_by": (), "measures": {"a": "A.idx", "n": "COUNT(B.key)", "c": "C.key"}},
    ),
    Case(
        *("times", "times of rows", "A B* C"),
        {"B": "B.ts < A.ts + 2000", "C": "C.rt >= A.rt + INTERVAL '2' SECOND"},
        "1 2 3 4 @4500=5 @4700=6 @9000=7 ~5000 @9100=8 @12000=9",
    ),
    Case(
        *("of_a_variable_behind", "a column of a variable that comes later is null", "A B"),
        *({"A": "B.value IS NULL AND A.value > 1", "B": "B.value > A.value"}, WAVES),
    ),
    Case(
        *("defined_and_not_matched", "a condition on a variable that is in no pattern", "A B"),
        *({"A": "A.value > 2", "Z": "Z.value > 1"}, WAVES),
    ),
)

ENDS = (
    Case(
        "never",
        "begins and never ends",
        "A B* C",
        {"A": "A.value = 1", "B": "B.value < 9", "C": "C.value > 9"},
        WAVES,
    ),
    Case(
        *("waits_for_ever", "a match waits behind an earlier start that never ends", "A B* C"),
        {
            "A": "A.value < 3",
            "B": "B.value < 9 AND FIRST(A.value) = 1",
            "C": "C.value = 3 OR C.value = 9",
        },
        *("2 3 1 2 3 2 3 ~6000 2 3", {"skip": "to_next_row"}),
    ),
    Case(
        *("waits_and_is_freed", "the earlier start ends or fails, and those behind come", "A B* C"),
        {
            "A": "A.value < 3",
            "B": "B.value < 9 AND FIRST(A.value) = 1",
            "C": "C.value = 3 OR C.value = 9",
        },
        *("1 2 4 2 3 ~4500 2 3 2 3 ~8500 9 ~9000 2 3 10 ~99000", {"skip": "to_next_row"}),
    ),
    Case(
        *("waits_and_is_skipped", "the earlier start ends, and those behind are skipped", "A B* C"),
        {
            "A": "A.value < 3",
            "B": "B.value < 9 AND FIRST(A.value) = 1",
            "C": "C.value = 4 OR C.value = 9",
        },
        *("1 2 3 2 4 ~4500 2 4 2 4 ~8500 9 ~9000 2 4 10 ~99000", {"skip": "past_last_row"}),
    ),
    Case("no_watermark", "all at the end", "A B+ C", FALL, "5 2 1 7 b=5 b=1 3 6 b=8 1 9"),
    Case("no_rows", "only watermarks", "A B+ C", FALL, "~1000 ~2000"),
    Case(
        "in_steps",
        "a match over many watermarks",
        "A B+ C",
        FALL,
        "5 ~10 ~1000 2 ~1500 ~2000 ~2500 1 ~2999 7 ~3999 ~4000 5 ~5000 1 ~99000",
    ),
)

_AB = {"A": "A.value > 1", "B": "B.value > 1"}


def _refused(name: str, pattern: str, define: dict[str, str] | None = None, **more: object) -> Case:
    return Case(name, "Flink refuses it", pattern, define or _AB, "1 2 3 4", more)


REFUSED = (
    _refused("greedy_last", "A B+"),
    _refused("greedy_alone", "A+"),
    _refused("greedy_range_last", "A B{1,3}"),
    _refused("star_behind_star", "A B* C* D"),
    _refused("optional_behind_plus", "A B+ C? D"),
    _refused("begins_with_two_stars", "A* B* C"),
    _refused("all_optional", "A? B?"),
    _refused("all_optional_reluctant", "A*? B*?"),
    _refused("variable_twice", "A B A"),
    _refused("group", "(A B)+ C", measures={"a": "A.idx"}),
    _refused("alternation", "A | B", measures={"a": "A.idx"}),
    _refused("permutation", "PERMUTE(A, B)", measures={"a": "A.idx"}),
    _refused("exclusion", "A {- B -} C", measures={"a": "A.idx"}),
    _refused("reluctant_optional", "A?? B"),
    _refused("zero_times", "A B{0} C"),
    _refused("no_least", "A B{,2} C"),
    _refused("most_below_least", "A B{3,1} C"),
    _refused("prev", "A B", {"B": "PREV(B.value) < B.value"}),
    _refused("next", "A B", {"B": "NEXT(B.value) < B.value"}),
    _refused("order_by_value", "A B", order_by=("value",)),
    _refused("order_descending", "A B", order_by=("rt DESC",)),
    _refused("skip_to_first_row", "A B", skip="to_first A"),
    _refused("skip_to_last_of_one_row", "A B", skip="to_last A"),
    _refused("skip_to_missing", "A B? C", {"B": "B.value > 9"}, skip="to_first B"),
    _refused("skip_to_unknown", "A B", skip="to_first Z"),
    _refused("running", "A B", measures={"a": "RUNNING LAST(A.idx)"}),
    _refused("classifier", "A B", measures={"a": "CLASSIFIER()"}),
    _refused("distinct", "A B", measures={"a": "COUNT(DISTINCT A.idx)"}),
    _refused("sum_of_two_variables", "A B", measures={"a": "SUM(A.idx + B.idx)"}),
    _refused("measure_of_unknown", "A B", measures={"a": "Z.idx"}),
    _refused("negative_offset", "A B", measures={"a": "FIRST(A.idx, -1)"}),
)
