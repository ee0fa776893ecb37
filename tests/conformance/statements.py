"""Statements of Flink's SQL that aggregate the rows of windows, in our words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import gpu_windows as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import count, max_, min_, sum_
from gpu_windows.aggregates.definitions import bind
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.grouping import GROUPING_ID, GroupingSets
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.planning.own_columns import NO_KEY
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.triggers import CountTrigger, EarlyAndLateTrigger
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.conformance.cases import ByTheApi, OneInput, Skip, Windows
from tests.conformance.errors import ScenarioError
from tests.conformance.functions import SCHEMA, NamedFunction
from tests.conformance.scenario import Part, Record, Scenario, Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Aggregates by the scenarios' names, and their columns in the statements.
_AGGREGATES: dict[str, tuple[str, Aggregate]] = {
    "sum": ("s", sum_("value")),
    "count": ("c", count()),
    "max": ("m", max_("value")),
    "min": ("mi", min_("value")),
}


@dataclass(frozen=True)
class SqlWindows(OneInput):
    """Aggregates of a key's rows in windows, in SQL; rows that are late are dropped.

    ``bounds`` are the columns of a window's start and end.
    """

    bounds: tuple[str, str] = (WINDOW_START, WINDOW_END)

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        start, end = self.bounds
        window = {start: row[WINDOW_START], end: row[WINDOW_END]}
        return {"op": "+I", "key": row["key"], **window, **self.payload(row), "timestamp": None}


@dataclass(frozen=True)
class SqlWindowsOfAll(ByTheApi, SqlWindows):
    """Aggregates of all rows in windows, whatever their keys."""

    def _outputs(self, timed: TimedStream, options: Options) -> gw.typing.Outputs:
        windowed = self.windows.of(timed.window_all(self.windows.assigner), options)
        built_in = self.function.window_function.built_in
        return windowed.with_outputs().aggregate(
            **{bound.name: bound.aggregate for bound in built_in}
        )

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of `SCHEMA`, and the key that stands for none."""
        return {**super().columns(records), NO_KEY: [True] * len(records)}

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        emission = super().emission({**row, "key": None})
        return {name: value for name, value in emission.items() if name != "key"}


@dataclass(frozen=True)
class SqlGroupings(SqlWindows):
    """Aggregates of a key's rows in windows, and of all rows in windows."""

    sets: ClassVar[tuple[tuple[str, ...], ...]] = (("key",), ())

    def query(self, options: Options) -> Query:
        """Return the query of the local runner, over the columns of `SCHEMA`."""
        query = super().query(options)
        assert isinstance(query, WindowQuery)
        return replace(query, grouping=GroupingSets.of(query.keys, self.sets))

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over a DataFrame."""
        (frame,) = frames
        keyed = gw.stream(frame).event_time("ts", watermarks).key_by("key")
        windowed = self.windows.of(keyed.window(self.windows.assigner), options)
        built_in = self.function.window_function.built_in
        grouped = windowed.grouping_sets(*self.sets)
        return grouped.with_outputs().aggregate(
            **{bound.name: bound.aggregate for bound in built_in}
        )

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the aggregates, and which grouping they are of."""
        return {**super().payload(row), "g": row[GROUPING_ID.name]}


def window_tvf(scenario: Scenario, ticks_per_ms: int) -> SqlWindows | Skip:
    """Return the aggregates over a window table-valued function."""
    assigner = tvf_assigner(scenario, ticks_per_ms)
    if (skip := lost_early_windows(scenario)) is not None:
        return skip
    return _aggregated(scenario, assigner, (WINDOW_START, WINDOW_END), ticks_per_ms)


def tvf_assigner(scenario: Scenario, ticks_per_ms: int) -> WindowAssigner:
    """Return the windows of a window table-valued function.

    Raises
    ------
    ScenarioError
        If there is no such function.
    """
    tvf = scenario.operator.whole.part("tvf")
    if tvf.type not in _TVFS:
        known = ", ".join(_TVFS)
        raise ScenarioError(f"a window TVF is one of {known}", value=repr(tvf.type))
    return _TVFS[tvf.type](tvf, ticks_per_ms)


def lost_early_windows(scenario: Scenario) -> Skip | None:
    """Return why a scenario is not run whose local phase in Flink keeps rows back for too long.

    It forwards what it has when a watermark exceeds the one before, which begins as 0
    (LocalSlicingWindowAggOperator.currentWatermark), and the rows are late then.
    """
    operator = scenario.operator
    if operator.kind != "window_tvf" or operator.whole.part("tvf").type == "session":
        return None
    if scenario.sql_options.get("table.optimizer.agg-phase-strategy") == "ONE_PHASE":
        return None
    early = any(isinstance(each, Watermark) and each.time <= 0 for each in scenario.input)
    if not early or all(record.ts >= 0 for record in scenario.records):
        return None
    rule = "Flink's aggregation in two phases loses what watermarks up to 1970 fire"
    return Skip(f"{rule}; recorded in one phase too")


