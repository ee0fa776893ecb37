"""A scenario as a query of ours, or the reason why there is none yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import pyarrow.compute as pc

from gpu_windows.functions.join import JoinType
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from tests.conformance.cases import Case, OneInput, Skip, Windows
from tests.conformance.errors import ScenarioError
from tests.conformance.functions import FUNCTIONS
from tests.conformance.keyed_top import top_n
from tests.conformance.over import over, temporal_sort
from tests.conformance.processed import (
    BROADCAST,
    CO_KEYED,
    KEYED,
    BroadcastProcessed,
    CoProcessed,
    Make,
    Processed,
)
from tests.conformance.row_numbers import window_dedup, window_top_n
from tests.conformance.scenario import OperatorSpec, Part, Scenario
from tests.conformance.sql_text import sql_text
from tests.conformance.statements import group_window, window_tvf
from tests.conformance.two_inputs import (
    TWO_SIDED,
    JoinedInTime,
    SqlIntervalJoin,
    SqlVersionJoin,
    SqlWindowJoin,
    WindowedSides,
)
from tests.conformance.window_rows import rows_in_windows

#: A statement over two tables, which `tests.sql.rewrites` runs.
STATEMENT = "sql_rewrite"
#: The kinds of scenarios that are run.
KINDS = (
    *("window", *TWO_SIDED, "interval_join", "process", "co_process", "broadcast_process"),
    *("window_tvf", "group_window", "over"),
    *("sql_interval_join", "sql_version_join", "sql_window_join"),
    *("temporal_sort", "window_dedup", "window_top_n", "top_n", "window_tvf_rows"),
    "sql_match",
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
    operator = scenario.operator
    if operator.kind == STATEMENT:
        return Skip("a statement that is rewritten: tests/sql/test_rewrites.py runs it")
    if operator.kind not in KINDS:
        rule = f"the kind of a scenario must be one of {', '.join(KINDS)}"
        raise ScenarioError(rule, value=repr(operator.kind))
    if operator.kind in _WITHOUT_PARTS:
        return _WITHOUT_PARTS[operator.kind](scenario, ticks_per_ms)
    function = _required(operator.function, "function")
    windows = _windows(operator, ticks_per_ms)
    if operator.kind in TWO_SIDED:
        return WindowedSides(windows, TWO_SIDED[operator.kind])
    if function.type not in FUNCTIONS:
        raise _unknown(function, FUNCTIONS)
    assigner = _required(operator.assigner, "assigner")
    dynamic = assigner.type.startswith("dynamic_session_")
    factor = assigner.number("gap_factor_ms") * ticks_per_ms if dynamic else 0.0
    return OneInput(windows, FUNCTIONS[function.type], factor)


def _joined_in_time(scenario: Scenario, ticks_per_ms: int) -> JoinedInTime:
    whole = scenario.operator.whole
    inclusive = whole.flag("lower_inclusive"), whole.flag("upper_inclusive")
    lower, upper = _bounds(whole, ticks_per_ms)
    return JoinedInTime(lower, upper, *inclusive)


def _processed(scenario: Scenario, ticks_per_ms: int) -> Processed:
    return Processed(_process_function(scenario, KEYED, ticks_per_ms))


def _co_processed(scenario: Scenario, ticks_per_ms: int) -> CoProcessed:
    return CoProcessed(_process_function(scenario, CO_KEYED, ticks_per_ms))


def _broadcast(scenario: Scenario, ticks_per_ms: int) -> BroadcastProcessed:
    return BroadcastProcessed(_process_function(scenario, BROADCAST, ticks_per_ms))


def _process_function(scenario: Scenario, known: Mapping[str, Make], ticks_per_ms: int) -> Any:
    part = _required(scenario.operator.function, "function")
    if part.type not in known:
        raise _unknown(part, known)
    domain = part.parameters.get("time_domain", "event_time")
    by_clock = domain == "processing_time"
    return known[part.type](part.integer("param_ms"), ticks_per_ms, by_clock=by_clock)


def _sql_interval_join(scenario: Scenario, ticks_per_ms: int) -> SqlIntervalJoin:
    whole, late = scenario.operator.whole, scenario.has_late_records
    return SqlIntervalJoin(*_bounds(whole, ticks_per_ms), _how(whole), late)


def _sql_version_join(scenario: Scenario, ticks_per_ms: int) -> SqlVersionJoin:
    del ticks_per_ms
    whole = scenario.operator.whole
    condition, null_key = (whole.parameters.get(name) for name in ("condition", "null_key"))
    if condition not in _CONDITIONS:
        raise ScenarioError("a condition is less, or there is none", value=repr(condition))
    return SqlVersionJoin(
        _how(whole), _CONDITIONS[condition], None if null_key is None else str(null_key)
    )


def _sql_window_join(scenario: Scenario, ticks_per_ms: int) -> SqlWindowJoin:
    whole = scenario.operator.whole
    return SqlWindowJoin(whole.integer("size_ms") * ticks_per_ms, _how(whole))


def _bounds(whole: Part, ticks_per_ms: int) -> tuple[int, int]:
    lower, upper = (whole.integer(f"{name}_bound_ms") for name in ("lower", "upper"))
    return lower * ticks_per_ms, upper * ticks_per_ms


def _how(whole: Part) -> JoinType:
    known: dict[str, JoinType] = {how: how for how in get_args(JoinType)}
    if (how := whole.word("join")) not in known:
        raise ScenarioError(f"a join is one of {', '.join(known)}", value=repr(how))
    return known[how]


#: What must hold of a pair besides, by its name.
_CONDITIONS: dict[object, pc.Expression | None] = {
    None: None,
    "less": pc.field("left_value") < pc.field("right_value"),
}
#: Kinds whose operator has no assigner and no trigger.
_WITHOUT_PARTS: dict[str, Callable[[Scenario, int], Case | Skip]] = {
    "broadcast_process": _broadcast,
    "co_process": _co_processed,
    "process": _processed,
    "group_window": group_window,
    "interval_join": _joined_in_time,
    "over": over,
    "sql_interval_join": _sql_interval_join,
    "sql_version_join": _sql_version_join,
    "sql_window_join": _sql_window_join,
    "temporal_sort": temporal_sort,
    "top_n": top_n,
    "window_dedup": window_dedup,
    "window_top_n": window_top_n,
    "window_tvf": window_tvf,
    "window_tvf_rows": rows_in_windows,
    "sql_match": sql_text,
}


def _windows(operator: OperatorSpec, ticks_per_ms: int) -> Windows:
    """Return how rows are put into windows, and when these fire."""
    found = _assigned(_required(operator.assigner, "assigner"), ticks_per_ms)
    trigger, evictor = operator.trigger, operator.evictor
    return Windows(
        found.assigner,
        found.trigger if trigger is None else _trigger(trigger, ticks_per_ms),
        found.evictor if evictor is None else _evictor(evictor, ticks_per_ms),
        min(operator.allowed_lateness_ms * ticks_per_ms, LONG_MAX),
    )


# ---- the parts


def _unknown(part: Part, known: Iterable[str]) -> ScenarioError:
    rule = f"the {part.role} of a scenario must be one of {', '.join(known)}"
    return ScenarioError(rule, value=repr(part.type))


def _required(part: Part | None, role: str) -> Part:
    if part is None:
        raise ScenarioError(f"operator.{role} is missing")
    return part


def _assigned(part: Part, ticks_per_ms: int) -> Windows:
    make = _ASSIGNERS.get(part.type)
    if make is not None:
        assigner = make(part, ticks_per_ms)
        return Windows(assigner, assigner.default_trigger())
    if part.type != "count":
        raise _unknown(part, [*_ASSIGNERS, "count"])
    size, windows = part.integer("size"), GlobalWindows.create()
    if part.parameters.get("slide") is None:
        return Windows(windows, PurgingTrigger(CountTrigger(size)))
    return Windows(windows, CountTrigger(part.integer("slide")), CountEvictor.of(size))


def _tumbling(
    kind: type[TumblingEventTimeWindows],
) -> Callable[[Part, int], TumblingEventTimeWindows]:
    return lambda part, t: kind(part.integer("size_ms") * t, part.integer("offset_ms", 0) * t)


def _sliding(
    kind: type[SlidingEventTimeWindows],
) -> Callable[[Part, int], SlidingEventTimeWindows]:
    def make(part: Part, t: int) -> SlidingEventTimeWindows:
        size, slide = part.integer("size_ms") * t, part.integer("slide_ms") * t
        return kind(size, slide, part.integer("offset_ms", 0) * t)

    return make


def _session(
    kind: type[EventTimeSessionWindows],
) -> Callable[[Part, int], EventTimeSessionWindows]:
    return lambda part, t: kind(part.integer("gap_ms") * t, ticks_per_ms=t)


_ASSIGNERS: dict[str, Callable[[Part, int], WindowAssigner]] = {
    "tumbling_event_time": _tumbling(TumblingEventTimeWindows),
    "tumbling_processing_time": _tumbling(TumblingProcessingTimeWindows),
    "sliding_event_time": _sliding(SlidingEventTimeWindows),
    "sliding_processing_time": _sliding(SlidingProcessingTimeWindows),
    "session_event_time": _session(EventTimeSessionWindows),
    "session_processing_time": _session(ProcessingTimeSessionWindows),
    "dynamic_session_event_time": lambda _, t: EventTimeSessionWindows(0, "gap", t),
    "dynamic_session_processing_time": lambda _, t: ProcessingTimeSessionWindows(0, "gap", t),
    "global": lambda *_: GlobalWindows.create(),
    "global_end_of_stream": lambda *_: GlobalWindows.create_with_end_of_stream_trigger(),
}


def _trigger(part: Part, ticks_per_ms: int) -> Trigger:
    make = _TRIGGERS.get(part.type)
    if make is None:
        raise _unknown(part, _TRIGGERS)
    return make(part, ticks_per_ms)


def _timeout(part: Part, ticks_per_ms: int) -> Trigger:
    return ProcessingTimeoutTrigger(
        _trigger(part.part("inner"), ticks_per_ms),
        part.integer("timeout_ms") * ticks_per_ms,
        part.flag("reset_timer_on_new_record"),
        part.flag("should_clear_on_timeout"),
    )


_TRIGGERS: dict[str, Callable[[Part, int], Trigger]] = {
    "event_time": lambda *_: EventTimeTrigger(),
    "processing_time": lambda *_: ProcessingTimeTrigger(),
    "count": lambda part, _: CountTrigger(part.integer("n")),
    "purging": lambda part, t: PurgingTrigger(_trigger(part.part("inner"), t)),
    "continuous_event_time": lambda part, t: ContinuousEventTimeTrigger(
        part.integer("interval_ms") * t
    ),
    "continuous_processing_time": lambda part, t: ContinuousProcessingTimeTrigger(
        part.integer("interval_ms") * t
    ),
    "delta": lambda part, _: DeltaTrigger(part.number("threshold"), _delta(part)),
    "never": lambda *_: NeverTrigger(),
    "processing_timeout": _timeout,
}


def _delta(part: Part) -> Delta:
    kind = part.word("delta")
    makers = {
        "old_minus_new": Delta.old_minus_new,
        "new_minus_old": Delta.new_minus_old,
        "abs_diff": Delta.abs_diff,
    }
    if kind not in makers:
        rule = f"operator.{part.role}.delta must be one of {', '.join(makers)}"
        raise ScenarioError(rule, value=repr(kind))
    return makers[kind]("value")


def _evictor(part: Part, ticks_per_ms: int) -> Evictor:
    after = part.flag("evict_after")
    if part.type == "count":
        return CountEvictor.of(part.integer("n"), evict_after=after)
    if part.type == "time":
        return TimeEvictor(after, part.integer("size_ms") * ticks_per_ms)
    if part.type == "delta":
        return DeltaEvictor.of(part.number("threshold"), _delta(part), evict_after=after)
    raise _unknown(part, ["count", "time", "delta"])
