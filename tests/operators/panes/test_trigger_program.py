"""Every built-in trigger and evictor is known to the kernels' window operator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

import gpu_windows as gw
from gpu_windows.operators.panes.trigger_program import fires_only_at_end, program_of, settings_of
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator import layout
from gpu_windows.vocabulary import evictors, triggers
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.triggers import CountTrigger, Trigger
from gpu_windows.vocabulary.windows import EventTimeSessionWindows, TumblingEventTimeWindows
from tests.operators.driven import Driven
from tests.planning.queries import query

DELTA = gw.Delta("i", "abs_diff")
ARGUMENTS = {
    "ContinuousEventTimeTrigger": (5,),
    "ContinuousProcessingTimeTrigger": (5,),
    "CountTrigger": (3,),
    "DeltaTrigger": (2.0, DELTA),
    "PurgingTrigger": (CountTrigger(3),),
    "EarlyAndLateTrigger": (CountTrigger(3),),
    "ProcessingTimeoutTrigger": (CountTrigger(3), 5),
    "CountEvictor": (False, 2),
    "TimeEvictor": (False, 2),
    "DeltaEvictor": (False, 2.0, DELTA),
}


def parts(module: ModuleType, base: type) -> Iterator[type]:
    for _, kind in inspect.getmembers(module, inspect.isclass):
        is_public = not kind.__name__.startswith("_") and kind is not base
        if issubclass(kind, base) and is_public and not inspect.isabstract(kind):
            yield kind


TRIGGERS = [*parts(triggers, Trigger)]
EVICTORS = [*parts(evictors, Evictor)]


def node_of(kind: type[Trigger]) -> int:
    trigger = kind(*ARGUMENTS.get(kind.__name__, ()))
    assert fires_only_at_end(trigger) in (True, False)
    made = query(TumblingEventTimeWindows(10), trigger=trigger)
    return int(program_of(made).nodes[layout.KIND])


def test_every_trigger_has_a_node_of_its_own() -> None:
    assert len(TRIGGERS) > 10
    assert len({node_of(kind) for kind in TRIGGERS}) == len(TRIGGERS)


def test_every_evictor_has_a_number_of_its_own() -> None:
    assert len(EVICTORS) > 2
    numbers = {
        settings_of(
            query(TumblingEventTimeWindows(10), evictor=kind(*ARGUMENTS[kind.__name__]))
        ).evictor
        for kind in EVICTORS
    }
    assert len(numbers - {layout.NO_EVICTOR}) == len(EVICTORS)


@pytest.mark.parametrize("kind", TRIGGERS, ids=lambda kind: str(kind.__name__))
def test_triggers_wait_for_the_same_after_a_merge(kind: type[Trigger]) -> None:
    trigger = kind(*ARGUMENTS.get(kind.__name__, ()))
    if not trigger.can_merge():
        pytest.skip("it cannot merge")
    said = []
    for engine in ("auto", "reference"):
        driven = Driven(EventTimeSessionWindows(10), trigger=trigger, engine=engine)
        steps = [
            driven.processing_time(1),
            driven.rows(("a", 1, 1), ("a", 30, 2)),
            driven.watermark(3),
        ]
        steps += [driven.processing_time(3), driven.rows(("a", 9, 3), ("a", 18, 4), ("a", 26, 5))]
        steps += [
            driven.processing_time(7),
            driven.watermark(25),
            driven.processing_time(50),
            driven.watermark(60),
        ]
        said.append([sorted(map(str, step)) for step in [*steps, driven.watermark(LONG_MAX)]])
    assert said[0] == said[1]
