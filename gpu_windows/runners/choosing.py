"""What `Outputs.select` takes, and what it must leave of results that change others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from gpu_windows.errors import QueryError
from gpu_windows.planning.validation import check_distinct

if TYPE_CHECKING:
    from gpu_windows.runners.outputs import Outputs


@dataclass(frozen=True)
class Selection:
    """What becomes of results.

    Parameters
    ----------
    columns : mapping of str to str
        Name of a result to what it is: of `as_they_are` a name, of others an expression in SQL.
        Empty: all stay.
    as_they_are : frozenset of str
    where : str, optional
        A condition in SQL over the results before.
    """

    columns: Mapping[str, str]
    as_they_are: frozenset[str]
    where: str | None = None

    @property
    def expressions(self) -> dict[str, str]:
        """Results that are computed: name to expression."""
        return {n: text for n, text in self.columns.items() if n not in self.as_they_are}

    def keeping(self, *names: str) -> Selection:
        """Return the same, which leaves these results there, too."""
        if not self.columns:
            return self
        kept = {**self.columns, **{name: name for name in names}}
        return replace(self, columns=kept, as_they_are=self.as_they_are | {*names})

    def describe(self) -> str:
        """Return what it says, in words; the order of results says nothing to who goes on."""
        where = [] if self.where is None else [f"where {self.where}"]
        chosen = (
            n if n in self.as_they_are else f"{n} = {text}" for n, text in self.columns.items()
        )
        return ", ".join([*where, *sorted(chosen)])


def named_columns(columns: Iterable[object], expressions: Mapping[str, str]) -> dict[str, str]:
    """Return the results that arguments name, in order, and what each is.

    Raises
    ------
    QueryError
        If one is no name and no mapping, or two have one name.
    """
    chosen = [*chain.from_iterable(map(_named, columns)), *expressions.items()]
    check_distinct((name for name, _ in chosen), "results have different names")
    return dict(chosen)


def _named(column: object) -> Iterable[tuple[str, str]]:
    if isinstance(column, str):
        return [(column, column)]
    if isinstance(column, Mapping):
        return column.items()
    rule = "select takes names of results, and expressions by name"
    raise QueryError(rule, value=repr(column))


def check_selection(before: Outputs, selection: Selection) -> None:
    """Raise `QueryError` unless what is selected of results is of each result by itself."""
    if selection.expressions:
        before._check_by_row([*selection.expressions.values()])
    _check_changes(before, selection)


def _check_changes(before: Outputs, selection: Selection) -> None:
    """Refuse what would lose changes of rows that are told by their key and number.

    A row that no longer meets a condition would be left out, and the one before it, which did,
    would stay in the sink: what is there before an update is not told.

    Raises
    ------
    QueryError
        If a condition is over more than keys and number, another column is called as the one that
        tells changes, or that one is left out of a stream's.
    """
    query = before.plan.query
    change = query.change_column
    if change is None:
        return
    for name in selection.columns:
        if name.lower() == change.lower() and name not in selection.as_they_are:
            raise QueryError("this column tells what a change is: take another name", value=name)
    if before.is_streaming and selection.columns and change not in selection.as_they_are:
        rule = f"results that change say how: take the column {change}, too"
        raise QueryError(rule, value=", ".join(selection.columns))
    if selection.where is not None and query.is_upserted:
        _check_told(
            before,
            selection.where,
            (*query.display_keys, *query.window_columns, *query.number_columns),
        )


def _check_told(before: Outputs, where: str, telling: Iterable[str]) -> None:
    """Raise `QueryError` unless a condition is over what tells changes of a row alone."""
    names = [*_telling(before, telling)]
    shown = ", ".join(names) or "none is left"
    rule = (
        "results that change are chosen by keys and number alone, for what is there before an "
        f"update is not told: choose rows before they are numbered; these are {shown}"
    )
    if not names:
        raise QueryError(rule, value=where)
    try:
        before._check_among(names, where)
    except QueryError as error:
        raise QueryError(rule, value=where) from error


def _telling(outputs: Outputs, names: Iterable[str]) -> Iterator[str]:
    """Yield what keys and number are called after selections."""
    found = [*names]
    for each in outputs.selections:
        if each.columns:
            found = [name for name, of in each.columns.items() if of.strip("`") in found]
    yield from found
