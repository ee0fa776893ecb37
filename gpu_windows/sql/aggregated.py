"""Aggregates of windows: GROUP BY window_start, window_end, or GROUP BY TUMBLE(...)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from gpu_windows.expressions.dialect import WindowFunction
from gpu_windows.expressions.places import key_of, placed, refused
from gpu_windows.planning.kinds.grouping import GROUPING_ID
from gpu_windows.sql.aggregates import aggregate
from gpu_windows.sql.inputs import Columns, Input, Window, check_timed
from gpu_windows.sql.results import (
    Results,
    Settings,
    bound,
    meant,
    name_of,
    named_items,
    result,
)
from gpu_windows.sql.said import Said
from gpu_windows.sql.statement import Item, Statement, is_aggregate
from gpu_windows.sql.translator import Translator
from gpu_windows.sql.windows import AUXILIARY, group_window

_BOUNDS = ("window_start", "window_end")
_NO_ORDER = "results come as windows end: ORDER BY is not covered"
_NO_WINDOWS = (
    "GROUP BY without windows never ends on a stream: take a window function, FROM "
    "TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL '10' MINUTES); in batch it is Spark's"
)
_NOT_AGAIN = (
    "results are grouped in windows of their time, FROM TUMBLE(TABLE q, DESCRIPTOR(window_time), "
    "INTERVAL '1' HOUR); by the windows that they are of only those of TUMBLE"
)
_GROUPED = "what is neither an aggregate nor in GROUP BY stands in no result"


@dataclass(frozen=True)
class _Groups:
    """What GROUP BY says: keys (by their texts), windows, sets of keys."""

    keys: tuple[exp.Expr, ...]
    window: Window
    call: WindowFunction | None
    sets: tuple[tuple[exp.Expr, ...], ...] | None


@dataclass(frozen=True)
class Ranking:
    """Which keys of a window are kept: see `WindowedStream.top_keys`.

    Parameters
    ----------
    count : int
    by : tuple of sqlglot.exp.Expr
        Results, as the query around names them.
    descending : bool or list of bool
    partition_by : tuple of sqlglot.exp.Expr
        The bounds of windows, and more results.
    number : str
        The result with the number.
    node : sqlglot.exp.Expr
        Where it is said.
    """

    count: int
    by: tuple[exp.Expr, ...]
    descending: bool | list[bool]
    partition_by: tuple[exp.Expr, ...]
    number: str
    node: exp.Expr


def is_grouped(statement: Statement, translator: Translator) -> bool:
    """Whether a query has GROUP BY, or aggregates without OVER."""
    del translator
    return statement.group is not None or (statement.has_aggregates and not statement.over)


def read_group_by(statement: Statement, translator: Translator) -> Results:
    """Return aggregates of windows.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    of = translator.table(statement.source)
    return Aggregated(statement, of, translator.settings).results()


