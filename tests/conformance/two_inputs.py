"""Scenarios of two inputs in our words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

import gpu_windows as gw
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.functions.join import JoinType
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.conformance.cases import Case, Windows
from tests.conformance.functions import SCHEMA
from tests.conformance.scenario import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What is taken of each side: scenarios tell all three of a row.
_CHOSEN = ("value", "seq", "at")


class TwoInputs(Case):
    """A scenario of two inputs."""

    sides = ("left", "right")

    @abstractmethod
    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""

    def query(self, options: Options) -> Query:
        """Return the query that the public API makes of tables without rows."""
        nothing = SCHEMA.append(SCHEMA.field("ts").with_name("at")).empty_table()
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        sides = [gw.stream(nothing).event_time("ts", strategy).key_by("key") for _ in self.sides]
        return self.joined(sides, options).plan.query

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over the DataFrames of both sides."""
        sides = [gw.stream(frame).event_time("ts", watermarks).key_by("key") for frame in frames]
        return self.joined(sides, options)

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of both sides, those of the other side null."""
        columns: dict[str, Iterable[object]] = {
            "key": self.keys(records),
            TIME: [record.ts for record in records],
            SIDE: [record.side == "left" for record in records],
            "__order_0": [record.seq for record in records],
            "value": [record.value for record in records],
        }
        for side in self.sides:
            own = [record if record.side == side else None for record in records]
            columns[f"{side}_value"] = [None if r is None else r.value for r in own]
            columns[f"{side}_seq"] = [None if r is None else r.seq for r in own]
            columns[f"{side}_at"] = [None if r is None else r.ts for r in own]
        return columns

    def seq_of(self, row: Mapping[str, Any]) -> int:
        """Return which record a row is."""
        seq: int = row["left_seq" if row[SIDE] else "right_seq"]
        return seq


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    sides = ("left", "right")
    return {
        **{side: row[f"{side}_value"] for side in sides},
        **{f"{side}_ts": row[f"{side}_at"] for side in sides},
        **{f"{side}_seq": row[f"{side}_seq"] for side in sides},
    }


def _lists(row: Mapping[str, Any]) -> dict[str, Any]:
    sides = ("left", "right")
    return {
        **{side: row[f"{side}_value"] for side in sides},
        **{f"{side}_seq": row[f"{side}_seq"] for side in sides},
    }


@dataclass(frozen=True)
class _Kind:
    """What is made of both sides of a window."""

    outputs: Callable[[KeyedStream, KeyedStream, Windows, Options], gw.typing.Outputs]
    payload: Callable[[Mapping[str, Any]], dict[str, Any]]


def _join(
    left: KeyedStream, right: KeyedStream, windows: Windows, options: Options
) -> gw.typing.Outputs:
    windowed = windows.of(left.join(right).window(windows.assigner), options)
    return windowed.with_outputs().select(_CHOSEN, _CHOSEN)


def _co_group(
    left: KeyedStream, right: KeyedStream, windows: Windows, options: Options
) -> gw.typing.Outputs:
    windowed = windows.of(left.co_group(right).window(windows.assigner), options)
    return windowed.with_outputs().collect_lists(_CHOSEN, _CHOSEN)


#: Kinds of scenarios with two inputs in windows.
TWO_SIDED = {"window_join": _Kind(_join, _pair), "co_group": _Kind(_co_group, _lists)}


@dataclass(frozen=True)
class WindowedSides(TwoInputs):
    """Windows over two inputs."""

    windows: Windows
    kind: _Kind

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""
        left, right = sides
        return self.kind.outputs(left, right, self.windows, options)

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a pair, or both lists."""
        return self.kind.payload(row)

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a firing; Flink's CoGroupFunction knows a key by its rows, if there are any."""
        emission = super().emission(row)
        rows = (emission["left_seq"], emission["right_seq"])
        return {**emission, "key": None} if rows == ([], []) else emission


@dataclass(frozen=True)
class JoinedInTime(TwoInputs):
    """An interval join; bounds in ticks."""

    lower: int
    upper: int
    lower_inclusive: bool = True
    upper_inclusive: bool = True

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""
        left, right = sides
        bounds = (timedelta(microseconds=bound) for bound in (self.lower, self.upper))
        pairs = left.interval_join(right).between(*bounds).options(**vars(options))
        if not self.lower_inclusive:
            pairs = pairs.lower_bound_exclusive()
        if not self.upper_inclusive:
            pairs = pairs.upper_bound_exclusive()
        return pairs.with_outputs().select(_CHOSEN, _CHOSEN)

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a pair."""
        return _pair(row)

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a pair, which has no window."""
        pair = self.payload(row)
        return {"key": row["key"], **pair, "timestamp": max(pair["left_ts"], pair["right_ts"])}

    def step_of(self, row: Mapping[str, Any], step: int | None) -> int | None:
        """Return which record made a pair: the later one."""
        del step
        return max(int(row["left_seq"]), int(row["right_seq"]))


class _SqlJoin(TwoInputs):
    """A join in SQL: its rows have the names of the statement, and no cause."""

    how: JoinType

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return both sides of a row."""
        return {
            "op": "+I",
            "l": row["left_value"],
            "r": row["right_value"],
            "left_seq": row["left_seq"],
            "right_seq": row["right_seq"],
            "timestamp": None,
        }


@dataclass(frozen=True)
class SqlWindowJoin(_SqlJoin):
    """A join of the rows of windows, in SQL."""

    size: int
    how: JoinType

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""
        left, right = sides
        windowed = left.join(right).window(TumblingEventTimeWindows(self.size)).arrival_order("seq")
        return (
            windowed.options(**vars(options)).with_outputs().select(_CHOSEN, _CHOSEN, how=self.how)
        )

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        bounds = {name: row[name] for name in (WINDOW_START, WINDOW_END)}
        return {"k": row["key"], **bounds, **self.payload(row)}


class _SqlJoinInTime(_SqlJoin):
    """A join of rows in SQL, whose statement shows the keys and times of both sides."""

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement."""
        keys = {
            name: None if row[f"{side}_seq"] is None else row["key"]
            for name, side in (("lk", "left"), ("rk", "right"))
        }
        times = {f"{side}_ts": row[f"{side}_at"] for side in self.sides}
        return {**keys, **times, **self.payload(row)}


@dataclass(frozen=True)
class SqlIntervalJoin(_SqlJoinInTime):
    """A join with a condition on the times of both sides, in SQL; bounds in ticks."""

    lower: int
    upper: int
    how: JoinType
    joins_late: bool

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""
        left, right = sides
        bounds = (timedelta(microseconds=bound) for bound in (self.lower, self.upper))
        pairs = left.interval_join(right).between(*bounds)
        if self.joins_late:
            pairs = pairs.join_late().arrival_order("seq")
        return pairs.options(**vars(options)).with_outputs().select(_CHOSEN, _CHOSEN, how=self.how)


@dataclass(frozen=True)
class SqlVersionJoin(_SqlJoinInTime):
    """A join with the versions of the right side, in SQL.

    ``null_key``: the key of left records that the statement makes null.
    """

    how: JoinType
    where: pc.Expression | None
    null_key: str | None

    def keys(self, records: Sequence[Record]) -> list[str | None]:
        """Return the keys of records."""
        return [None if r.side == "left" and r.key == self.null_key else r.key for r in records]

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""
        left, right = sides
        joined = left.temporal_join(right).arrival_order("seq").options(**vars(options))
        return joined.with_outputs().select(_CHOSEN, _CHOSEN, how=self.how, where=self.where)

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement, which shows the key as it came."""
        return super().emission({**row, "key": row["key"] or self.null_key})
