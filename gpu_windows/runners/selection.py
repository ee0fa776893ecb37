"""Selections of results: what `Outputs.select` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from gpu_windows.errors import QueryError
from gpu_windows.planning.validation import check_distinct


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
