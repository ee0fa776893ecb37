"""Scenarios of Flink's own tests that no other family asks.

``python -m tests.golden.generate_parity DIR`` writes them without results, which a run of Apache
Flink adds (`tests/oracle`): sessions by the clock whose gap is a value of each record (Flink:
WindowOperatorTest.testDynamicProcessingTimeSessionWindows), by several functions and triggers; and
windows of SQL that emit early and late (``table.exec.emit``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.oracle.scenarios import write

FAMILY = "parity_clock_sessions"
Element = dict[str, Any]


def clock(time: int) -> Element:
    return {"processing_time": time}


def record(key: str, value: float) -> Element:
    return {"key": key, "ts": 0, "value": value}


def at(key: str, ts: int, value: float) -> Element:
    return {"key": key, "ts": ts, "value": value}


#: As in Flink's test: a record that ends before its session does leaves the session as it is.
FLINKS_TEST = [
    *(clock(10), record("a", 3), clock(5000), record("b", 2), clock(6000), record("b", 2)),
    *(clock(8999), clock(9000), record("b", 2), clock(10_000), record("b", 2)),
    *(clock(10_500), record("b", 1), clock(12_999), clock(13_000), record("b", 1)),
    *(clock(13_500), record("b", 1), clock(14_000), record("b", 2), clock(16_999)),
]
#: A long gap first: later records with short ones stay in its session; then they touch.
LONG_FIRST = [
    *(clock(100), record("a", 10), clock(1000), record("a", 1), clock(5000), record("a", 1)),
    *(record("b", 1), clock(6000), record("b", 0.5), clock(6499), clock(10_099)),
    *(clock(10_100), record("a", 0.001), clock(10_101), record("a", 0.001), clock(20_000)),
    record("a", 4),
]
#: A record at the last millisecond of a session, and one just after it.
BOUNDS = [
    *(clock(0), record("a", 2), clock(1998), record("a", 1), clock(2997), record("a", 1)),
    *(clock(3996), clock(3997), record("a", 1), clock(4996), record("a", 2), clock(4997)),
    *(record("b", 3), clock(7996), record("b", 3), clock(9000)),
]
INPUTS = {"flinks_test": FLINKS_TEST, "long_first": LONG_FIRST, "bounds": BOUNDS}
TRIGGERS: dict[str, Element | None] = {
    "default": None,
    "count2": {"type": "count", "n": 2},
    "purging_count3": {"type": "purging", "inner": {"type": "count", "n": 3}},
    "continuous2000": {"type": "continuous_processing_time", "interval_ms": 2000},
}


#: Rows before and after the end of a window, and after its lateness; a first row that is late.
LATE_ROWS = [
    *(at("a", 1000, 1), at("a", 1500, 2), {"watermark": 2999}, at("a", 2000, 4)),
    *(at("a", 2000, 0), {"watermark": 3500}, at("k", 2001, 8), at("k", 500, 1)),
    *({"watermark": 5998}, at("a", 2999, 16), {"watermark": 5999}, at("a", 2998, 32)),
    *(at("a", 4000, 1), at("a", 3000, 5), at("k", 9000, 2), {"watermark": 8999}),
    *(at("a", 4500, 3), at("k", 9500, 1), {"watermark": 20_000}, at("k", 10_000, 7)),
]
GROUP_WINDOWS = {
    "tumble3": ("TUMBLE", "INTERVAL '3' SECOND"),
    "hop1_3": ("HOP", "INTERVAL '1' SECOND, INTERVAL '3' SECOND"),
}
FIRINGS = {"early": ("early",), "late": ("late",), "early_and_late": ("early", "late")}


def emitting() -> Iterator[dict[str, Any]]:
    """Yield statements that emit at each row, before the end of a window or after it."""
    for name, (kind, sizes) in GROUP_WINDOWS.items():
        of = f"rt, {sizes}"
        for firings, parts in FIRINGS.items():
            options = {"table.exec.emit.allow-lateness": "3 s"} if "late" in parts else {}
            for part in parts:
                options[f"table.exec.emit.{part}-fire.enabled"] = "true"
                options[f"table.exec.emit.{part}-fire.delay"] = "0 s"
            yield {
                "name": f"{name}_{firings}",
                "family": "parity_emit",
                "description": "a group window that emits at each row early or late",
                "operator": {
                    "kind": "group_window",
                    "window": f"{kind}({of})",
                    "group_by": ["key", "window"],
                    "agg": ["sum", "count"],
                },
                "sql": (
                    f"SELECT `key`, {kind}_START({of}) AS ws, {kind}_END({of}) AS we, SUM(`value`) "
                    f"AS s, COUNT(*) AS c FROM T GROUP BY `key`, {kind}({of})"
                ),
                "sql_options": options,
                "input": LATE_ROWS,
            }


def scenarios() -> Iterator[dict[str, Any]]:
    """Yield all scenarios."""
    yield from emitting()
    yield from clock_sessions()


def clock_sessions() -> Iterator[dict[str, Any]]:
    """Yield sessions by the clock."""
    for name, elements in INPUTS.items():
        for trigger, part in TRIGGERS.items():
            for function in ("collect", "sum"):
                yield {
                    "name": f"{name}_{trigger}_{function}",
                    "family": FAMILY,
                    "description": "sessions by the clock, the gap is 1000 ms x value",
                    "operator": {
                        "kind": "window",
                        "assigner": {
                            "type": "dynamic_session_processing_time",
                            "gap": "floor(value * gap_factor_ms)",
                            "gap_factor_ms": 1000,
                        },
                        "trigger": part,
                        "evictor": None,
                        "allowed_lateness_ms": 0,
                        "late_side_output": False,
                        "function": {"type": function},
                    },
                    "input": elements,
                }


if __name__ == "__main__":
    write(scenarios(), Path(sys.argv[1]))
