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
    checks = _Checks(count, "windows", owner)
    result = returned if isinstance(returned, VectorResult) else VectorResult(rows=returned)
    misplaced = [name for name in _OF_KEYS if getattr(result, name) is not None]
    if misplaced:
        rule = f"{owner} is given windows, which have neither state nor timers of its own"
        raise InvalidFunctionError(rule, value=", ".join(misplaced))
    rows = checks.rows if result is returned else checks.table  # None is no table
    found = rows(result.rows, output)
    return Piece(*found, checks.sides(result.sides, sides), checks.counts(result.counts))


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
    checks = _Checks(count, "keys", owner)
    set_timers = (result.event_timers, result.processing_timers)
    deleted_timers = (result.deleted_event_timers, result.deleted_processing_timers)
    return CheckedResult(
        checks.rows(result.rows, output),
        checks.state(result.state, function),
        checks.timers(set_timers, function),
        checks.timers(deleted_timers, function),
        checks.sides(result.sides, function.side_outputs),
        checks.counts(result.counts),
    )


@dataclass(frozen=True)
class _Checks:
    """Checks of what a function returned.

    Parameters
    ----------
    count : int
        How many keys or windows the function was given.
    of : {"keys", "windows"}
    owner : str
        The name of the function for errors.
    """

    count: int
    of: str
    owner: str

    def rows(self, returned: Any, output: pa.Schema, what: str = "") -> tuple[pa.Table, Ints]:
        """Return rows and the places of each; none for None. ``what``: follows the name."""
        if returned is None:
            return output.empty_table(), np.empty(0, np.int64)
        return self.table(returned, output, what)

    def table(self, returned: Any, output: pa.Schema, what: str = "") -> tuple[pa.Table, Ints]:
        """Return rows and the places of each."""
        return checked_table(returned, self.count, output, f"{self.owner}{what}", self.of)

    def state(self, returned: Any, function: ProcessDeclarations) -> pa.Table | None:
        """Return the state of all keys; None if it stays as it is."""
        if returned is None:
            return None
        if not function.state:
            rule = f"{self.owner} must declare its state; it declared none"
            raise InvalidFunctionError(rule, value=type(returned).__name__)
        if isinstance(returned, tuple):
            rule = f"{self.owner}, as state, must return a row for each key"
            raise InvalidFunctionError(rule, value="a tuple")
        return self.table(returned, pa.schema(function.state), ", as state,")[0]

    def sides(
        self, returned: Any, schemas: Mapping[str, pa.Schema]
    ) -> dict[str, tuple[pa.Table, Ints]]:
        """Return the rows of all side outputs and the places of each, by tag."""
        if not isinstance(returned, Mapping):
            rule = f"{self.owner} must return its side outputs by tag"
            raise InvalidFunctionError(rule, value=type(returned).__name__)
        for tag in returned:
            check_tag(tag, schemas, self.owner)
        return {
            tag: self.rows(returned.get(tag), schema, f", to the side output {tag!r},")
            for tag, schema in schemas.items()
        }

    def counts(self, returned: Any) -> dict[str, int]:
        """Return the amounts to add to counters."""
        if not isinstance(returned, Mapping):
            rule = f"{self.owner} must count by names and integers"
            raise InvalidFunctionError(rule, value=type(returned).__name__)
        return {name: checked_count(name, by, self.owner) for name, by in returned.items()}

    def timers(self, returned: tuple[Any, Any], function: ProcessDeclarations) -> list[Timers]:
        """Return timers of event time and of processing time."""
        if returned[1] is not None and not function.uses_processing_time:
            rule = f"{self.owner} must declare uses_processing_time = True to set such timers"
            raise InvalidFunctionError(rule, value="timers of processing time")
        return [self._timers(each) for each in returned]

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
