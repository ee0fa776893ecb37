"""Statements of Flink's SQL that take rows of windows by their number: top-N, deduplication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.aggregates.built_in import arg_max, arg_min
from gpu_windows.aggregates.definitions import bind
from gpu_windows.functions.top import Top
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.conformance.cases import OneInput, Windows
from tests.conformance.errors import ScenarioError
from tests.conformance.functions import SCHEMA, NamedFunction
from tests.conformance.scenario import Record, Scenario

_NUMBER = "rn"
_SEQ = "seq"


@dataclass(frozen=True)
class SqlRows(OneInput):
    """Rows of windows, known by their place in the input; rows that are late are dropped."""

    records: Mapping[int, Record] = field(default_factory=dict)

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        record = self.records[row[_SEQ]]
        of_row = {"key": record.key, "ts": record.ts, "value": record.value}
        window = {WINDOW_START: row[WINDOW_START], WINDOW_END: row[WINDOW_END]}
        return {"op": "+I", **of_row, **window, **self.payload(row), "timestamp": None}


@dataclass(frozen=True)
class SqlTop(SqlRows):
    """The first rows of windows of all keys, which have one key here."""

    def keys(self, records: Sequence[Record]) -> list[str]:
        """Return one key for all records."""
        return [""] * len(records)

    def outputs(
        self, frames: Sequence[Any], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over a DataFrame."""
        (frame,) = frames
        keyed = gw.stream(frame).event_time("ts", watermarks).key_by("key")
        windowed = self.windows.of(keyed.window(self.windows.assigner), options)
        top = self.function.window_function
        assert isinstance(top, Top)
        return windowed.with_outputs().top(top.count, "value", columns=[_SEQ], number=_NUMBER)


def window_dedup(scenario: Scenario, ticks_per_ms: int) -> SqlRows:
    """Return the first or the last row of a key and window."""
    keep = scenario.operator.whole.word("keep")
    if keep not in ("first", "last"):
        raise ScenarioError("a deduplication keeps the first or the last row", value=repr(keep))
    picked = arg_min(_SEQ, "ts") if keep == "first" else arg_max(_SEQ, "ts", first=False)
    function = Aggregates((bind(_SEQ, picked, SCHEMA),))
    named = NamedFunction(function, lambda _: {})
    return SqlRows(_tumbling(scenario, ticks_per_ms), named, records=_by_place(scenario))


def window_top_n(scenario: Scenario, ticks_per_ms: int) -> SqlTop:
    """Return the rows of a window with the greatest values."""
    output = pa.schema([SCHEMA.field(_SEQ), pa.field(_NUMBER, pa.int64())])
    top = Top(scenario.operator.whole.integer("n"), ((1, True),), (_SEQ, "value"), output)
    named = NamedFunction(top, lambda row: {_NUMBER: row[_NUMBER]})
    return SqlTop(_tumbling(scenario, ticks_per_ms), named, records=_by_place(scenario))


def _tumbling(scenario: Scenario, ticks_per_ms: int) -> Windows:
    size = scenario.operator.whole.integer("size_ms") * ticks_per_ms
    assigner = TumblingEventTimeWindows(size)
    return Windows(assigner, assigner.default_trigger())


def _by_place(scenario: Scenario) -> Mapping[int, Record]:
    return {record.seq: record for record in scenario.records}
