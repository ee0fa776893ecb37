"""Temporal joins of two tables, and a dumb one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.operators.base import Operator
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from tests.operators.joins.rows import STRICT

#: Side, key, time, value, and whether the version says that its key is deleted.
Row = tuple[bool, str | None, int | None, int, bool | None]
COLUMNS = {"seq": pa.int64(), "k": pa.string(), "ts": pa.int64(), "v": pa.int64(), "d": pa.bool_()}

ROWS = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 15),
        st.integers(0, 9), st.sampled_from([False, False, True, None]),
    ),
    max_size=8,
)  # fmt: skip
#: Rows that come together, and the watermark after them.
SCRIPTS = st.lists(st.tuples(ROWS, st.integers(-12, 20)), max_size=6)


@dataclass(frozen=True)
class Case:
    """What is joined."""

    how: Any = "left"
    has_deleted: bool = False
    lives: int | None = None
    most: int | None = None
    null_safe: bool = False

    def outputs(self, left: pa.Table, right: pa.Table, **options: Any) -> gw.typing.Outputs:
        """Return the outputs of two tables."""
        sides = (gw.stream(side).event_time("ts", STRICT).key_by("k") for side in (left, right))
        one, other = sides
        joined = one.temporal_join(other, "d" if self.has_deleted else None).arrival_order("seq")
        if self.lives is not None:
            joined = joined.valid_for(timedelta(microseconds=self.lives))
        joined = joined.null_safe() if self.null_safe else joined
        joined = joined.options(**{"device": "cpu", **options})
        where = None
        if self.most is not None:
            where = pc.field("left_v") + pc.field("right_v") <= self.most
        return joined.with_outputs().select(["v"], ["v"], how=self.how, where=where)


CASES = st.builds(
    Case, how=st.sampled_from(["inner", "left"]), has_deleted=st.booleans(),
    lives=st.none() | st.integers(1, 12), most=st.none() | st.integers(4, 14),
    null_safe=st.booleans(),
)  # fmt: skip


def table(rows: list[Row], *, left: bool, instants: bool = False) -> pa.Table:
    """Return the rows of a side."""
    mine = [(number, *row[1:]) for number, row in enumerate(rows) if row[0] == left]
    arrays = zip(*mine, strict=True) if mine else ([],) * len(COLUMNS)
    named = zip(COLUMNS.items(), arrays, strict=True)
    made = {name: pa.array(values, dtype) for (name, dtype), values in named}
    if instants:
        made["ts"] = made["ts"].cast(pa.timestamp("us", "UTC"))
    return pa.table(made)


NOTHING = [table([], left=side) for side in (True, False)]


def planned(case: Case) -> Plan:
    """Return the plan of a stream."""
    return plan(case.outputs(*NOTHING).plan.query, bounded=False)


def batch_of(rows: list[Row], planned: Plan) -> pa.Table:
    """Return rows as an operator takes them."""
    columns = {
        "is_left": [row[0] for row in rows],
        "k": [row[1] for row in rows],
        "event_time": [row[2] for row in rows],
        "left_v": [row[3] if row[0] else None for row in rows],
        "right_v": [None if row[0] else row[3] for row in rows],
        "__version_deleted": [None if row[0] else row[4] for row in rows],
        "__order_0": [0] * len(rows),
    }
    fields = [planned.query.schema.field(name) for name in planned.input_columns]
    return pa.table([pa.array(columns[f.name], f.type) for f in fields], schema=pa.schema(fields))


def taken(operator: Operator, rows: pa.Table | None, watermark: int | None) -> list[Any]:
    """Return what a call gives, in order."""
    emissions = [] if rows is None else [*operator.process(rows)]
    emissions += [] if watermark is None else operator.advance_watermark(watermark)
    return [tuple(row.values()) for each in emissions for row in each.results.to_pylist()]


class Dumb:
    """Flink's algorithm over lists."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._left: list[Row] = []
        self.versions: list[Row] = []  # in order of arrival
        self.watermark = -(1 << 63)

    def call(self, rows: list[Row], watermark: int) -> list[Any]:
        """Take rows, then a watermark; return what is given, in order of arrival."""
        for row in rows:
            if row[2] is not None:
                (self._left if row[0] else self.versions).append(row)
        if watermark <= self.watermark:
            return []
        self.watermark = watermark
        due = [row for row in self._left if row[2] <= watermark]  # type: ignore[operator]
        self._left = [row for row in self._left if row not in due]
        found = [(row[1], row[3], self._value(row)) for row in due]
        self.versions = [row for row in self.versions if self._stays(row)]
        return [row for row in found if row[2] is not None or self._case.how == "left"]

    def _value(self, left: Row) -> int | None:
        newest: Row | None = None
        for row in self.versions:
            same = row[1] == left[1] and (left[1] is not None or self._case.null_safe)
            if same and row[2] <= left[2] and (newest is None or row[2] >= newest[2]):  # type: ignore[operator]
                newest = row
        if newest is None or (self._case.has_deleted and newest[4]):
            return None
        if self._case.lives is not None and left[2] - newest[2] >= self._case.lives:  # type: ignore[operator]
            return None
        is_held = self._case.most is None or left[3] + newest[3] <= self._case.most
        return newest[3] if is_held else None

    def _stays(self, row: Row) -> bool:
        ts: Any = row[2]
        if self._case.lives is not None and ts + self._case.lives - 1 <= self.watermark:
            return False
        others: Any = [other[2] for other in self.versions if other[1] == row[1]]
        return not any(ts < other <= self.watermark for other in others)

    def left_in_state(self) -> int:
        """Return how many left rows wait."""
        return len(self._left)
