"""A scenario as a query of ours, or the reason why there is none yet."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.conformance.functions import FUNCTIONS, SCHEMA, NamedFunction
from gpu_windows.conformance.scenario import FlinkError, OperatorSpec, Part, Scenario
from gpu_windows.errors import (
    InvalidDurationError,
    InvalidWindowError,
    QueryError,
    ScenarioError,
)
from gpu_windows.options import Options
from gpu_windows.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger, Trigger
from gpu_windows.watermarks import WatermarkStrategy
from gpu_windows.windows import (
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

#: What the scenario format knows and this package does not do yet, by the part's role.
NOT_YET = {
    "kind": (
        "window_join co_group interval_join process co_process over window_tvf window_tvf_rows "
        "group_window sql_interval_join sql_window_join window_top_n window_dedup temporal_sort"
    ).split(),
    "assigner": (
        "session_event_time dynamic_session_event_time global global_end_of_stream count "
        "tumbling_processing_time sliding_processing_time session_processing_time"
    ).split(),
    "trigger": (
        "processing_time continuous_event_time continuous_processing_time delta never "
        "processing_timeout"
    ).split(),
    "evictor": ["count", "time", "delta"],
    "function": ["collect_state"],
}

#: Flink's refusals: (class, beginning of the message) to our error.
REFUSALS: dict[tuple[str, str], type[QueryError]] = {
    (
        "java.lang.IllegalArgumentException",
        "TumblingEventTimeWindows parameters must satisfy",
    ): InvalidWindowError,
    (
        "java.lang.IllegalArgumentException",
        "SlidingEventTimeWindows parameters must satisfy",
    ): InvalidWindowError,
    (
        "java.lang.IllegalArgumentException",
        "The allowed lateness cannot be negative",
    ): InvalidDurationError,
}


@dataclass(frozen=True)
class Skip:
    """A scenario that is not run."""

    reason: str


@dataclass(frozen=True)
class Case:
    """A scenario in our words; durations in ticks."""

    assigner: WindowAssigner
    trigger: Trigger
    allowed_lateness: int
    function: NamedFunction

    def query(self, options: Options) -> Query:
        """Return the query of the local runner, over the columns of `SCHEMA`."""
        return Query(
            schema=SCHEMA,
            time="ts",
            watermarks=WatermarkStrategy.for_monotonous_timestamps(),
            keys=("key",),
            assigner=self.assigner,
            function=self.function.window_function,
            trigger=self.trigger,
            allowed_lateness=self.allowed_lateness,
            options=options,
        )


def translate(scenario: Scenario, *, ticks_per_ms: int) -> Case | Skip:
    """Say a scenario in our words.

    Raises
    ------
    QueryError
        If we refuse its parameters, as Flink may have done too.
    ScenarioError
        If it names something that the format does not know, or lacks a parameter.
    """
    reason = _not_yet(scenario.operator)
    if reason is not None:
        return Skip(reason)
    operator = scenario.operator
    assert operator.assigner is not None, "a missing assigner is an error above"
    assert operator.function is not None, "a missing function is an error above"
    return Case(
        assigner=_assigner(operator.assigner, ticks_per_ms),
        trigger=EventTimeTrigger() if operator.trigger is None else _trigger(operator.trigger),
        allowed_lateness=min(operator.allowed_lateness_ms * ticks_per_ms, LONG_MAX),
        function=FUNCTIONS[operator.function.type],
    )


def refusal_of(error: FlinkError) -> type[QueryError]:
    """Return our class for a refusal of Flink's; `QueryError` for one that is not in the table."""
    for (kind, beginning), ours in REFUSALS.items():
        if kind == error.kind and error.message.startswith(beginning):
            return ours
    return QueryError


# ---- what is not done yet


def _not_yet(operator: OperatorSpec) -> str | None:
    if operator.kind != "window":
        return _unimplemented("kind", operator.kind, ["window"])
    for role, part, done in (
        ("assigner", operator.assigner, ["tumbling_event_time", "sliding_event_time"]),
        ("function", operator.function, list(FUNCTIONS)),
    ):
        if part is None:
            raise ScenarioError(f"operator.{role} is missing")
        reason = _unimplemented(role, part.type, done)
        if reason is not None:
            return reason
    if operator.evictor is not None:
        return _unimplemented("evictor", operator.evictor.type, [])
    return None if operator.trigger is None else _trigger_not_yet(operator.trigger)


def _trigger_not_yet(trigger: Part) -> str | None:
    if trigger.type == "purging":
        return _trigger_not_yet(trigger.part("inner"))
    return _unimplemented("trigger", trigger.type, ["event_time", "count"])


def _unimplemented(role: str, name: str, done: list[str]) -> str | None:
    if name in done:
        return None
    if name in NOT_YET[role]:
        return f"{role} {name} is not implemented yet"
    rule = f"the {role} of a scenario must be one of {', '.join([*done, *NOT_YET[role]])}"
    raise ScenarioError(rule, value=repr(name))


# ---- what is


def _assigner(part: Part, ticks_per_ms: int) -> WindowAssigner:
    size = part.integer("size_ms") * ticks_per_ms
    offset = part.integer("offset_ms", 0) * ticks_per_ms
    if part.type == "tumbling_event_time":
        return TumblingEventTimeWindows(size, offset)
    return SlidingEventTimeWindows(size, part.integer("slide_ms") * ticks_per_ms, offset)


def _trigger(part: Part) -> Trigger:
    if part.type == "purging":
        return PurgingTrigger(_trigger(part.part("inner")))
    return CountTrigger(part.integer("n")) if part.type == "count" else EventTimeTrigger()
