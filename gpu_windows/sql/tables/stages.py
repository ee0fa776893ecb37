"""Results of a subquery as the rows of an outer query: `gpu_windows.stream_results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

from gpu_windows.datastream.stages import stream_results
from gpu_windows.expressions.sql_text import errors_at, sql_error, to_spark_sql
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.rules import LONG_MIN
from gpu_windows.runners.outputs import Source
from gpu_windows.runners.row_stream import READ_TWICE
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.syntax.window_functions import calendar_call, tumbling_windows
from gpu_windows.sql.tables.inputs import (
    WINDOW_BOUNDS,
    WINDOW_COLUMNS,
    Input,
    Window,
    free_name,
    map_columns,
    result_column,
    window_bound,
)
from gpu_windows.sql.tables.results import Results
from gpu_windows.vocabulary.windows import (
    CalendarWindows,
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

_START, _END = WINDOW_BOUNDS


class Stages:
    """The stages of a statement: their names, and the tables that were read.

    Parameters
    ----------
    names : set of str, optional
        Names that are used, in lower case; those of this statement are added.
    """

    def __init__(self, names: set[str] | None = None) -> None:
        self._read: list[object] = []
        self._names = set() if names is None else names

    def read(self, source: Source, node: exp.Expr) -> None:
        """Record that a table is read.

        Raises
        ------
        SqlError
            If its rows can be read once, and were read before.
        """
        for reader in source.readers:
            if any(reader is other for other in self._read):
                raise sql_error(node, READ_TWICE)
            self._read.append(reader)

    def add(self, results: Results, name: str, alias: str, node: exp.Expr) -> Input:
        """Return results as the rows of a table.

        Parameters
        ----------
        results : Results
        name : str
            Of the stage, if no other has it.
        alias : str
            The name that may qualify its columns.
        node : sqlglot.exp.Expr
            The subquery, for the position of errors.

        Raises
        ------
        SqlError
            If results have no event time, or cannot be streamed.
        """
        name = free_name(name or "stage", self._names)
        self._names.add(name.lower())
        with errors_at(node):
            value = stream_results(results.base.value, name)
            inner = results.base.code.replace("\n", "\n    ")
            code = f"gw.stream_results(\n    {inner},\n    {name!r},\n)"
            rows = _Rows(ApiCall(value, code), results)
            for items, where in results.steps:
                if where is not None:
                    rows.filter(where)
                rows.project(items)
            return rows.input(alias)


def windows_by_end(windows: ApiCall) -> ApiCall | None:
    """Return the windows of TUMBLE with the ends of those of HOP or CUMULATE; None for others."""
    assigner = windows.value
    if isinstance(assigner, SlidingEventTimeWindows):
        size, offset = assigner.slide, (assigner.offset + assigner.size) % assigner.slide
    elif isinstance(assigner, CumulativeEventTimeWindows):
        size, offset = assigner.step, assigner.offset % assigner.step
    elif isinstance(assigner, CalendarWindows):
        return None if assigner.is_tumbling else calendar_call(assigner.by_end)
    else:
        return None
    return tumbling_windows([size, offset] if offset else [size])


def _is_tumbling(assigner: object) -> bool:
    if isinstance(assigner, CalendarWindows):
        return assigner.is_tumbling
    return isinstance(assigner, TumblingEventTimeWindows)


class _Rows:
    """The rows of a stage, and the names that the subquery gives to their columns."""

    def __init__(self, stream: ApiCall, results: Results) -> None:
        self._stream, self._results = stream, results
        self._time: str = stream.value.time
        self._columns = {n: self._time if n in results.times else n for n in results.base_names}
        windows = {results.start or _START: _START, _END: _END}
        self._bounds = {} if results.window is None else windows
        self._ends = None if results.window is None else windows_by_end(results.window)

    def filter(self, where: exp.Expr) -> None:
        """Keep the rows for which a condition is true."""
        self._stream = self._stream.call("where", self._spark_text(where))

    def project(self, items: Mapping[str, exp.Expr]) -> None:
        """Replace the columns by expressions over them."""
        columns: dict[str, str] = {}
        added: dict[str, str] = {}
        for name, node in items.items():
            column = self._column(node)
            is_key = column == _START and self._ends is not None
            if column is None or (column in WINDOW_BOUNDS and column != name) or is_key:
                text = self._spark_text(node)
                same = (one for one, other in added.items() if other == text)
                used = (*self._stream.value.source.user_columns, *added)
                column = next(same, None) or free_name(name, used)
                added[column] = text
            columns[name] = column
        if added:
            self._stream = self._stream.call("with_columns", **added)
        renamed = {name: node.name for name, node in items.items() if isinstance(node, exp.Column)}
        self._bounds = {
            new: self._bounds[old] for new, old in renamed.items() if old in self._bounds
        }
        self._columns = columns

    def input(self, alias: str) -> Input:
        """Return the rows as a table."""
        return Input(
            alias,
            self._stream,
            columns=self._columns,
            is_results=True,
            result_windows=self._result_windows(),
            delays={n: d for n, d in self._results.delays.items() if n not in self._results.times},
        )

    def _result_windows(self) -> Window | None:
        """Return the windows of results, if rows can be grouped by them again."""
        windows = self._results.window
        if windows is None:
            return None
        times = (name for name, column in self._columns.items() if column == self._time)
        columns = {**self._bounds, **dict.fromkeys(times, WINDOW_COLUMNS[2])}
        if self._ends is None and self._results.start is None:
            return Window(windows, columns=columns) if _is_tumbling(windows.value) else None
        starts = (self._columns[name] for name, bound in self._bounds.items() if bound == _START)
        columns = {name: bound for name, bound in columns.items() if bound != _START}
        return Window(self._ends or windows, columns=columns, start=next(starts, None))

    def _column(self, node: exp.Expr) -> str | None:
        """Return the column of the rows that holds a result; None for other expressions."""
        if self._bounds.get(_END) == _END and node == window_bound(WINDOW_COLUMNS[2]):
            return self._time
        if not isinstance(node, exp.Column):
            return None
        column = self._columns[node.name]
        return self._time if column in self._results.times else column

    def _spark_text(self, node: exp.Expr) -> str:
        renamed = map_columns(node, lambda each: result_column(self._columns[each.name]))
        return to_spark_sql(renamed)


def in_same_windows(
    left: Input, right: Input, conditions: Sequence[exp.Expr]
) -> tuple[Input, Input]:
    """Return both sides, in their result windows if conditions equate both bounds of them."""
    result_windows = left.in_result_windows, right.in_result_windows

    def is_bound(column: exp.Expr) -> bool:
        return any(side.window_bound(column) in WINDOW_BOUNDS for side in result_windows)

    bounds = [
        each
        for each in conditions
        if isinstance(each, exp.EQ) and is_bound(each.this) and is_bound(each.expression)
    ]
    return result_windows if len(bounds) == len(WINDOW_BOUNDS) else (left, right)


#: By how many ticks, at least and at most, the event time of a row follows another of its columns.
Delay: TypeAlias = tuple[int, int]


def delays_of_pairs(
    how: str,
    bounds: tuple[int, int] | None,
    picked: tuple[Mapping[str, str], Mapping[str, str]],
    sides: tuple[Input, Input],
) -> dict[str, Delay]:
    """Return the results of a join with times that no result lacks, and the delay of each.

    The time of a pair is the later of its rows', that of a row without a match its own.

    Parameters
    ----------
    how : str
    bounds : tuple of int, optional
        Bounds of right time minus left time, in ticks; None for a window join.
    picked : tuple of mapping of str to str
        For each side, result names to columns.
    sides : tuple of Input
    """
    if bounds is None:
        return {}
    lower, upper = bounds
    is_inner = how == "inner"
    behind: tuple[Delay, Delay] = (
        (0, 0) if how in LEFT_ALONE else (max(0, lower) if is_inner else 0, max(0, upper)),
        (max(0, -upper) if is_inner else 0, max(0, -lower)),
    )
    is_bounded = lower > LONG_MIN  # unlike versions, which may be of any time before
    has_all = (
        is_inner or how in ("left", *LEFT_ALONE),
        is_bounded and how in ("inner", "right"),
    )
    found = {}
    for of_all, names, side, (low, high) in zip(has_all, picked, sides, behind, strict=True):
        times = {**side.delays, side.time: (0, 0)} if of_all else {}
        for name, column in names.items():
            if column in times:
                found[name] = times[column][0] + low, times[column][1] + high
    return found
