"""Contents of windows (rows, accumulators or a reduced row), and calls of window functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.definitions import BoundAggregate, bind
from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.errors import QueryError
from gpu_windows.functions.checked_results import check_not_cut, checked_column, checked_rows
from gpu_windows.functions.failures import call_user, describe_pane, errors_located
from gpu_windows.functions.process import Process, ProcessContext
from gpu_windows.functions.vector_window import WindowBatch
from gpu_windows.functions.vectorised import BatchFunction
from gpu_windows.functions.window import Aggregates, Collect, Reduce, WindowFunction
from gpu_windows.operators.batch_functions import Evaluator, evaluator_of
from gpu_windows.operators.keyed.values import UserKey
from gpu_windows.operators.row_at_a_time.accumulators import accumulator_of, window_accumulator
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.rules import TICKS, Units, unit_of
from gpu_windows.user_values import copy_value
from gpu_windows.vocabulary.triggers import Row
from gpu_windows.vocabulary.windows import GlobalWindow, SlicedAssigner, Window, WindowAssigner

#: The values of the result columns of one result row.
Values = Sequence[object]
#: Returns the user's name of a column.
DisplayName = Callable[[str], str]


class StoredRow(NamedTuple):
    """A row in the contents of a window.

    Parameters
    ----------
    row : mapping
        The columns that the window function reads.
    timestamp : int
        Of the row, in ticks.
    seen : mapping
        The columns that assigner, trigger and evictor read.
    """

    row: Row
    timestamp: int
    seen: Row


class Contents(ABC):
    """The contents of one key and window (Flink: the window state)."""

    @abstractmethod
    def add(self, element: StoredRow, window: Window) -> None:
        """Add a row of the window, in order of arrival."""

    @property
    def is_changed(self) -> bool:
        """Whether the window may fire: not if it needs a row in its last slide and has none."""
        return True

    @abstractmethod
    def absorb(self, other: Self) -> None:
        """Add the contents of a window that is merged into this one."""

    @abstractmethod
    def values(self) -> Values:
        """Return the values of the rows so far; more may be added after it."""


class Accumulators(Contents):
    """The accumulators of aggregates, without the rows."""

    def __init__(
        self,
        function: Aggregates,
        display_name: DisplayName,
        *,
        merges: bool = False,
        last: int | None = None,
        units: Units = TICKS,
    ) -> None:
        self.parts = [
            window_accumulator(bound, display_name, merges=merges) for bound in function.bound
        ]
        self._recents = [_recent_of(bound) for bound in function.bound]
        self._changes, self._units = last is not None, units
        if last is not None:  # how many rows are in the last slide, which is this long
            self.parts.append(accumulator_of(_ROWS))
            self._recents.append(last)

    def add(self, element: StoredRow, window: Window) -> None:
        """Add the row to every aggregate that covers its part of the window."""
        for part, recent in zip(self.parts, self._recents, strict=True):
            if recent is None or self._units_left(element, window) < recent:
                part.add(element.row)

    def _units_left(self, element: StoredRow, window: Window) -> int:
        last, own = (unit_of(t, self._units) for t in (window.max_timestamp, element.timestamp))
        return int(last - own)

    @property
    def is_changed(self) -> bool:
        """Whether a row is in the last slide, if the window requires one."""
        return not self._changes or self.parts[-1].result() > 0

    def absorb(self, other: Self) -> None:
        """Merge every accumulator."""
        for part, other_part in zip(self.parts, other.parts, strict=True):
            part.absorb(other_part)

    def values(self) -> Values:
        """Return the aggregates."""
        parts = self.parts[:-1] if self._changes else self.parts
        return [part.result() for part in parts]


class Reduced(Contents):
    """The one row that all rows so far were reduced to; None if there was none."""

    def __init__(self, function: Reduce, display_name: DisplayName, schema: pa.Schema) -> None:
        self._function = function
        self._types = {name: schema.field(name).type for name in function.columns}
        self._names = {display_name(name): name for name in function.columns}
        self._owner = function.owners
        self.row: Row | None = None

    def add(self, element: StoredRow, window: Window) -> None:
        """Reduce the current row and the new one; the first row becomes the current one."""
        del window
        self._reduce(element.row)

    def absorb(self, other: Self) -> None:
        """Reduce both rows to one."""
        if other.row is not None:
            self._reduce(other.row)

    def _reduce(self, row: Row) -> None:
        if self.row is None:
            self.row = dict(row)  # other windows have the same row
            return
        reduce, seen = self._function.function, (self._user_row(self.row), self._user_row(row))
        reduced = call_user(reduce, lambda: "reduce, at rows {!r}, {!r}".format(*seen), *seen)
        if not isinstance(reduced, Mapping) or set(reduced) != set(self._names):
            rule = f"a reduce function must return exactly {', '.join(self._names)}"
            raise QueryError(rule, value=repr(reduced))
        self.row = {
            name: copy_value(
                check_not_cut(reduced[user_name], self._types[name], self._owner[name])
            )
            for user_name, name in self._names.items()
        }

    def _user_row(self, row: Row) -> dict[str, object]:
        """Return a copy of a row for the function, which may write into it."""
        return {user_name: copy_value(row[name]) for user_name, name in self._names.items()}

    def values(self) -> Values:
        """Return the columns of the row; nulls if there was none."""
        row = self.row or dict.fromkeys(self._function.columns)
        return [row[name] for name in self._function.columns]


class StoredRows(Contents):
    """All rows, in order of arrival."""

    def __init__(self, make: Callable[[Sequence[StoredRow]], Values]) -> None:
        self._make = make
        self.rows: list[StoredRow] = []

    def add(self, element: StoredRow, window: Window) -> None:
        """Append the row."""
        del window
        self.rows.append(element)

    def absorb(self, other: Self) -> None:
        """Append the rows of the other."""
        self.rows += other.rows

    def values(self) -> Values:
        """Return the values that the function makes of the rows."""
        return self._make(self.rows)


def contents_of(query: WindowQuery) -> Callable[[], Contents]:
    """Return the factory of empty contents for a query.

    Contents are rows if the function or the evictor needs them.
    """
    function = query.function
    if isinstance(function, Process):
        function = function.incremental or function
    if query.keeps_rows:
        by_time = query.rows_in_time_order
        return lambda: StoredRows(lambda rows: _values_of(query, function, rows, by_time=by_time))
    match function:
        case Aggregates():
            last = _slide_of(query.assigner) if query.changed_only else None
            return lambda: Accumulators(
                function, query.display_name, merges=query.merges, last=last, units=query.units
            )
        case Reduce():
            return lambda: Reduced(function, query.display_name, query.schema)
        case _:
            raise AssertionError("functions that need the rows keep them")


def _values_of(
    query: WindowQuery, function: WindowFunction, rows: Sequence[StoredRow], *, by_time: bool
) -> Values:
    if by_time:
        rows = sorted(rows, key=lambda element: element.timestamp)
    match function:
        case Aggregates():
            return _values_over(Accumulators(function, query.display_name), rows)
        case Reduce():
            return _values_over(Reduced(function, query.display_name, query.schema), rows)
        case Collect() | Process() | BatchFunction():
            return [[element.row[name] for element in rows] for name in function.columns]
        case _:
            raise NotImplementedError(f"{type(function).__name__}: what becomes of its rows?")


def _values_over(contents: Contents, rows: Iterable[StoredRow]) -> Values:
    for element in rows:
        contents.add(element, GlobalWindow())
    return contents.values()


def _slide_of(assigner: WindowAssigner) -> int | None:
    return assigner.grid().slide if isinstance(assigner, SlicedAssigner) else None


#: Counts rows.
_ROWS = bind("rows", Aggregate("count"), pa.schema([]))


def _recent_of(bound: BoundAggregate | BoundUserAggregate) -> int | None:
    """Return the length of the last part of a window that an aggregate covers; None: all of it."""
    return bound.aggregate.recent if isinstance(bound, BoundAggregate) else None


@dataclass(frozen=True)
class Processor:
    """Calls a process function with the contents of a window."""

    query: WindowQuery
    function: Process

    def clear(self, key: Sequence[object], context: ProcessContext) -> None:
        """Call the function's ``clear`` when its window is dropped."""
        function = self.function.function
        owner = type(function).__name__
        with errors_located(
            f"{owner}.clear", lambda: describe_pane(self._user_key(key), context.window)
        ):
            function.clear(context)

    def rows(
        self, key: Sequence[object], values: Values, context: ProcessContext
    ) -> Iterator[Values]:
        """Yield the function's result rows as values of its output columns."""
        process, output = self.function, self.function.output
        owner, user_key = type(process.function).__name__, self._user_key(key)

        def place(*_: object) -> str:
            return describe_pane(user_key, context.window)

        table = self._table(values, place)
        with errors_located(f"{owner}.process", place, process.function.process):
            found = process.function.process(user_key, context, table)
            for row in checked_rows(found, output, owner):
                yield [row[name] for name in output.names]

    @cached_property
    def _user_key(self) -> UserKey:
        return UserKey(self.query.display_key_fields)

    def _table(self, values: Values, place: Callable[[int], str]) -> Any:
        process = self.function
        if process.aggregates is not None:
            fields = [pa.field(b.name, b.result_type) for b in process.aggregates.bound]
        else:
            fields = [self.query.schema.field(name) for name in process.columns]
        if process.incremental is not None:
            values = [[value] for value in values]
        made = process.incremental
        owners = {} if made is None else made.owners
        columns: Any = zip(values, fields, strict=True)
        arrays = [
            checked_column(v, field, owners[field.name], place)
            if field.name in owners
            else pa.array(v, field.type)
            for v, field in columns
        ]
        names = [self.query.display_name(field.name) for field in fields]
        table = pa.Table.from_arrays(arrays, schema=pa.schema(fields)).rename_columns(names)
        return table.to_pandas() if process.rows == "pandas" else table