def group_window(scenario: Scenario, ticks_per_ms: int) -> SqlWindows | Skip:
    """Return the aggregates over a window of ``GROUP BY``, the way before there were TVFs."""
    call = scenario.operator.whole.word("window")
    match = _CALL.fullmatch(call)
    durations = _DURATION.findall(call)
    if match is None or len(durations) != _GROUP_WINDOWS[match["name"]][0]:
        rule = "a group window is TUMBLE(rt, SIZE), HOP(rt, SLIDE, SIZE) or SESSION(rt, GAP)"
        raise ScenarioError(f"{rule}, each an INTERVAL in seconds", value=repr(call))
    make = _GROUP_WINDOWS[match["name"]][1]
    milliseconds = [int(Decimal(seconds) * 1000) for seconds in durations]
    assigner = make(*(each * ticks_per_ms for each in milliseconds), ticks_per_ms)
    return _aggregated(scenario, assigner, ("ws", "we"), ticks_per_ms)


def _aggregated(
    scenario: Scenario, assigner: WindowAssigner, bounds: tuple[str, str], ticks_per_ms: int
) -> SqlWindows | Skip:
    whole = scenario.operator.whole
    grouping = whole.words("group_by")
    if grouping not in _GROUPINGS:
        rule = "a statement groups by key and window, by window, or by either"
        raise ScenarioError(rule, value=repr(grouping))
    names = whole.words("agg")
    if unknown := set(names) - set(_AGGREGATES):
        rule = f"an aggregate is one of {', '.join(_AGGREGATES)}"
        raise ScenarioError(rule, value=repr(min(unknown)))
    windows = _emitted(scenario, assigner, ticks_per_ms)
    return _GROUPINGS[grouping](windows, _function(names), bounds=bounds)


#: What statements group by; the last are GROUPING SETS.
_GROUPINGS: Mapping[tuple[str, ...], type[SqlWindows]] = {
    ("key", "window"): SqlWindows,
    ("window",): SqlWindowsOfAll,
    ("key or none", "window"): SqlGroupings,
}


def _emitted(scenario: Scenario, assigner: WindowAssigner, ticks_per_ms: int) -> Windows:
    """Return when windows emit: at their end, and early and late at each row if options say so."""
    options = scenario.sql_options
    at_each_row = {
        when: CountTrigger(1)
        for when in ("early", "late")
        if options.get(f"table.exec.emit.{when}-fire.enabled") == "true"
    }
    delays = {options.get(f"table.exec.emit.{when}-fire.delay") for when in at_each_row}
    if delays - {"0 s"}:
        raise ScenarioError("early and late firings come at each row: 0 s", value=repr(delays))
    lateness = str(options.get("table.exec.emit.allow-lateness", "0 s"))
    if (match := _SECONDS.fullmatch(lateness)) is None:
        raise ScenarioError("an allowed lateness is of whole seconds", value=repr(lateness))
    trigger = EarlyAndLateTrigger(**at_each_row) if at_each_row else assigner.default_trigger()
    ms = int(match["seconds"]) * 1000
    return Windows(assigner, trigger, allowed_lateness=ms * ticks_per_ms)


def _function(names: tuple[str, ...]) -> NamedFunction:
    chosen = [_AGGREGATES[name] for name in names]
    function = Aggregates(tuple(bind(column, each, SCHEMA) for column, each in chosen))
    return NamedFunction(function, lambda row: {column: row[column] for column, _ in chosen})


def _cumulate(part: Part, t: int) -> WindowAssigner:
    size, step = part.integer("size_ms") * t, part.integer("step_ms") * t
    return CumulativeEventTimeWindows(size, step, part.integer("offset_ms", 0) * t)


def _hop(part: Part, t: int) -> WindowAssigner:
    size, slide = part.integer("size_ms") * t, part.integer("slide_ms") * t
    return SlidingEventTimeWindows(size, slide, part.integer("offset_ms", 0) * t)


def _tumble(part: Part, t: int) -> WindowAssigner:
    return TumblingEventTimeWindows(part.integer("size_ms") * t, part.integer("offset_ms", 0) * t)


_TVFS: dict[str, Callable[[Part, int], WindowAssigner]] = {
    "tumble": _tumble,
    "hop": _hop,
    "cumulate": _cumulate,
    "session": lambda part, t: EventTimeSessionWindows(part.integer("gap_ms") * t, ticks_per_ms=t),
}

_CALL = re.compile(r"(?P<name>TUMBLE|HOP|SESSION)\(rt(, INTERVAL '[\d.]+' SECOND(\(\d, \d\))?)+\)")
_SECONDS = re.compile(r"(?P<seconds>\d+) s")
_DURATION = re.compile(r"INTERVAL '(\d+(?:\.\d{1,3})?)' SECOND")
#: How many durations a group window has, and the assigner of these and of the ticks per ms.
_GROUP_WINDOWS: dict[str, tuple[int, Callable[..., WindowAssigner]]] = {
    "TUMBLE": (1, lambda size, _: TumblingEventTimeWindows(size)),
    "HOP": (2, lambda slide, size, _: SlidingEventTimeWindows(size, slide)),
    "SESSION": (1, lambda gap, t: EventTimeSessionWindows(gap, ticks_per_ms=t)),
}
