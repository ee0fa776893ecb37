"""A case: a query, a script of what arrives, and how it is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from gpu_windows.functions.two_inputs import COPY, HERE, SIDE, TIME
from gpu_windows.planning.kinds.grouping import GroupingSets
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Options
from tests.reference.run import reference_plan
from tests.simulation.processes import SEEN

#: Processing time at first, in ticks.
_FIRST = 1
#: How long processing time goes on after the script, in ticks: longer than any window of it.
_AFTERWARDS = 2_100


@dataclass(frozen=True)
class Row:
    """A row.

    Parameters
    ----------
    seq : int
        Its number in order of arrival, which a column holds.
    place : float
        Where among the rows of its micro-batch a shuffle puts it.
    values : mapping
        Column to value; `SIDE` says of which input it is.
    """

    seq: int
    place: float
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Mark:
    """Times move, in ticks: to ``watermark`` after the rows before it, ``now`` for those after."""

    now: int
    watermark: int


@dataclass(frozen=True)
class Cut:
    """A micro-batch ends."""


@dataclass(frozen=True)
class Crash:
    """The micro-batch that this is in dies after so many operations, or before it is committed."""

    after: int


#: Only rows and marks have a meaning; cuts and crashes must have none.
Element = Row | Mark | Cut | Crash


@dataclass(frozen=True)
class MicroBatch:
    """What is taken at once, and the watermark afterwards."""

    rows: Sequence[Row]
    crashes: Sequence[Crash]
    watermark: int | None


@dataclass
class Segment:
    """What happens between two marks: rows, then a watermark.

    Parameters
    ----------
    now : int
        Processing time, in ticks.
    before, after : int, optional
        The watermark under which rows are taken, and the one after them; None if there is none.
    elements : list of Row, Cut or Crash
    """

    now: int
    before: int | None = None
    after: int | None = None
    elements: list[Element] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """The rows in order of arrival."""
        return [each for each in self.elements if isinstance(each, Row)]

    def micro_batches(self, *, any_order: bool) -> Iterator[MicroBatch]:
        """Yield the rows as they are cut; in any order where it means nothing."""
        rows = sorted(self.rows, key=lambda row: row.place) if any_order else self.rows
        waiting = iter(rows)
        taken: list[Row] = []
        crashes: list[Crash] = []
        for element in self.elements:
            match element:
                case Row():
                    taken.append(next(waiting))
                case Crash():
                    crashes.append(element)
                case Cut():
                    yield MicroBatch(_by_place(taken), crashes, self.before)
                    taken, crashes = [], []
        yield MicroBatch(_by_place(taken), crashes, self.after)


@dataclass(frozen=True)
class Case:
    """A case.

    Parameters
    ----------
    seed : int
    query : Query
    script : sequence of Element
    options : Options
        Of the execution.
    is_tight : bool
        Whether little is held together in the execution: few windows in a bucket, few rows in a
        run, few pairs in a piece.
    ahead : int, optional
        How many ticks the watermark that tasks before the shuffle know is ahead of the true one;
        None if they know none, and send all rows as they are.
    shard_counts : sequence of int
        Numbers of shards that the query is started with again after micro-batches that died, one
        after the other; none: as before.
    """

    seed: int
    query: Query
    script: tuple[Element, ...]
    options: Options
    is_tight: bool = False
    ahead: int | None = None
    shard_counts: Sequence[int] = ()

    @property
    def wanted(self) -> Plan:
        """The plan of the run that is the truth."""
        query = self.query
        if isinstance(query, WindowQuery):
            query = replace(query, grouping=None)
        return reference_plan(replace(query, options=Options()), bounded=False, spark=True)

    @property
    def grouping(self) -> GroupingSets | None:
        """The groupings of the keys, if there are several."""
        return self.query.grouping if isinstance(self.query, WindowQuery) else None

    @property
    def executed(self) -> Plan:
        """The plan of the execution."""
        return _plan(replace(self.query, options=self.options))

    @property
    def is_stamped(self) -> bool:
        """Whether the time of rows is that of their arrival."""
        return self.query.watermarks.in_processing_time or not self.query.watermarks.moves

    def segments(self) -> list[Segment]:
        """Return the script mark by mark, and the end of time."""
        found = [Segment(_FIRST)]
        for element in self.script:
            if isinstance(element, Mark):
                found[-1].after = self._watermark(element.watermark, found[-1].now)
                found.append(Segment(element.now, before=found[-1].after))
            else:
                found[-1].elements.append(element)
        last = found[-1]
        last.after = last.now - 1 if self._by_clock else last.before
        end = last.now + _AFTERWARDS
        return [*found, Segment(end, last.after, end - 1 if self._by_clock else LONG_MAX)]

    @property
    def _by_clock(self) -> bool:
        return self.query.watermarks.in_processing_time

    def _watermark(self, drawn: int, now: int) -> int | None:
        """Return the watermark after the rows of a segment at some time."""
        if self._by_clock:
            return now - 1
        return drawn if self.query.watermarks.moves else None

    def table(self, rows: Sequence[Row], planned: Plan, now: int) -> pa.Table:
        """Return rows as a micro-batch at some time has them."""
        stamp = now if self.is_stamped else None
        if planned.query.broadcasts:
            rows = sorted(_without_keys(rows, planned.query.keys), key=lambda row: row.values[SIDE])
        fields = [planned.query.schema.field(name) for name in planned.input_columns]
        columns = [
            pa.array([_value(row, each.name, planned.query.time, stamp) for row in rows], each.type)
            for each in fields
        ]
        return pa.table(columns, schema=pa.schema(fields).remove_metadata())


def _by_place(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.place)


def _plan(query: Query) -> Plan:
    return plan(query, bounded=False, spark=True)


def _without_keys(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Return rows, those of the right side without keys."""
    none = dict.fromkeys(keys)
    bare = (replace(row, values={**row.values, **none}) for row in rows)
    return [row if row.values[SIDE] else other for row, other in zip(rows, bare, strict=True)]


def _value(row: Row, name: str, time: str, stamp: int | None) -> Any:
    """Return what a row has in a column; of the other side's it has null."""
    if name == time:
        return row.values["ts"] if stamp is None else stamp
    if name in row.values:
        return row.values[name]
    if name in ("seq", "__order_0"):
        return row.seq
    if name == COPY:
        return False
    side, _, column = name.removeprefix("__").partition("_")
    of_row = ("left", "keyed") if row.values[SIDE] else ("right", "broadcast")
    if side not in of_row:
        return None
    if column == HERE:
        return True
    if column in (time, TIME, "ts", "mark"):
        return row.values["ts"] if stamp is None else stamp
    return row.seq if column == "seq" else row.values[SEEN.get(column, column)]