class Aggregated:
    """Reads aggregates of windows.

    Parameters
    ----------
    statement : Statement
    of : Input
    settings : Settings
    ranking : Ranking, optional
        Of a query around it that numbers results.
    """

    def __init__(
        self, statement: Statement, of: Input, settings: Settings, ranking: Ranking | None = None
    ) -> None:
        self._statement, self._ranking = statement, ranking
        self._settings = settings.over(of)
        self._of = of.where(statement.where)
        self._columns = Columns(self._of)
        self._aggregates: dict[str, tuple[str, Said]] = {}

    def results(self) -> Results:
        """Return the results.

        Raises
        ------
        SqlError
            With the place of what is not covered.
        """
        groups, statement = self._groups, self._statement
        check_timed(self._of, statement.select)
        keys = [self._columns.name(each) for each in groups.keys]
        for item in statement.items:
            self._take_aggregates(item.node, item)
        if statement.having is not None:
            self._take_aggregates(statement.having, None)
        aggregates = dict(self._aggregates.values())
        if not aggregates:
            self._aggregates["COUNT(*)"] = ("sql_rows", aggregate(_COUNT, self._columns))
            aggregates = {"sql_rows": self._aggregates["COUNT(*)"][1]}
        windowed = self._ranked(self._windowed(keys))
        with placed(statement.select):
            outputs = windowed.call("with_outputs").call("aggregate", **aggregates)
        group_id = () if groups.sets is None else (GROUPING_ID.name,)
        shown = [self._of.timed.source.public_name(key) for key in keys]
        number = () if self._ranking is None else (self._ranking.number,)
        names = (*shown, *_BOUNDS, *aggregates, *group_id, *number)
        results = Results(outputs, names, groups.window.assigner)
        named = named_items(statement.items, lambda node: meant(node, self._meaning, _GROUPED))
        named.update({name: result(name) for name in number})
        having = statement.having
        where = None if having is None else meant(having, self._in_having, _GROUPED)
        if statement.order:
            raise refused(statement.order[0], _NO_ORDER)
        with placed(statement.select):
            return results.select(named, where)

    def _windowed(self, keys: list[str]) -> Said:
        groups, stream = self._groups, self._columns.stream
        with placed(self._statement.group or self._statement.select):
            if keys:
                windowed = stream.call("key_by", *keys).call("window", groups.window.assigner)
            else:
                windowed = stream.call("window_all", groups.window.assigner)
            if groups.sets is not None:
                sets = [[self._columns.name(each) for each in some] for some in groups.sets]
                windowed = windowed.call("grouping_sets", *sets)
            return self._settings.of(windowed)

    def _ranked(self, windowed: Said) -> Said:
        ranking = self._ranking
        if ranking is None:
            return windowed
        if self._statement.having is not None:
            rule = "HAVING would leave numbers out: choose in the query around the numbering"
            raise refused(self._statement.having, rule)
        per = [*map(self._raw, ranking.partition_by)]
        if not {*_BOUNDS} <= {*per}:
            raise refused(ranking.node, "PARTITION BY has window_start and window_end")
        per = [name for name in per if name not in _BOUNDS]
        by = [*map(self._raw, ranking.by)]
        named = {"descending": ranking.descending, "per": per, "number": ranking.number}
        with placed(ranking.node):
            return windowed.call("top_keys", ranking.count, by, **named)

    def _raw(self, node: exp.Expr) -> str:
        """Return the result that a query around names, before anything is chosen of results."""
        for item in self._statement.items:
            if isinstance(node, exp.Column) and name_of(item).lower() == node.name.lower():
                found = meant(item.node, self._meaning, _GROUPED)
                if isinstance(found, exp.Column):
                    return found.name
        raise refused(node, "results are numbered by keys, bounds of windows and aggregates")

    # ---- GROUP BY

    @cached_property
    def _groups(self) -> _Groups:
        group = self._statement.group
        if group is None:
            rule = "an aggregate over a window function is GROUP BY window_start, window_end"
            raise refused(self._statement.select, rule)
        plain, sets = self._listed(group)
        calls = [each for each in plain if isinstance(each, WindowFunction)]
        if calls:
            return self._with_call(calls, plain, sets)
        self._of = of = self._of.in_windows_again
        window = of.window
        if window is None:
            raise refused(group, _NOT_AGAIN if of.is_results else _NO_WINDOWS)
        said = {name for name in map(self._of.window_column, plain) if name}
        if sets is not None and not said:
            plain, sets, said = self._bounds_of_sets(plain, sets)
        if not {*_BOUNDS} <= said:
            raise refused(group, "windows are grouped by both, window_start and window_end")
        keys = [each for each in plain if not self._of.window_column(each)]
        return self._checked(group, keys, window, None, sets)

    def _bounds_of_sets(
        self, plain: list[exp.Expr], sets: list[tuple[exp.Expr, ...]]
    ) -> tuple[list[exp.Expr], list[tuple[exp.Expr, ...]], set[str]]:
        """Return the same where the bounds of windows stand in each of the sets."""
        bounds = [{self._of.window_column(each) or "" for each in some} for some in sets]
        said = set.intersection(*bounds) if bounds else set()
        without = [
            tuple(each for each in some if not self._of.window_column(each)) for some in sets
        ]
        return plain, without, said

    def _with_call(
        self,
        calls: list[WindowFunction],
        plain: list[exp.Expr],
        sets: list[tuple[exp.Expr, ...]] | None,
    ) -> _Groups:
        if len(calls) > 1 or self._of.window is not None:
            raise refused(calls[-1], "rows are in windows once")
        time, assigner = group_window(calls[0])
        check_timed(self._of, time, self._of.column(time))
        keys = [each for each in plain if each is not calls[0]]
        return self._checked(calls[0], keys, Window(assigner), calls[0], sets)

    def _checked(
        self,
        node: exp.Expr,
        keys: list[exp.Expr],
        window: Window,
        call: WindowFunction | None,
        sets: list[tuple[exp.Expr, ...]] | None,
    ) -> _Groups:
        if sets is not None:
            texts: dict[str, exp.Expr] = {self._of.text(each): each for each in keys}
            whole = [(*keys, *some) for some in sets]
            for some in whole:
                texts.update((self._of.text(each), each) for each in some)
            keys = [*texts.values()]
            unique = [tuple({self._of.text(e): e for e in some}.values()) for some in whole]
            return _Groups(tuple(keys), window, call, tuple(unique))
        unique_keys = tuple({self._of.text(each): each for each in keys}.values())
        by = window.partition_by
        if by is not None:
            named = [self._columns.name(each).lower() for each in unique_keys]
            if sorted(named) != sorted(name.lower() for name in by):
                rule = "sessions are grouped by what SESSION has after PARTITION BY, and no more"
                raise refused(node, rule)
        return _Groups(unique_keys, window, call, None)

    def _listed(self, group: exp.Group) -> tuple[list[exp.Expr], list[tuple[exp.Expr, ...]] | None]:
        """Return what is grouped by in all results, and the sets of the rest, if there are some."""
        plain: list[exp.Expr] = []
        sets: list[tuple[exp.Expr, ...]] | None = None
        grouped = [
            each for n in ("grouping_sets", "rollup", "cube") for each in group.args.get(n) or []
        ]
        if group.args.get("all") is not None or group.args.get("totals"):
            raise refused(group, "GROUP BY takes expressions, GROUPING SETS, ROLLUP and CUBE")
        for each in (*group.expressions, *grouped):
            if isinstance(each, exp.GroupingSets | exp.Rollup | exp.Cube):
                if sets is not None:
                    raise refused(each, "there is one list of grouping sets")
                sets = [*_sets_of(each)]
                if not each.expressions:  # WITH ROLLUP is of all before it
                    sets, plain = [*_sets_of(type(each)(expressions=plain))], []
            else:
                plain.append(self._resolved(each))
        resolved = None if sets is None else [tuple(map(self._resolved, some)) for some in sets]
        return plain, resolved

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        """Return what a place or an alias in the list of SELECT stands for."""
        items = self._statement.items
        if isinstance(node, exp.Literal) and node.is_int:
            place = int(node.name)
            if not 1 <= place <= len(items):
                raise refused(node, f"the list of SELECT has {len(items)} items")
            return items[place - 1].node
        if isinstance(node, exp.Column) and not node.table and not self._of.owns(node):
            aliased = [i.node for i in items if (i.alias or "").lower() == node.name.lower()]
            if aliased:
                return aliased[0]
        return node

    # ---- what stands in results

    def _take_aggregates(self, node: exp.Expr, item: Item | None) -> None:
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return
        if isinstance(node, exp.Window):
            raise refused(node, "OVER goes without GROUP BY: number results in a query around it")
        if is_aggregate(node):
            text = key_of(node)
            if text not in self._aggregates:
                taken = {name.lower() for name, _ in self._aggregates.values()}
                whole = item is not None and item.node is node
                name = name_of(item) if item is not None and whole else f"sql_result_{len(taken)}"
                if name.lower() in taken or name.lower() in self._taken_by_keys:
                    name = f"sql_result_{len(taken)}"
                self._aggregates[text] = (name, aggregate(node, self._columns))
            return
        for child in node.iter_expressions():
            self._take_aggregates(child, None)

    @cached_property
    def _taken_by_keys(self) -> set[str]:
        names = (self._columns.name(each).lower() for each in self._groups.keys)
        return {*names, *_BOUNDS, GROUPING_ID.name.lower()}

    def _meaning(self, node: exp.Expr) -> exp.Expr | None:
        """Return what a part of the text is among the results."""
        if is_aggregate(node) and not isinstance(node, exp.GroupingId | exp.Grouping):
            return result(self._aggregates[key_of(node)][0])
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return self._grouping(node)
        window = self._window_of(node)
        if window is not None:
            return bound(window)
        for key in self._groups.keys:
            if node == key or (
                isinstance(node, exp.Column)
                and isinstance(key, exp.Column)
                and self._of.owns(node)
                and self._columns.name(node) == self._columns.name(key)
            ):
                return result(self._columns.name(key))
        return None

    def _window_of(self, node: exp.Expr) -> str | None:
        call = self._groups.call
        if call is None:
            return self._of.window_column(node)
        if not (isinstance(node, exp.Anonymous) and node.name.upper() in AUXILIARY):
            return None
        kind = node.name.upper().partition("_")[0]
        same = [one.sql() for one in node.expressions] == [one.sql() for one in call.expressions]
        if kind != call.this or not same:
            raise refused(node, f"it takes what GROUP BY has: {call.this}")
        return AUXILIARY[node.name.upper()]

    def _grouping(self, node: exp.GroupingId | exp.Grouping) -> exp.Expr:
        groups = self._groups
        if groups.sets is None:
            raise refused(node, "this goes with GROUPING SETS, ROLLUP and CUBE")
        if isinstance(node, exp.GroupingId):
            if node.expressions or node.this:
                raise refused(node, "GROUPING_ID() is of all keys")
            return result(GROUPING_ID.name)
        key = node.this or (node.expressions[0] if node.expressions else None)
        places = [i for i, each in enumerate(groups.keys) if each == key]
        if not places:
            raise refused(node, "GROUPING takes a key of GROUP BY")
        bit = 1 << (len(groups.keys) - 1 - places[0])
        of = exp.IntDiv(this=result(GROUPING_ID.name), expression=exp.Literal.number(bit))
        left_out = exp.Mod(this=exp.Paren(this=of), expression=exp.Literal.number(2))
        return exp.cast(exp.Paren(this=left_out), exp.DType.TINYINT)

    def _in_having(self, node: exp.Expr) -> exp.Expr | None:
        """Return the same in HAVING, which may name items of the list of SELECT."""
        found = self._meaning(node)
        if found is not None or not isinstance(node, exp.Column) or node.table:
            return found
        for item in self._statement.items:
            if item.alias is not None and item.alias.lower() == node.name.lower():
                return exp.Paren(this=meant(item.node, self._meaning, _GROUPED))
        return None


_COUNT = exp.Count(this=exp.Star())


def _sets_of(node: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    """Return the sets that GROUPING SETS, ROLLUP or CUBE stands for."""
    parts = [_parts(each) for each in node.expressions]
    if isinstance(node, exp.GroupingSets):
        return parts
    if isinstance(node, exp.Rollup):
        return [
            tuple(one for part in parts[:count] for one in part)
            for count in range(len(parts), -1, -1)
        ]
    chosen = range(2 ** len(parts) - 1, -1, -1)
    places = range(len(parts))
    return [
        tuple(one for i in places if bits >> (len(parts) - 1 - i) & 1 for one in parts[i])
        for bits in chosen
    ]


def _parts(node: exp.Expr) -> tuple[exp.Expr, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    if isinstance(node, exp.Paren):
        return (node.this,)
    return (node,)
