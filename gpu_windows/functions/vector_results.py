"""Results of functions over the rows of many keys or windows, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import checked_table
from gpu_windows.functions.counts import checked_count
from gpu_windows.functions.declarations import ProcessDeclarations
from gpu_windows.functions.side_outputs import check_tag

Ints = NDArray[np.int64]
#: Timers: the key of each in the batch (int64[m]), and its time in ticks (int64[m]).
Timers: TypeAlias = tuple[Ints, Ints]
#: Rows: a row for each key (or window) of the batch, or any number and the key of each (int64[m],
#: ascending).
Rows: TypeAlias = pa.Table | tuple[pa.Table, Ints]


@dataclass(frozen=True, kw_only=True)
class VectorResult:
    """Results, new state and timers of a batch. Keys are given by their index in the batch.

    Everything is copied: a function may reuse arrays that it made tables of.

    For a batch of windows, read windows for keys; it has results, side outputs and counters only.

    Parameters
    ----------
    rows : pyarrow.Table, or a pair of one and int64[m], optional
        Results: the declared columns, a row for each key; or any number of rows, and the key of
        each, ascending.
    state : pyarrow.Table, optional
        A row for each key: all columns of state. None leaves them as they were.
    event_timers, processing_timers : pair of int64[m], optional
        Keys, in any order, and the times at which `on_timers` is to be called for them, in ticks.
        The same time of the same key again is the same timer.
    deleted_event_timers, deleted_processing_timers : pair of int64[m], optional
        Timers to delete, if they are set, before those above are set.
    sides : mapping of str to rows
        Rows of side outputs by tag, given as ``rows`` are.
    counts : mapping of str to int
        Amounts to add to counters of yours, which `Outputs.metrics` shows.

    Examples
    --------
    Results for two of three keys, and a counter:

    >>> rows = pa.table({"total": [5, 9]})
    >>> result = gw.functions.VectorResult(rows=(rows, [0, 2]), counts={"seen": 3})
    >>> result.counts, result.state is None
    ({'seen': 3}, True)
    """

    rows: Rows | None = None
    state: pa.Table | None = None
    event_timers: Timers | None = None
    processing_timers: Timers | None = None
    deleted_event_timers: Timers | None = None
    deleted_processing_timers: Timers | None = None
    sides: Mapping[str, Rows] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedResult:
    """A `VectorResult` that was checked.

    Parameters
    ----------
    rows : (pyarrow.Table, int64[m])
    state : pyarrow.Table, optional
    set_timers, deleted_timers : list of (int64[m], int64[m])
        Keys and times, of event time and of processing time.
    sides : dict of str to (pyarrow.Table, int64[m])
        All declared side outputs.
    counts : dict of str to int
    """

    rows: tuple[pa.Table, Ints]
    state: pa.Table | None
    set_timers: list[Timers]
    deleted_timers: list[Timers]
    sides: dict[str, tuple[pa.Table, Ints]]
    counts: dict[str, int]


@dataclass(frozen=True)
class Piece:
    """Results of a function for some windows.

    Parameters
    ----------
    rows : pyarrow.Table
        n results.
    places : int64[n]
        The window of each in the batch, ascending.
    sides : mapping of str to (pyarrow.Table, int64[m])
        Rows of side outputs by tag, and the window of each.
    counts : mapping of str to int
        Amounts to add to counters of the user's.
    """

    rows: pa.Table
    places: Ints
    sides: Mapping[str, tuple[pa.Table, Ints]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


def checked_piece(
    returned: Any, count: int, output: pa.Schema, sides: Mapping[str, pa.Schema], owner: str
) -> Piece:
    """Return the checked result of a function for ``count`` windows.

    ``sides``: columns of the side outputs, by tag.

    Raises
    ------
    InvalidFunctionError
        If it is not as declared; the error names ``owner``.
    """
    result = returned if isinstance(returned, VectorResult) else VectorResult(rows=returned)
    misplaced = [name for name in _OF_KEYS if getattr(result, name) is not None]
    if misplaced:
        rule = f"{owner} is given windows, which have neither state nor timers of its own"
        raise InvalidFunctionError(rule, value=", ".join(misplaced))
    rows = _rows if result is returned else checked_table  # None is no table
    return Piece(
        *rows(result.rows, count, output, owner, "windows"),
        _sides(result.sides, count, sides, owner, "windows"),
        _counts(result.counts, owner),
    )


#: Parts of a `VectorResult` that only keys may have.
_OF_KEYS = ("state", "event_timers", "processing_timers", "deleted_event_timers",
            "deleted_processing_timers")  # fmt: skip


def checked_result(
    returned: Any, count: int, output: pa.Schema, function: ProcessDeclarations, owner: str
) -> CheckedResult:
    """Return the checked result of a function for ``count`` keys.

    Raises
    ------
    InvalidFunctionError
        If it is not as declared; the error names ``owner``.
    """
    result = VectorResult() if returned is None else returned
    if not isinstance(result, VectorResult):
        rule = f"{owner} must return a VectorResult or None"
        raise InvalidFunctionError(rule, value=type(returned).__name__)
    timers = _CheckedTimers(count, owner, in_processing_time=function.uses_processing_time)
    return CheckedResult(
        _rows(result.rows, count, output, owner),
        _state(result.state, count, function, owner),
        timers.both(result.event_timers, result.processing_timers),
        timers.both(result.deleted_event_timers, result.deleted_processing_timers),
        _sides(result.sides, count, function.side_outputs, owner, "keys"),
        _counts(result.counts, owner),
    )


def _rows(
    returned: Any, count: int, output: pa.Schema, owner: str, of: str = "keys"
) -> tuple[pa.Table, Ints]:
    if returned is None:
        return output.empty_table(), np.empty(0, np.int64)
    return checked_table(returned, count, output, owner, of)


def _state(returned: Any, count: int, function: ProcessDeclarations, owner: str) -> pa.Table | None:
    if returned is None:
        return None
    if not function.state:
        rule = f"{owner} must declare its state; it declared none"
        raise InvalidFunctionError(rule, value=type(returned).__name__)
    what = f"{owner}, as state,"
    table, _ = checked_table(
        _alone(returned, what), count, pa.schema(function.state), what, of="keys"
    )
    return table


def _alone(returned: Any, what: str) -> Any:
    if isinstance(returned, tuple):
        raise InvalidFunctionError(f"{what} must return a row for each key", value="a tuple")
    return returned


def _sides(
    returned: Any, count: int, schemas: Mapping[str, pa.Schema], owner: str, of: str
) -> dict[str, tuple[pa.Table, Ints]]:
    if not isinstance(returned, Mapping):
        rule = f"{owner} must return its side outputs by tag"
        raise InvalidFunctionError(rule, value=type(returned).__name__)
    for tag in returned:
        check_tag(tag, schemas, owner)
    what = {tag: f"{owner}, to the side output {tag!r}," for tag in schemas}
    return {
        tag: _rows(returned.get(tag), count, schema, what[tag], of)
        for tag, schema in schemas.items()
    }


def _counts(returned: Any, owner: str) -> dict[str, int]:
    if not isinstance(returned, Mapping):
        rule = f"{owner} must count by names and integers"
        raise InvalidFunctionError(rule, value=type(returned).__name__)
    return {name: checked_count(name, by, owner) for name, by in returned.items()}


@dataclass(frozen=True)
class _CheckedTimers:
    """Checks timers of ``count`` keys."""

    count: int
    owner: str
    in_processing_time: bool

    def both(self, event: Any, processing: Any) -> list[Timers]:
        """Return timers of event time and of processing time."""
        if processing is not None and not self.in_processing_time:
            rule = f"{self.owner} must declare uses_processing_time = True to set such timers"
            raise InvalidFunctionError(rule, value="timers of processing time")
        return [self._timers(event), self._timers(processing)]

    def _timers(self, returned: Any) -> Timers:
        if returned is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rule = f"{self.owner} must return timers as their keys' places and their times, int64[m]"
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise InvalidFunctionError(rule, value=type(returned).__name__)
        places, times = (self._integers(each, rule) for each in returned)
        if len(places) != len(times):
            raise InvalidFunctionError(rule, value=f"{len(places)} places, {len(times)} times")
        outside = (places < 0) | (places >= self.count)
        if outside.any():
            rule = f"{self.owner} must return timers of keys below {self.count}"
            raise InvalidFunctionError(rule, value=int(places[outside][0]))
        return places, times

    def _integers(self, returned: Any, rule: str) -> Ints:
        try:
            values = np.asarray(returned)
        except ValueError as error:
            raise InvalidFunctionError(rule, value=repr(returned)) from error
        is_whole = values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64)
        if values.ndim != 1 or (values.size and not is_whole):
            raise InvalidFunctionError(rule, value=f"{values.dtype}{list(values.shape)}")
        return values.astype(np.int64)
