"""Results of a query as the table of a query around it: `gpu_windows.stream_results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from gpu_windows.datastream.stages import stream_results
from gpu_windows.datastream.stream import TimedStream
from gpu_windows.expressions.places import placed, refused, written
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.runners.outputs import Source
from gpu_windows.runners.row_stream import READ_TWICE
from gpu_windows.sql.inputs import WINDOW_COLUMNS, Input, Window
from gpu_windows.sql.results import Results, bound, result
from gpu_windows.sql.said import Said
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows

_BOUNDS = ("window_start", "window_end")
_TWICE = (
    "the results of a query are the rows of one other query: write it twice in WITH, under two "
    "names, and both are computed"
)


class Stages:
    """Names of the queries of a statement whose results are rows of others, and what was read."""

    def __init__(self) -> None:
        self._read: list[object] = []
        self._views: set[str] = set()
        self._names: set[str] = set()

    def read(self, source: Source, node: exp.Expr) -> None:
        """Note that the rows of a table are read.

        Raises
        ------
        SqlError
            If they were before, and can be read once.
        """
        for reader in source.readers:
            if any(reader is other for other in self._read):
                raise refused(node, READ_TWICE)
            self._read.append(reader)

    def of_view(self, name: str, node: exp.Expr) -> str:
        """Return what a query of WITH is called.

        Raises
        ------
        SqlError
            If it is used a second time.
        """
        if name.lower() in self._views:
            raise refused(node, _TWICE, name)
        self._views.add(name.lower())
        return self.free(name)

    def free(self, name: str) -> str:
        """Return a name that no other has: this one, where that is so."""
        wanted = name or "stage"
        numbered = (wanted if i == 1 else f"{wanted}_{i}" for i in range(1, len(self._names) + 2))
        found = next(each for each in numbered if each.lower() not in self._names)
        self._names.add(found.lower())
        return found


def staged(results: Results, name: str, alias: str, node: exp.Expr) -> Input:
    """Return results as the rows of a table.

    Parameters
    ----------
    results : Results
    name : str
        Of the stage.
    alias : str
        What a text may put before its columns.
    node : sqlglot.exp.Expr
        Where it is said.

    Raises
    ------
    SqlError
        If they have no time, or there can be no stage of them.
    """
    with placed(node):
        base = results.base.value
        value = stream_results(base, name)
        rows = _Rows(Said(value, _shown(results.base.text, name)), results)
        for chosen, where in results.steps:
            if where is not None:
                rows.filter(where)
            rows.choose(chosen)
        return rows.input(alias)


def _shown(text: str, name: str) -> str:
    inner = text.replace("\n", "\n    ")
    return f"gw.stream_results(\n    {inner},\n    {name!r},\n)"


class _Rows:
    """The rows of a stage, and which of their columns the query within has under which name."""

    def __init__(self, stream: Said, results: Results) -> None:
        self._stream, self._results = stream, results
        self._columns = {name: name for name in results.base_names}
        self._bounds = {} if results.window is None else {name: name for name in _BOUNDS}

    @property
    def _timed(self) -> TimedStream:
        stream = self._stream.value
        assert isinstance(stream, TimedStream)
        return stream

    def filter(self, where: exp.Expr) -> None:
        """Take the rows only for which a condition is true."""
        self._stream = self._stream.call("where", self._text(where))

    def choose(self, items: Mapping[str, exp.Expr]) -> None:
        """Take other columns."""
        columns: dict[str, str] = {}
        added: dict[str, str] = {}
        for name, node in items.items():
            column = self._column(node)
            if column is None or (column in _BOUNDS and column != name):
                column = self._fresh(name, added)
                added[column] = self._text(node)
            columns[name] = column
        if added:
            self._stream = self._stream.call("with_columns", **added)
        named = {name: node.name for name, node in items.items() if isinstance(node, exp.Column)}
        self._bounds = {n: self._bounds[of] for n, of in named.items() if of in self._bounds}
        self._columns = columns

    def input(self, alias: str) -> Input:
        """Return the rows as a table."""
        return Input(
            alias, self._stream, columns=self._columns, is_results=True, again=self._again()
        )

    def _again(self) -> Window | None:
        """Return the windows that results are of, where they are in the same ones again."""
        windows = self._results.window
        if windows is None or not isinstance(windows.value, TumblingEventTimeWindows):
            return None
        times = (name for name, column in self._columns.items() if column == self._timed.time)
        named = {**self._bounds, **dict.fromkeys(times, WINDOW_COLUMNS[2])}
        return Window(windows, columns=named)

    def _column(self, node: exp.Expr) -> str | None:
        """Return the column of the rows that a result is, if it is one as it is."""
        if self._bounds.get("window_end") == "window_end" and node == bound("window_time"):
            return self._timed.time
        if not isinstance(node, exp.Column):
            return None
        column = self._columns[node.name]
        return self._timed.time if column in self._results.times else column

    def _text(self, node: exp.Expr) -> str:
        def visit(each: exp.Expr) -> exp.Expr:
            return result(self._columns[each.name]) if isinstance(each, exp.Column) else each

        return written(node.copy().transform(visit))

    def _fresh(self, name: str, added: Mapping[str, Any]) -> str:
        taken = {each.lower() for each in (*self._timed.source.user_columns, *added)}
        others = (f"{name}_{i}" for i in range(2, len(taken) + 3))
        return next(each for each in (name, *others) if each.lower() not in taken)


def in_same_windows(
    left: Input, right: Input, conditions: Sequence[exp.Expr]
) -> tuple[Input, Input]:
    """Return both, results in the windows that they are of where conditions say so of both."""
    again = left.in_windows_again, right.in_windows_again

    def is_bound(column: exp.Expr) -> bool:
        return any(side.window_column(column) in _BOUNDS for side in again)

    bounds = [
        each
        for each in conditions
        if isinstance(each, exp.EQ) and is_bound(each.this) and is_bound(each.expression)
    ]
    return again if len(bounds) == len(_BOUNDS) else (left, right)


def times_of_pairs(
    how: str, bounds: tuple[int, int] | None, picked: tuple[Mapping[str, str], Mapping[str, str]],
    times: tuple[str, str],
) -> frozenset[str]:  # fmt: skip
    """Return the results of an interval join that are the time of each pair, the greater of both.

    Parameters
    ----------
    how : str
    bounds : tuple of int, optional
        Of right time less left time, in ticks; None if it is a join of windows.
    picked : tuple of mapping of str to str
        The results of each side, and the columns that they are.
    times : tuple of str
        The time of each side.
    """
    if bounds is None:
        return frozenset()
    lower, upper = bounds
    is_time = (
        how in LEFT_ALONE or (upper <= 0 and how in ("inner", "left")),
        lower >= 0 and how in ("inner", "right"),
    )
    found = zip(is_time, picked, times, strict=True)
    return frozenset(n for ok, side, time in found if ok for n, c in side.items() if c == time)
