"""What `explain()` says of a plan is what its operator does."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows.functions.window import Collect
from gpu_windows.operators.build import build_operator
from gpu_windows.planning.plan import Strategy, explain
from gpu_windows.planning.planner import plan
from tests.operators.state.put_away import rows
from tests.planning.queries import AGGREGATES, query

SESSIONS = gw.EventTimeSessionWindows(10)
GLOBAL = gw.GlobalWindows.create_with_end_of_stream_trigger()
SUM = {"sum_i": AGGREGATES["sum_i"]}
PARTIALS, ROWS = "a window keeps partials, not its rows", "a window keeps its rows: "


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"assigner": SESSIONS, "aggregates": SUM}, PARTIALS),
        (
            {"assigner": SESSIONS, "aggregates": SUM | {"first_text": AGGREGATES["first_text"]}},
            f"{ROWS}first(text): of sessions that a row joins, Flink puts one's rows first",
        ),
        (
            {"assigner": SESSIONS, "aggregates": SUM | {"half": gw.quantile("i", 0.5)}},
            f"{ROWS}quantile(i, 0.5) needs all values of a window",
        ),
        (
            {"assigner": SESSIONS, "function": Collect(("i",))},
            f"{ROWS}collect needs the rows, not partial aggregates",
        ),
        (
            {"assigner": SESSIONS, "aggregates": SUM, "evictor": gw.CountEvictor.of(3)},
            f"{ROWS}the evictor (the last 3 rows stay, before the function) needs the rows",
        ),
        (
            {
                "assigner": gw.TumblingEventTimeWindows(10),
                "aggregates": {"first_text": AGGREGATES["first_text"]},
                "trigger": gw.CountTrigger.of(5),
            },
            PARTIALS,
        ),
        (
            {"assigner": GLOBAL, "aggregates": SUM, "trigger": GLOBAL.default_trigger()},
            f"{ROWS}the rows are ordered by time",
        ),
    ],
)
def test_what_a_window_keeps(parts: dict[str, Any], text: str) -> None:
    planned = plan(query(**parts), bounded=False)
    assert planned.strategy is Strategy.BUFFER
    assert f"          - {text}" in explain(planned).splitlines()
    operator = build_operator(planned)
    list(operator.process(rows(1, 2, 3)))
    list(operator.advance_watermark(4))
    assert operator.state_size()["rows"] == (0 if text == PARTIALS else 3)