@dataclass(frozen=True)
class BatchProcessor:
    """Calls a function of many windows with one window at a time."""

    query: WindowQuery
    evaluate: Evaluator

    def clear(self, key: Sequence[object], context: ProcessContext) -> None:
        """Do nothing: such functions have no state."""

    def rows(
        self, key: Sequence[object], values: Values, context: ProcessContext
    ) -> Iterator[Values]:
        """Yield the function's result rows as values of its output columns."""
        keys = self.query.display_keys
        fields = self.query.display_key_fields
        fields += [pa.field(name, pa.int64()) for name in (WINDOW_START, WINDOW_END)]
        window: Any = context.window
        of_window = zip((*key[: len(keys)], window.start, window.end), fields, strict=True)
        windows = [pa.array([value], field.type) for value, field in of_window]
        rows = self.query.display_fields(self.query.function.columns)
        lists = [pa.array(v, f.type) for v, f in zip(values, rows, strict=True)]
        batch = WindowBatch(
            pa.Table.from_arrays(windows, schema=pa.schema(fields)),
            pa.Table.from_arrays(lists, schema=pa.schema(rows)),
            np.array([0, len(lists[0]) if lists else 0], np.int64),
        )
        for piece in self.evaluate(batch):
            for tag, (rows_aside, _) in piece.sides.items():
                for row in rows_aside.to_pylist():
                    context.output(tag, row)
            for counter, by in piece.counts.items():
                context.count(counter, by)
            yield from ([*row.values()] for row in piece.rows.to_pylist())


def processor_of(query: WindowQuery) -> Processor | BatchProcessor | None:
    """Return the caller of the user's window function; None if the query has none."""
    if isinstance(query.function, Process):
        return Processor(query, query.function)
    if isinstance(query.function, BatchFunction):
        return BatchProcessor(query, evaluator_of(query.function))
    return None
