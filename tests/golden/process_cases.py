"""Inputs of process functions that were thought up one by one: ``generate_processes.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.words import function

Element = dict[str, Any]
CLOCK, EVENT = "processing_time", "event_time"
RESTART: Element = {"restart": True}


@dataclass(frozen=True)
class Case:
    """A scenario: the function by its name, its parameter and time, and what comes in."""

    name: str
    function: str
    param_ms: int
    domain: str
    input: tuple[Element, ...]
    why: str

    def operator(self, kind: str) -> Element:
        """Return the operator of that kind."""
        return {"kind": kind, "function": function(self.function, self.param_ms, self.domain)}


def clock(time: int) -> Element:
    return {"processing_time": time}


def mark(time: int, side: str | None = None) -> Element:
    return {"watermark": time} | ({} if side is None else {"side": side})


def row(key: str, ts: int, value: float = 1) -> Element:
    return {"key": key, "ts": ts, "value": value}


def left(key: str, ts: int, value: float = 1) -> Element:
    return {"side": "left", **row(key, ts, value)}


def right(key: str, ts: int, value: float = 1) -> Element:
    return {"side": "right", **row(key, ts, value)}


def _ticks(times: Iterable[int]) -> Iterator[Element]:
    """Yield the clock at each of these times."""
    return map(clock, times)


#: Three keys whose records come at several times of the clock, one of them again and again.
STEADY = (
    *(clock(1000), row("a", 0, 1), row("b", 0, 2), clock(2500), row("a", 0, 3), clock(3999)),
    *(row("a", 9, -1), clock(4000), row("b", 5, 4), row("b", 5, 5), clock(5000), clock(5499)),
    *(clock(5500), clock(6500), row("c", 0, 6), clock(6500), clock(7000), row("a", 0, 7)),
    *(clock(9000), clock(12_000), row("b", 0, 8), clock(40_000), row("c", 0, 9)),
)
STATE_BY_CLOCK = (
    *(clock(1), row("17", 0, 17), row("13", 0, 13), clock(2), row("13", 0, 13), row("42", 0, 42)),
    *(clock(5), clock(6), clock(7), clock(20)),
)
STATE_BY_WATERMARK = (
    *(mark(1), row("17", 0, 17), row("13", 0, 13), mark(2), row("42", 0, 42), row("13", 0, 13)),
    *(mark(5), mark(6), mark(7)),
)
BOTH = (row("a", 0), clock(3), mark(4), clock(4), clock(5), mark(5), mark(6), clock(9))
LIVES = (
    *(clock(100), row("a", 0, 0), row("a", 0, 1), row("a", 0, 2), row("a", 0, 3), row("a", 0, -1)),
    *(clock(600), row("a", 0, 6), row("a", 0, 7), clock(1099), row("a", 0, -1), clock(1100)),
    *(row("a", 0, -1), clock(1599), row("a", 0, -1), clock(1600), row("a", 0, -1)),
    *(clock(2599), row("a", 0, -1), clock(2600), row("a", 0, -1), clock(9000), row("a", 0, -1)),
)

PROCESS_CLOCK = (
    Case("state_and_timer_flinks_test", "state_and_timer", 5, CLOCK, STATE_BY_CLOCK, "Flink's own"),
    Case(
        *("state_and_timer_flinks_test_event_time", "state_and_timer", 5, EVENT),
        *(STATE_BY_WATERMARK, "the same by watermarks"),
    ),
    Case(
        *("state_and_timer_missed", "state_and_timer", 5, CLOCK),
        (
            *(clock(1), row("a", 0, 1), clock(3), row("a", 0, 2), clock(6), clock(7)),
            *(row("a", 0, 3), row("a", 0, 4), row("a", 0, 5), clock(11), clock(12), clock(13)),
        ),
        "the timer is not deleted, and finds nothing, or a newer value",
    ),
    Case("both_timers_flinks_test", "both_timers", 1, EVENT, BOTH, "two of four are deleted"),
    Case(
        *("both_timers_deleted", "both_timers", 100, EVENT),
        (
            *(row("a", 0), row("b", 0), row("a", 50), row("a", 0, -1), clock(500), clock(550)),
            *(mark(600), row("b", 0, -1), mark(650), row("c", 100), row("c", 100, -1)),
            *(row("c", 100), clock(600), mark(700), mark(900), row("d", 400), row("d", 400, -1)),
        ),
        "timers deleted before they are due, after they fired, and set again",
    ),
    Case(
        *("both_timers_cross", "both_timers", 1000, EVENT),
        (
            *(clock(10_000), row("a", 0), mark(20_000), row("a", 1000), row("b", 1000)),
            *(clock(10_000), mark(20_001), clock(10_001), row("a", 9000), clock(13_999)),
            *(clock(14_000), mark(30_000)),
        ),
        "timers that are past when they are set wait for the next element of their time",
    ),
    Case(
        *("both_timers_left_at_the_end", "both_timers", 10, EVENT),
        (row("a", 0), row("b", 100), clock(50), clock(149), mark(60)),
        "the end fires what is left of event time, not of processing time",
    ),
    Case(
        *("timers_in_timers_at_once", "timers_in_timers", 100, CLOCK),
        (clock(10), row("a", 0, 4), row("b", 0, 3), clock(5000), row("a", 0, 4)),
        "all timers that timers set are due within one step of the clock",
    ),
    Case(
        *("timers_in_timers_step_by_step", "timers_in_timers", 100, CLOCK),
        (clock(10), row("a", 0, 4), *_ticks(range(50, 1100, 60))),
        "the same, one after the other",
    ),
    Case(
        *("timers_in_timers_past", "timers_in_timers", 100, CLOCK),
        (
            *(clock(1000), row("a", 0, -1), row("b", 0, 2), clock(1000), row("a", 0, 2)),
            *(row("a", 0, -1), row("b", 0, -1), clock(1001), clock(1100), clock(1101)),
            *(row("b", 0, -1), row("b", 0, 1)),
        ),
        "a timer of 1 ms ago waits for the next element of the clock",
    ),
    Case(
        *("timers_in_timers_negative", "timers_in_timers", -100, CLOCK),
        (clock(1000), row("a", 0, 3), row("a", 0, 4), clock(1001), row("b", 0, 2), clock(1001)),
        "every timer is past when it is set",
    ),
    Case(
        *("timers_in_timers_event_time", "timers_in_timers", 100, EVENT),
        (
            *(row("a", 10, 4), mark(1000), row("b", 950, 4), row("b", 960, -1), mark(1000)),
            *(mark(1001), row("a", 5000, 4)),
        ),
        "the same by watermarks, and at the end",
    ),
    Case("inactivity_steady", "inactivity", 1500, CLOCK, STEADY, "the clock starts again"),
    Case("count_with_timeout_steady", "count_with_timeout", 1500, CLOCK, STEADY, "none is deleted"),
    Case("timer_per_element_steady", "timer_per_element", 0, CLOCK, STEADY, "due when set"),
    Case("timer_per_element_past", "timer_per_element", -7, CLOCK, STEADY, "past when set"),
    Case("align_and_chain_steady", "align_and_chain", 2000, CLOCK, STEADY, "multiples of 2 s"),
    Case("delete_on_negative_steady", "delete_on_negative", 1499, CLOCK, STEADY, "deleted in time"),
    Case("reducing_and_map_steady", "reducing_and_map", 1500, CLOCK, STEADY, "states of all kinds"),
    Case(
        *("reducing_and_map_event_time", "reducing_and_map", 1000, EVENT),
        (
            *(row("a", 0, 3), row("a", 100, 4.5), row("a", 200, -3), row("a", 300, -2.5)),
            *(row("b", 400, -1), row("a", 500, 7), mark(1300), row("a", 5000, -4), row("b", 0, 2)),
            mark(1400),
        ),
        "removed, replaced, cleared; the mean stays",
    ),
    Case("ttl_lives", "ttl", 1000, CLOCK, LIVES, "written and read until 1 ms before the end"),
    Case(
        *("ttl_entries", "ttl", 1000, CLOCK),
        (
            *(clock(0), row("a", 0, 1), row("a", 0, 2), clock(300), row("a", 0, 6)),
            *(row("a", 0, 12), clock(500), row("a", 0, 16), row("b", 0, 4), clock(999)),
            *(row("a", 0, -1), clock(1000), row("a", 0, -1), clock(1300), row("a", 0, -1)),
            *(row("b", 0, -1), clock(1499), row("b", 0, 22), clock(1500), row("a", 0, -1)),
            *(row("b", 0, -1), clock(2499), row("b", 0, -1), clock(2500), row("b", 0, -1)),
        ),
        "each entry and each element lives by itself",
    ),
    Case(
        *("ttl_kept_by_reading", "ttl", 100, CLOCK),
        (
            *(row("a", 0, 4), *_ticks((50, 99)), row("a", 0, -1), clock(198), row("a", 0, -1)),
            *(clock(297), row("a", 0, -1), clock(396), row("a", 0, -1), clock(496)),
            *(row("a", 0, -1), row("a", 0, 3), clock(595), clock(694), clock(695)),
            *(row("a", 0, -1), clock(2000), row("a", 0, -1)),
        ),
        "reading keeps one state alive, the timer's too",
    ),
    Case(
        *("same_timer_of_two_keys", "timer_per_element", 10, CLOCK),
        (*(row(key, 0) for key in "abcabc"), clock(9), row("a", 0), clock(10), clock(19)),
        "ties",
    ),
    Case(
        *("clock_alone", "inactivity", 10, CLOCK),
        (clock(5), clock(5), mark(100), clock(1000)),
        "no records",
    ),
    Case(
        *("clock_at_the_end", "inactivity", 10, CLOCK),
        (row("a", 0), mark(1000), row("b", 0), clock(9)),
        "what is pending at the end does not fire",
    ),
)

SIDES = (
    *(row("a", 0, 1), row("a", 100, -1), row("b", 100, 20), row("b", 200, 19.75), mark(900)),
    *(row("a", 300, 25), mark(1000), mark(1100), row("a", 50, -2), row("a", 60, -3), mark(1200)),
    *(row("c", 5000, -5), row("c", 5000, 0), row("c", 5000, 100), row("b", 6000, -1)),
)
PROCESS_SIDE_OUTPUTS = (
    Case("each_tag", "side_outputs", 1000, EVENT, SIDES, "to each, to both, to none"),
    Case("timers_only_past", "side_outputs", -1000, EVENT, SIDES, "timers that are past"),
    Case("by_the_clock", "side_outputs", 1500, CLOCK, STEADY, "timers of processing time"),
    Case(
        *("by_the_clock_three", "side_outputs", 10, CLOCK),
        (
            *(clock(1), *(row("a", 0, v) for v in (1, 30, -1)), clock(5), row("a", 0, 2)),
            *(row("b", 7, -1), clock(11), clock(15), row("b", 0, 20), clock(24), clock(25)),
        ),
        "a timer emits to all three",
    ),
    Case(
        *("only_first", "side_outputs", 5, EVENT),
        (row("a", 0, -1), row("a", 0, -2), row("b", 3, -0.25), mark(4)),
        "the main output has timers only",
    ),
    Case("only_main", "side_outputs", 10**9, CLOCK, STEADY, "no timer, nothing is negative or 20"),
    Case(
        *("nothing", "side_outputs", 10, EVENT),
        (mark(5), mark(10)),
        "no record: every output is empty",
    ),
    Case(
        *("timers_twice", "side_outputs", 100, EVENT),
        (
            *(row("a", 0, 1), row("a", 50, 1), row("a", 100, 1), row("a", 100, 1), mark(200)),
            *(row("a", 100, 50), mark(201)),
        ),
        "the count is cleared by the first of several timers",
    ),
    Case(
        *("late_rows", "side_outputs", 100, EVENT),
        (mark(1000), row("a", 0, -1), row("a", 500, 60), row("b", 999, 5), mark(1001)),
        "rows behind the watermark are rows; their timers wait for the next one",
    ),
    Case(
        *("ties", "side_outputs", 100, EVENT),
        (*(row(key, 0, 20) for key in "abcdabcabab"), mark(100)),
        "four keys of one time, to all outputs",
    ),
    Case(
        *("at_the_end", "side_outputs", 100, EVENT),
        (*(row("a", ts, ts - 30) for ts in range(0, 100, 10)),),
        "all timers fire at the end",
    ),
    Case(
        *("not_at_the_end", "side_outputs", 100, CLOCK),
        (*(row("a", ts, ts - 30) for ts in range(0, 100, 10)), mark(500)),
        "by the clock no timer fires at the end",
    ),
)

TWO_SIDES = (
    *(clock(100), left("a", 0, 1), left("a", 0, 2), right("b", 0, 3), clock(1099)),
    *(right("a", 0, 4), clock(1100), right("a", 0, 5), left("b", 0, 6), clock(1500)),
    *(left("b", 0, -1), left("b", 0, 7), clock(2099), clock(2100), left("b", 0, 8)),
    *(right("c", 0, -2), clock(2500), left("c", 0, -3), left("c", 0, 9), clock(3600)),
    *(left("a", 0, 40), right("a", 0, 40), right("a", 0, 10), left("a", 0, 11), clock(9000)),
    *(left("a", 0, 12), right("b", 0, 13), left("c", 0, 14)),
)
TWO_SIDES_WATERMARKS = (
    *(left("a", 0, 1), left("a", 500, 2), right("b", 100, 3), mark(900, "left")),
    *(mark(999, "right"), right("a", 0, 4), left("a", 100, 5), mark(1000, "left")),
    *(mark(1000, "right"), mark(1099, "left")),
    *(left("b", 0, -1), left("b", 200, 7), mark(1100, "right"), mark(1100, "left")),
    *(mark(1200, "right"), mark(2000, "left")),
    *(right("c", 0, -2), left("c", 900, 9), mark(1900, "right"), left("c", 0, 10)),
    *(left("a", 5000, 11), left("a", 4000, 12), right("b", 5000, 13), mark(4100, "left")),
    *(mark(4100, "right"), left("c", 9000, 14)),
)
CO_PROCESS_CLOCK = (
    *(
        Case(f"{name}_{param}", name, param, CLOCK, TWO_SIDES, f"times out after {param} ms")
        for name in ("pair_or_timeout", "threshold_rules", "co_side_outputs")
        for param in (1000, 1, 0, -5)
    ),
    *(
        Case(f"co_side_outputs_{param}_event_time", "co_side_outputs", param, EVENT, elements, why)
        for param, elements, why in (
            (1000, TWO_SIDES_WATERMARKS, "the least watermark of both sides counts"),
            (0, TWO_SIDES_WATERMARKS, "timers at the record's own time"),
            (-500, TWO_SIDES_WATERMARKS, "timers that are past"),
        )
    ),
    Case(
        *("co_side_outputs_one_side", "co_side_outputs", 100, CLOCK),
        (left("a", 0, 1), left("b", 0, -1), clock(99), left("a", 0, 2), clock(100), clock(200)),
        "nothing comes from the right",
    ),
)
