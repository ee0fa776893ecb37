"""Aggregates over the rows before a row, in Flink's SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import (
    count,
    count_distinct,
    first,
    last,
    max_,
    mean,
    min_,
    sum_,
)
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.planning.plan import Plan
from gpu_windows.vocabulary.frames import Frame, Range, Rows
from gpu_windows.vocabulary.options import Options
from tests.conformance.errors import ScenarioError
from tests.conformance.keyed_rows import KeyedRows
from tests.conformance.scenario import Record, Scenario

#: Aggregates by the scenarios' names, and their columns in statements with several.
_AGGREGATES: dict[str, tuple[str, Aggregate]] = {
    "sum": ("s", sum_("value")),
    "count": ("c", count()),
    "max": ("m", max_("value")),
    "min": ("mi", min_("value")),
    "avg": ("a", mean("value")),
    "first_seq": ("f", first("seq")),
    "last_seq": ("l", last("seq")),
    "count_distinct": ("cd", count_distinct("value")),
}
#: The column of the only aggregate.
_ONLY = "agg"
_EPOCH = 0


@dataclass(frozen=True)
class SqlOver(KeyedRows):
    """Aggregates over a frame, for every row that is not late."""

    frame: Frame
    aggregates: Mapping[str, Aggregate]

    def _keyed(self, keyed: KeyedStream, options: Options) -> gw.typing.Outputs:
        over = keyed.over(self.frame).arrival_order("seq").options(**vars(options))
        return over.with_outputs().aggregate(("value", "seq", "at"), **self.aggregates)

    def batch(self, records: Sequence[Record], plan: Plan) -> pa.Table:
        """Return the records that Flink takes as rows."""
        return super().batch(self._taken(records), plan)

    def table(self, records: Sequence[Record], ticks_per_ms: int) -> pa.Table:
        """Return the records that Flink takes as rows of a DataFrame."""
        return super().table(self._taken(records), ticks_per_ms)

    def _taken(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records that Flink does not drop because they are of 1970 or before.

        Where a frame has a beginning, the last time of a key that has none is 0 for it. Such rows
        change nothing else. Ours are not late; that is a difference on purpose.
        """
        if self.frame.is_unbounded_before:
            return records
        return [record for record in records if record.ts > _EPOCH]

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the aggregates."""
        return {name: row[name] for name in self.aggregates}

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        of_row = {"key": row["key"], "ts": row["at"], "value": row["value"], "seq": row["seq"]}
        return {"op": "+I", **of_row, **self.payload(row), "timestamp": None}


def over(scenario: Scenario, ticks_per_ms: int) -> SqlOver:
    """Return the aggregates over the rows before a row."""
    whole = scenario.operator.whole
    kind, named = whole.word("frame"), whole.parameters.get("agg")
    preceding = None
    if whole.parameters.get("preceding") is not None:
        preceding = whole.integer("preceding")
    names = [named] if isinstance(named, str) else whole.words("agg")
    if unknown := {*names} - {*_AGGREGATES}:
        rule = f"an aggregate is one of {', '.join(_AGGREGATES)}"
        raise ScenarioError(rule, value=repr(min(unknown)))
    aggregates = dict(_AGGREGATES[name] for name in names)
    if isinstance(named, str):
        aggregates = {_ONLY: _AGGREGATES[named][1]}
    return SqlOver(_frame(kind, preceding, ticks_per_ms), aggregates)


def _frame(kind: str, preceding: int | None, ticks_per_ms: int) -> Frame:
    if kind == "rows":
        return Rows(preceding)
    if kind != "range":
        raise ScenarioError("a frame is one of rows, range", value=repr(kind))
    if preceding is None:
        return Range()
    return Range(timedelta(microseconds=preceding * ticks_per_ms))


@dataclass(frozen=True)
class SqlSort(SqlOver):
    """Rows in order of time, those of all keys together, which have one key here."""

    records: Mapping[int, Record]

    def _taken(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return all records: this operator drops none of them for its year."""
        return records

    def keys(self, records: Sequence[Record]) -> list[str]:
        """Return one key for all records."""
        return [""] * len(records)

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        key = self.records[row["seq"]].key
        of_row = {"key": key, "ts": row["at"], "value": row["value"], "seq": row["seq"]}
        return {"op": "+I", **of_row, "timestamp": None}


def temporal_sort(scenario: Scenario, ticks_per_ms: int) -> SqlSort:
    """Return rows in order of time; that is what aggregates over frames come in."""
    del ticks_per_ms
    records = {record.seq: record for record in scenario.records}
    return SqlSort(Rows(0), {"number": count()}, records)
