"""Selections of results: what `Outputs.select` takes, and which columns updates must keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from gpu_windows.errors import QueryError
from gpu_windows.planning.validation import check_distinct

if TYPE_CHECKING:
    from gpu_windows.planning.plan import Plan


@dataclass(frozen=True)
class Selection:
    """A projection and a condition over results.

    Parameters
    ----------
    columns : mapping of str to str
        Name of a result to its source: a name for those in `unchanged`, else an expression in SQL.
        Empty: all columns stay.
    unchanged : frozenset of str
        Columns that stay as they are.
    where : str, optional
        A condition in SQL over the results before.
    """

    columns: Mapping[str, str]
    unchanged: frozenset[str]
    where: str | None = None

    @property
    def expressions(self) -> dict[str, str]:
        """Results that are computed: name to expression."""
        return {n: text for n, text in self.columns.items() if n not in self.unchanged}

    def with_columns(self, *names: str) -> Selection:
        """Return a selection that keeps these results as well."""
        if not self.columns:
            return self
        columns = {**self.columns, **{name: name for name in names}}
        return replace(self, columns=columns, unchanged=self.unchanged | {*names})

    def describe(self) -> str:
        """Return a description that does not depend on the order of columns."""
        where = [] if self.where is None else [f"where {self.where}"]
        columns = (
            n if n in self.unchanged else f"{n} = {text}" for n, text in self.columns.items()
        )
        return ", ".join([*where, *sorted(columns)])


class Selectable(Protocol):
    """Outputs whose results can be selected: `gpu_windows.runners.outputs.Outputs`."""

    plan: Plan
    is_streaming: bool
    selections: tuple[Selection, ...]

    def _check_by_row(self, texts: Sequence[str]) -> None: ...

    def _check_among(self, names: Sequence[str], where: str) -> None: ...


def selected_columns(columns: Iterable[object], expressions: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that the arguments of `Outputs.select` name, in order, to their sources.

    Raises
    ------
    QueryError
        If one is neither a name nor a mapping, or two have the same name.
    """
    pairs = [*chain.from_iterable(map(_column_items, columns)), *expressions.items()]
    check_distinct((name for name, _ in pairs), "results have different names")
    return dict(pairs)


def _column_items(column: object) -> Iterable[tuple[str, str]]:
    if isinstance(column, str):
        return [(column, column)]
    if isinstance(column, Mapping):
        return column.items()
    rule = "select takes names of results, and expressions by name"
    raise QueryError(rule, value=repr(column))


def check_selection(before: Selectable, selection: Selection) -> None:
    """Raise `QueryError` unless each selected value depends on one result row alone."""
    if selection.expressions:
        before._check_by_row([*selection.expressions.values()])
    _check_changes(before, selection)


def _check_changes(before: Selectable, selection: Selection) -> None:
    """Refuse selections that would lose updates of rows identified by key and number.

    An update that no longer meets a condition would be dropped, and the row that it replaces would
    stay in the sink: upserts do not carry the row before the update.

    Raises
    ------
    QueryError
        If a condition uses more than keys and number, if another column has the name of the change
        column, or if a stream's selection leaves the change column out.
    """
    query = before.plan.query
    change = query.change_column
    if change is None:
        return
    for name in selection.columns:
        if name.lower() == change.lower() and name not in selection.unchanged:
            raise QueryError("this name is the change column's: choose another one", value=name)
    if before.is_streaming and selection.columns and change not in selection.unchanged:
        rule = f"results that are updated need their change column: select {change}, too"
        raise QueryError(rule, value=", ".join(selection.columns))
    if selection.where is not None and query.is_upserted:
        _check_identifying(
            before,
            selection.where,
            (*query.display_keys, *query.window_columns, *query.number_columns),
        )


def _check_identifying(before: Selectable, where: str, identifying: Iterable[str]) -> None:
    """Raise `QueryError` unless a condition uses only the columns that identify a row."""
    names = [*_after_selections(before, identifying)]
    columns = ", ".join(names) or "none is left"
    rule = (
        "results that are updated can be filtered by keys and number alone, because an update does "
        f"not carry the row it replaces: filter rows before they are numbered; these are {columns}"
    )
    if not names:
        raise QueryError(rule, value=where)
    try:
        before._check_among(names, where)
    except QueryError as error:
        raise QueryError(rule, value=where) from error


def _after_selections(outputs: Selectable, names: Iterable[str]) -> Iterator[str]:
    """Yield the names that columns have after selections."""
    found = [*names]
    for each in outputs.selections:
        if each.columns:
            found = [name for name, of in each.columns.items() if of.strip("`") in found]
    yield from found
