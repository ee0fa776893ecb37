"""What of the times of a scenario micro-batches cannot do as its recorded run did.

Each begins with what is due by its clock, and after a restart the watermark goes on.
"""

from __future__ import annotations

from gpu_windows.rules import LONG_MIN
from tests.conformance.replay import elements_of, most_rows, parts_of
from tests.conformance.scenario import (
    Part,
    ProcessingTime,
    Record,
    Restart,
    Scenario,
    Watermark,
)

_PROCESS = ("process", "co_process", "broadcast_process")
_EVENT, _CLOCK = "event_time", "processing_time"
#: Process functions that set timers at the times of rows, whatever domain they name; others that
#: set none; and those whose timers are a while after now.
_BOTH, _NONE, _FROM_NOW = "both_timers", "watermark_probe", ("broadcast_probe", "state_and_timer")
#: Those that tell the watermark at a row or at a timer of the clock: always, or where they are of
#: that time.
_TELL_WATERMARK = {_BOTH, _NONE}
_TELL_WATERMARK_IN = {
    _EVENT: {"broadcast_probe", "rules", "rules_side_outputs", "state_and_timer"},
    _CLOCK: {"inactivity", "pair_or_timeout", "timer_per_element"},
}


def why_not(scenario: Scenario) -> str | None:
    """Return what of a scenario's times micro-batches cannot do, or None."""
    if _is_due_too_soon(scenario):
        return (
            "a timer is set for a processing time that has come: it fires in the next micro-batch, "
            "and in the recorded run once the clock is set again"
        )
    function = scenario.operator.function
    if scenario.is_restarted and function and _asks_for_what_is_forgotten(scenario, function):
        return "the watermark begins anew after a restart; that of micro-batches goes on"
    return None


def _is_due_too_soon(scenario: Scenario) -> bool:
    """Whether a micro-batch finds a timer of the clock that waits for the clock to be set."""
    now, waits = 0, False
    for part in parts_of(elements_of(scenario), most_rows(scenario)):
        if isinstance(part, ProcessingTime):
            now, waits = max(now, part.time), False
        elif isinstance(part, Restart):
            continue
        elif waits:
            return True
        elif isinstance(part, list):
            waits = any(_sets_what_is_due(scenario, record, now) for record in part)
    return False


def _sets_what_is_due(scenario: Scenario, record: Record, now: int) -> bool:
    """Whether a record sets a timer of the clock for a time that has come."""
    operator = scenario.operator
    if operator.assigner is not None:
        return _is_last_tick(operator.assigner, record, now)
    if operator.function is None or operator.kind not in _PROCESS:
        return False
    timer = _timer(operator.function, _CLOCK, record, now)
    return timer is not None and timer <= now


def _is_last_tick(assigner: Part, record: Record, now: int) -> bool:
    """Whether a record comes at the last tick of a window of processing time."""
    match assigner.type:
        case "tumbling_processing_time" | "sliding_processing_time":
            size = assigner.integer("size_ms")
            slide, offset = assigner.integer("slide_ms", size), assigner.integer("offset_ms", 0)
            return (now + 1 - offset - size) % slide == 0
        case "session_processing_time":
            return assigner.integer("gap_ms") == 1
        case "dynamic_session_processing_time":
            return int(record.value * assigner.number("gap_factor_ms")) == 1
        case _:
            return False


def _asks_for_what_is_forgotten(scenario: Scenario, function: Part) -> bool:
    """Whether what comes after a restart depends on the watermark before it."""
    tells = function.type in _TELL_WATERMARK
    tells |= function.type in _TELL_WATERMARK_IN.get(_domain(function), ())
    reached = current = LONG_MIN
    waiting: set[int] = set()
    for part in parts_of(elements_of(scenario), None):
        if isinstance(part, Restart):
            current = LONG_MIN
        elif isinstance(part, Watermark):
            if part.time <= current:
                continue
            fired = {timer for timer in waiting if timer <= part.time}
            if fired and part.time <= reached:
                return True
            waiting -= fired
            current, reached = part.time, max(reached, part.time)
        elif tells and current < reached:
            return True
        elif isinstance(part, list):
            timers = (_timer(function, _EVENT, record, current) for record in part)
            waiting.update(timer for timer in timers if timer is not None)
    return False


def _domain(function: Part) -> str:
    return str(function.parameters.get("time_domain", _EVENT))


def _timer(function: Part, domain: str, record: Record, now: int) -> int | None:
    """Return the time of the timer that a process function sets at a record; None if it sets none.

    Parameters
    ----------
    function : Part
    domain : {"event_time", "processing_time"}
        Of the timer.
    record : Record
    now : int
        Of this domain.
    """
    param, is_negative = function.integer("param_ms"), record.value < 0
    if function.type == _BOTH:  # those that it does not delete at once
        return None if is_negative else record.ts + (6 if domain == _EVENT else 5) * param
    if function.type == "ttl":
        return now + param - 1 if domain == _CLOCK else None
    if function.type == _NONE or domain != _domain(function):
        return None
    time = now if domain == _CLOCK or function.type in _FROM_NOW else record.ts
    match function.type:
        case "align_and_chain":
            return time // param * param + param
        case "timers_in_timers" if is_negative:
            return time - 1
        case "delete_on_negative" if is_negative:
            return None
        case _:
            return time + param
