"""Inputs of broadcast process functions, and of restarts, thought up one by one."""

from __future__ import annotations

from tests.golden.process_cases import (
    BOTH,
    CLOCK,
    EVENT,
    LIVES,
    RESTART,
    STATE_BY_CLOCK,
    TWO_SIDES,
    TWO_SIDES_WATERMARKS,
    Case,
    Element,
    clock,
    left,
    mark,
    right,
    row,
)


def rule(name: str, threshold: float, ts: int = 0) -> Element:
    return right(name, ts, threshold)


RULES = (
    *(left("a", 0, 5), rule("low", 3), left("a", 100, 5), rule("high", 30), left("a", 200, 30)),
    *(left("b", 200, 29), rule("Zero", 0), left("b", 300, 2), mark(1100), rule("low", 4)),
    *(left("a", 400, 3), rule("none", -1), rule("low", -1), left("a", 500, 4), mark(1200)),
    *(left("b", 1250, -6), mark(2000, "left"), mark(1999, "right"), rule("high", 2)),
    *(left("a", 2100, 2), rule("low", 1), mark(2300, "right"), mark(3000)),
    *(left("c", 9000, 1), left("c", 9000, 9), rule("last", 9)),
)
RULES_BY_CLOCK = (
    *(clock(10), left("a", 0, 5), rule("low", 3), left("b", 0, 5), clock(1009), rule("low", 6)),
    *(clock(1010), rule("mid", 5), left("a", 0, 5), clock(1500), left("a", 0, 7), clock(2009)),
    *(rule("mid", -1), clock(2010), clock(2500), left("b", 0, 9), rule("low", -1), clock(3500)),
    *(left("b", 0, -1), mark(9000), clock(4499), rule("all", 0), clock(4500), left("a", 0, 0)),
)
BROADCAST_PROCESS = (
    Case(
        *("flinks_test_with_timer", "broadcast_probe", 1, EVENT),
        (
            *(mark(10), right("5", 12, 5), mark(40), left("6", 13, 6), left("6", 15, 6)),
            mark(50),
        ),
        "Flink's own: CoBroadcastWithKeyedOperatorTest.testFunctionWithTimer",
    ),
    Case(
        *("probe_by_the_clock", "broadcast_probe", 1, CLOCK),
        (
            *(clock(10), right("5", 12, 5), clock(40), left("6", 13, 6), left("6", 15, 6)),
            *(clock(40), clock(41), right("5", 0, 7), clock(50)),
        ),
        "the same by the clock",
    ),
    Case(
        *("probe_of_one_side", "broadcast_probe", 0, EVENT),
        (
            *(mark(10, "left"), left("a", 0), right("b", 0), mark(7, "right"), left("a", 0)),
            *(mark(30, "left"), right("b", 0), mark(20, "right"), left("b", 0), mark(30)),
        ),
        "the watermark is the least of both sides; a timer at it waits for the next one",
    ),
    Case("rules", "rules", 1000, EVENT, RULES, "set, replaced, removed; in order of name"),
    Case("rules_past", "rules", -1000, EVENT, RULES, "timers that are past"),
    Case("rules_by_the_clock", "rules", 1000, CLOCK, RULES_BY_CLOCK, "timers of the clock"),
    Case("sides", "rules_side_outputs", 1000, EVENT, RULES, "rejected rows, replaced rules"),
    Case("sides_by_the_clock", "rules_side_outputs", 1000, CLOCK, RULES_BY_CLOCK, "by the clock"),
    Case(
        *("order_of_names", "rules", 100, EVENT),
        (
            *(rule(name, 1) for name in ("b", "a10", "a9", "B", "", "\u00e9", "_", "ba")),
            *(left("k", 0, 1), rule("a9", -1), left("k", 0, 2), mark(100)),
        ),
        "by the code points of their characters",
    ),
    Case(
        *("no_rules", "rules", 100, EVENT),
        (left("a", 0, 1), left("a", 10, 1), left("b", 5, -1), mark(100), mark(110)),
        "rows only",
    ),
    Case(
        *("no_rows", "rules_side_outputs", 100, CLOCK),
        (rule("a", 1), rule("a", 2), clock(5), rule("a", -1), rule("a", -1), rule("a", 0)),
        "broadcast elements only",
    ),
    Case(
        *("read_by_a_timer", "rules", 100, EVENT),
        (
            *(rule("x", 5), left("a", 0, 1), left("b", 0, 9), left("a", 50, 1), mark(99)),
            *(rule("x", 7), rule("y", 2), mark(100), rule("x", -1), mark(150)),
        ),
        "a timer sees the rules of the moment; two keys of one time",
    ),
    Case(
        *("of_one_name_and_key", "rules", 10, EVENT),
        (rule("a", 2), left("a", 0, 2), rule("b", 1), left("b", 0, 1), mark(10), left("a", 20, 3)),
        "keys and names of rules have nothing to do with each other",
    ),
    Case(
        *("twice_at_the_end", "rules", 10, EVENT),
        (left("a", 0, 2), left("a", 5, 2), rule("r", 1), left("b", 7, 2)),
        "the end fires all timers; the second of a key has no count",
    ),
)


