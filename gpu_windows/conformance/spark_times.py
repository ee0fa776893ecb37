"""What of the times of a scenario Spark's cannot do: its clock moves on, its watermark stays."""

from __future__ import annotations

from gpu_windows.conformance.replay import elements_of, parts_of
from gpu_windows.conformance.scenario import (
    Part,
    ProcessingTime,
    Record,
    Restart,
    Scenario,
    Watermark,
)
from gpu_windows.rules import LONG_MIN

#: Watermarks beyond this do not fit between Spark's.
_FARTHEST = 1 << 60
#: Windows with an end that the clock tells.
_OF_THE_CLOCK = ("tumbling_processing_time", "sliding_processing_time")
#: Process functions that tell the watermark at a row or at a timer of the clock: always, or where
#: they are of that time.
_TELL_WATERMARK = {"both_timers", "watermark_probe"}
_TELL_WATERMARK_IN = {
    "event_time": {"broadcast_probe", "rules", "rules_side_outputs", "state_and_timer"},
    "processing_time": {"inactivity", "pair_or_timeout", "timer_per_element"},
}


def why_not(scenario: Scenario) -> str | None:
    """Return what of a scenario Spark's times cannot do as its recorded run did, or None."""
    watermarks = [each for each in scenario.input if isinstance(each, Watermark)]
    far = [w for w in watermarks if w.time != LONG_MIN and abs(w.time) > _FARTHEST]
    if far:
        return f"Spark has no watermark {far[0].time}"
    again = _set_to_the_same_time(scenario)
    if any(emission.get("step") in again for emission in scenario.expected):
        return "a timer fires when processing time is set to what it is; Spark's moves on"
    if _goes_on_at_its_end(scenario):
        return "a window of processing time gets more rows at its last tick; Spark's clock moves on"
    function = scenario.operator.function
    if function is not None and _sets_past_timers(scenario, function):
        return "timers of processing time are set that are past: Spark's moves on"
    if function is not None and _asks_for_what_is_forgotten(scenario, function):
        return "the watermark begins anew after a restart; Spark's goes on from its checkpoint"
    return None


def _set_to_the_same_time(scenario: Scenario) -> set[int]:
    """Return the elements of the input that set processing time to what it was."""
    now, again = 0, set()
    for element in scenario.input:
        if isinstance(element, ProcessingTime):
            if element.time <= now:
                again.add(element.seq)
            now = max(now, element.time)
    return again


def _goes_on_at_its_end(scenario: Scenario) -> bool:
    """Whether the clock stays at the last tick of a window, and rows of it come before and after.

    Between them is a watermark, and so a micro-batch, at whose time the window has ended.
    """
    assigner = scenario.operator.assigner
    if assigner is None or assigner.type not in _OF_THE_CLOCK:
        return False
    size = assigner.integer("size_ms")
    slide, offset = assigner.integer("slide_ms", size), assigner.integer("offset_ms", 0)
    now, has_rows, is_cut = 0, False, False
    for element in scenario.input:
        if isinstance(element, ProcessingTime):
            now, has_rows, is_cut = max(now, element.time), False, False
        elif isinstance(element, Watermark):
            is_cut |= has_rows
        elif isinstance(element, Record) and (now + 1 - offset - size) % slide == 0:
            if is_cut:
                return True
            has_rows = True
    return False


def _domain(function: Part) -> object:
    return function.parameters.get("time_domain", "event_time")


def _sets_past_timers(scenario: Scenario, function: Part) -> bool:
    """Whether a process function sets timers of processing time that may be past."""
    if function.type == "both_timers":  # at the times of rows
        return _is_behind_the_clock(scenario, 5 * function.integer("param_ms"))
    if _domain(function) != "processing_time":
        return False
    return function.integer("param_ms") <= 0 or scenario.has_tied_timers


def _is_behind_the_clock(scenario: Scenario, after_ms: int) -> bool:
    """Whether a time some milliseconds after a record has passed when the record comes."""
    now = 0
    for element in scenario.input:
        if isinstance(element, ProcessingTime):
            now = max(now, element.time)
        elif isinstance(element, Record) and element.ts + after_ms <= now:
            return True
    return False


def _asks_for_what_is_forgotten(scenario: Scenario, function: Part) -> bool:
    """Whether what comes after a restart depends on the watermark before it, which Spark keeps."""
    tells = function.type in _TELL_WATERMARK
    tells |= function.type in _TELL_WATERMARK_IN.get(str(_domain(function)), ())
    reached = current = LONG_MIN
    for part in parts_of(elements_of(scenario), None):
        if isinstance(part, Restart):
            current = LONG_MIN
        elif not isinstance(part, Watermark):
            if tells and current < reached:
                return True
        elif part.time > current:
            if part.time <= reached:
                return True
            reached = current = part.time
    return False
