"""Selections of results, and arrangements of those of a bounded input: distinct, sorted, some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

from gpu_windows.errors import InvalidOptionError, QueryError, UnsupportedQueryError
from gpu_windows.planning.validation import check_distinct
from gpu_windows.vocabulary.options import is_whole


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
    rule = "select takes names one by one, and expressions by name: select('a', b='2 * c')"
    raise QueryError(rule, value=repr(column))


@dataclass(frozen=True)
class SortKey:
    """A column that results are sorted by.

    Parameters
    ----------
    column : str
    descending : bool
    nulls_first : bool
    """

    column: str
    descending: bool
    nulls_first: bool

    def describe(self) -> str:
        """Return it as in SQL."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.column} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class Arrangement(Selection):
    """A step of the results of a bounded input that depends on all of them; columns stay.

    Parameters
    ----------
    distinct : bool
        Whether of equal results one stays.
    sort_keys : tuple of SortKey
        By which results are sorted, most significant first.
    limit : int, optional
        Maximum number of results.
    offset : int
        Number of results that are left out before.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    unchanged: frozenset[str] = frozenset()
    distinct: bool = False
    sort_keys: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    def describe(self) -> str:
        """Return a description."""
        parts = ["distinct"] if self.distinct else []
        if self.sort_keys:
            parts.append(f"order by {', '.join(each.describe() for each in self.sort_keys)}")
        if self.limit is not None or self.offset:
            parts.append(f"limit {self.limit} offset {self.offset}")
        return ", ".join(parts)


class ArrangesResults(ABC):
    """Outputs whose results can be arranged, if the input is bounded."""

    is_streaming: bool
    selections: tuple[Selection, ...]

    @property
    def is_arranged(self) -> bool:
        """Whether a selection depends on all results."""
        return any(isinstance(each, Arrangement) for each in self.selections)

    def distinct(self) -> Self:
        """Return these outputs with one of equal results: null equals null, NaN equals NaN.

        Which one it is shows nowhere. Late, rejected rows and side outputs stay as they are.

        Raises
        ------
        UnsupportedQueryError
            If the input is a stream: it would have to keep all results.
        ColumnTypeError
            If a column is a list or a map.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann", "bob", "ann"], "page": [1, 2, 3]}))
        >>> clicks.select("user").distinct().result()["user"].to_pylist()
        ['ann', 'bob']
        """
        return self._arrange(Arrangement(distinct=True))

    def order_by(
        self,
        *columns: str,
        descending: bool | Sequence[bool] = False,
        nulls_first: bool | Sequence[bool] | None = None,
    ) -> Self:
        """Return these outputs with sorted results.

        Parameters
        ----------
        *columns : str
            Of the results, most significant first.
        descending : bool or sequence of bool
            Whether the largest value comes first, of all columns or of each.
        nulls_first : bool or sequence of bool, optional
            Whether nulls come before all values; default: if a column ascends, as they are less
            than any value. NaN is greater than all numbers.

        Raises
        ------
        QueryError
            If no column is given, one is not a name of a result, or there is not a value for each.
        ColumnTypeError
            If values of a column have no order.
        UnsupportedQueryError
            If the input is a stream: its results never end.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann", "bob", None], "page": [1, 2, 2]}))
        >>> pages = clicks.select().order_by("page", "user", descending=[True, False])
        >>> pages.result()["user"].to_pylist()
        [None, 'bob', 'ann']
        """
        if not columns:
            raise QueryError("order_by takes at least one column", value="order_by()")
        for column in columns:
            if not isinstance(column, str):
                rule = "order_by takes names of results one by one: order_by('a', descending=True)"
                raise QueryError(rule, value=repr(column))
        check_distinct(columns, "a column sorts results once")
        down = _for_each("descending", descending, len(columns))
        first = [not each for each in down]
        if nulls_first is not None:
            first = _for_each("nulls_first", nulls_first, len(columns))
        keys = (SortKey(*each) for each in zip(columns, down, first, strict=True))
        return self._arrange(Arrangement(sort_keys=tuple(keys)))

    def limit(self, count: int | None, offset: int = 0) -> Self:
        """Return these outputs with some results: the first ones, if they are sorted.

        Parameters
        ----------
        count : int, optional
            Maximum number; None: all.
        offset : int
            Number of results that are left out before.

        Raises
        ------
        InvalidOptionError
            If a number is negative.
        UnsupportedQueryError
            If the input is a stream.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"page": [3, 1, 2]}))
        >>> clicks.select().order_by("page").limit(1, offset=1).result()["page"].to_pylist()
        [2]
        """
        given: list[tuple[str, Any]] = [("offset", offset)]
        if count is not None:
            given.append(("count", count))
        for name, value in given:
            if not (is_whole(value) and value >= 0):
                raise InvalidOptionError(f"{name} must be 0 or more", value=repr(value))
        return self._arrange(Arrangement(limit=count, offset=offset))

    def _arrange(self, arrangement: Arrangement) -> Self:
        if self.is_streaming:
            rule = (
                "results of a stream never end: they cannot be sorted, limited or distinct; "
                "write them, and arrange what gpu_windows.read_output returns"
            )
            raise UnsupportedQueryError(rule, value=arrangement.describe())
        changed = self._with(arrangement)
        changed._check_selection()
        return changed

    def _with(self, *selections: Selection) -> Self:
        changed = copy(self)
        changed.selections = (*self.selections, *selections)
        return changed

    @abstractmethod
    def _check_selection(self) -> None:
        """Raise `QueryError` unless the last selection is one of these results."""


def _for_each(name: str, value: Any, count: int) -> list[bool]:
    """Return a value for each column."""
    values = [value] * count if isinstance(value, bool) else list(value)
    if len(values) != count or not all(isinstance(each, bool) for each in values):
        rule = f"{name} is true or false, or such a value for each of {count} columns"
        raise QueryError(rule, value=repr(value))
    return values
