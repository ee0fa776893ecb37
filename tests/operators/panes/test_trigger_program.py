"""Every built-in trigger is known to the kernels' window operator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import gpu_windows as gw
from gpu_windows import triggers
from gpu_windows.operators.panes.trigger_program import program_of, waits
from gpu_windows.rules.window_operator import layout, merging
from gpu_windows.triggers import CountTrigger, PurgingTrigger, Trigger
from gpu_windows.windows import TumblingEventTimeWindows
from tests.query.queries import query

ARGUMENTS = {
    "ContinuousEventTimeTrigger": (5,),
    "ContinuousProcessingTimeTrigger": (5,),
    "CountTrigger": (3,),
    "DeltaTrigger": (2.0, gw.Delta("i", "abs_diff")),
    "PurgingTrigger": (CountTrigger(3),),
    "EarlyAndLateTrigger": (CountTrigger(3),),
    "ProcessingTimeoutTrigger": (CountTrigger(3), 5),
}


def built_in() -> Iterator[type[Trigger]]:
    for _, kind in inspect.getmembers(triggers, inspect.isclass):
        if issubclass(kind, Trigger) and not inspect.isabstract(kind):
            yield kind


@pytest.mark.parametrize("kind", [*built_in()], ids=lambda kind: kind.__name__)
def test_every_trigger_has_a_node(kind: type[Trigger]) -> None:
    trigger = kind(*ARGUMENTS.get(kind.__name__, ()))
    made = query(TumblingEventTimeWindows(10), trigger=trigger)
    number = int(program_of(made).nodes[layout.KIND])
    assert number in layout.TRIGGERS
    assert number in merging.WAITS_FOR
    assert waits(trigger) in (True, False)


def test_every_number_is_of_one_trigger() -> None:
    found = []
    for kind in built_in():
        made = query(TumblingEventTimeWindows(10), trigger=kind(*ARGUMENTS.get(kind.__name__, ())))
        found.append(int(program_of(made).nodes[layout.KIND]))
    assert sorted(found) == list(layout.TRIGGERS)
    assert waits(PurgingTrigger(CountTrigger(3))) is False