def _cut(elements: tuple[Element, ...], *at: int) -> tuple[Element, ...]:
    """Return the elements with restarts before some of them, by index."""
    made: list[Element] = []
    for index, element in enumerate(elements):
        made += [RESTART] * at.count(index)
        made.append(element)
    return tuple(made)


PROCESS_RESTART = (
    Case(
        *("both_timers_flinks_test", "both_timers", 1, EVENT, (row("a", 0), RESTART)),
        "no clock, no watermark after it: the end fires event time",
    ),
    Case(
        *("both_timers_flinks_test_fires", "both_timers", 1, EVENT),
        (row("a", 0), RESTART, clock(5), mark(6)),
        "Flink's own: KeyedProcessOperatorTest.testSnapshotAndRestore",
    ),
    Case(
        *("both_timers_between", "both_timers", 1, EVENT, _cut(BOTH, 2, 3, 5, 6)),
        "a restart between every two timers",
    ),
    Case(
        *("both_timers_deleted_after", "both_timers", 10, EVENT),
        (
            *(row("a", 0), row("b", 0), row("c", 100), RESTART, row("a", 0, -1), row("b", 0)),
            *(clock(50), mark(60), RESTART, row("c", 100, -1), row("c", 100), clock(200)),
        ),
        "timers of before are deleted, or set again, after it",
    ),
    Case(
        *("both_timers_past_after", "both_timers", 10, EVENT),
        (
            *(clock(1000), mark(1000), row("a", 0), RESTART, row("b", 0), mark(5), clock(1000)),
            *(mark(59), mark(60), clock(1001)),
        ),
        "past timers wait; the watermark begins anew, the clock goes on",
    ),
    Case(
        *("watermark_begins_anew", "watermark_probe", 0, EVENT),
        (
            *(row("a", 0), mark(100), row("a", 0), RESTART, row("a", 0), mark(50), row("a", 0)),
            *(RESTART, RESTART, row("a", 0), mark(-7), row("a", 0)),
        ),
        "no watermark after a restart, then a lower one than before",
    ),
    Case(
        *("lower_watermark_fires", "timer_per_element", 10, EVENT),
        (
            *(row("a", 100), mark(105), row("b", 0), row("b", 200), RESTART, mark(9), mark(10)),
            *(row("a", 300), mark(110), RESTART, mark(110), mark(210)),
        ),
        "a timer that waits for the next watermark fires at a lower one than before",
    ),
    Case(
        *("state_and_timer_flinks_test", "state_and_timer", 5, CLOCK),
        (*_cut(STATE_BY_CLOCK, 3, 7), RESTART),
        "a restart at the end too",
    ),
    Case("ttl_lives", "ttl", 1000, CLOCK, _cut(LIVES, 0, 6, 10, 13, 19), "ages are kept"),
    Case(
        *("reducing_and_map", "reducing_and_map", 1000, EVENT),
        (
            *(row("a", 0, 3), row("a", 100, 4.5), RESTART, row("a", 200, 6), row("a", 300, -3)),
            *(RESTART, row("a", 400, 1), row("b", 500, 2), mark(1000), RESTART, row("b", 600, 2)),
            *(row("c", 0, 1), mark(1600)),
        ),
        "states of all kinds",
    ),
    Case(
        *("side_outputs", "side_outputs", 1000, EVENT),
        (
            *(row("a", 0, 1), row("a", 100, -1), RESTART, row("a", 200, 30), mark(1000)),
            *(RESTART, row("b", 1500, -1), mark(1200), RESTART, mark(2500)),
        ),
        "outputs go on",
    ),
    Case(
        *("first_and_twice", "inactivity", 100, CLOCK),
        (
            *(RESTART, clock(10), row("a", 0), RESTART, RESTART, clock(50), row("a", 0)),
            *(RESTART, clock(109), clock(110), clock(150)),
        ),
        "before anything, and two in a row",
    ),
    Case("nothing_but_restarts", "inactivity", 100, CLOCK, (RESTART, RESTART), "nothing else"),
)
CO_PROCESS_RESTART = (
    *(
        Case(name, name, 1000, CLOCK, _cut(TWO_SIDES, 4, 6, 13, 19, 27), "two inputs")
        for name in ("pair_or_timeout", "threshold_rules", "co_side_outputs")
    ),
    Case(
        *("co_side_outputs_event_time", "co_side_outputs", 1000, EVENT),
        (*_cut(TWO_SIDES_WATERMARKS, 4, 12, 14), RESTART, mark(5000, "left"), mark(5500, "right")),
        "the watermarks of both sides begin anew",
    ),
)
BROADCAST_RESTART = (
    Case("rules_restarted", "rules", 1000, EVENT, _cut(RULES, 2, 8, 14, 22), "broadcast state"),
    Case(
        *("rules_restarted_by_the_clock", "rules_side_outputs", 1000, CLOCK),
        *(_cut(RULES_BY_CLOCK, 3, 5, 12, 17), "broadcast state and timers of the clock"),
    ),
)
