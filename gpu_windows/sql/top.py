"""The first rows of windows, of results, and of keys: ROW_NUMBER, and WHERE around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.aggregated import Aggregated, Ranking
from gpu_windows.sql.inputs import Columns, Input
from gpu_windows.sql.results import (
    Results,
    bound,
    check_condition,
    chosen_of,
    meant,
    named_items,
    named_result,
    outer,
    result,
    with_all,
)
from gpu_windows.sql.said import Said, made
from gpu_windows.sql.statement import Item, Statement, conjuncts, together
from gpu_windows.sql.translator import Translator

_BOUNDS = ["window_start", "window_end"]
#: The column that tells changes of the first rows of keys.
CHANGE = "change"


@dataclass(frozen=True)
class _Numbered:
    """A query that numbers rows, and how many of them the one around it takes."""

    inner: Statement
    within: Translator
    alias: str
    call: exp.Window
    count: int
    rest: exp.Expr | None


def is_top(statement: Statement, translator: Translator) -> bool:
    """Whether a query takes the first rows that the query within numbers."""
    return _numbered(statement, translator) is not None


def _numbered(statement: Statement, translator: Translator) -> _Numbered | None:
    found = translator.query_in(statement.source)
    if found is None or statement.where is None:
        return None
    inner, within = found
    numbers = {
        (item.alias or "").lower(): item.node
        for item in inner.items
        if isinstance(item.node, exp.Window) and isinstance(item.node.this, exp.RowNumber)
    }
    for place, each in enumerate(parts := conjuncts(statement.where)):
        for name, call in numbers.items():
            count = _count_of(each, name)
            if count is not None and name:
                rest = together([*parts[:place], *parts[place + 1 :]])
                return _Numbered(inner, within, name, call, count, rest)
    return None


def _count_of(condition: exp.Expr, name: str) -> int | None:
    """Return N of ``name <= N``, ``name < N + 1`` or ``name = 1``."""
    if not isinstance(condition, exp.Binary):
        return None
    kind: Any = type(condition)
    one, other = condition.this, condition.expression
    if isinstance(one, exp.Literal):
        flipped: dict[Any, Any] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}
        one, other, kind = other, one, flipped.get(kind)
    named = isinstance(one, exp.Column) and one.name.lower() == name
    if not named or not (isinstance(other, exp.Literal) and other.is_int):
        return None
    number = int(other.name)
    if kind is exp.EQ:
        return 1 if number == 1 else None
    return {exp.LTE: number, exp.LT: number - 1}.get(kind)


def read_top(statement: Statement, translator: Translator) -> Results:
    """Return the first rows of windows, of results of windows, or of keys.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    numbered = _numbered(statement, translator)
    assert numbered is not None
    numbered.inner.check()
    for clause in (statement.group, statement.having, *statement.order, *statement.joins):
        if clause is not None:
            raise refused(clause, "a query around ROW_NUMBER chooses columns and rows, no more")
    if numbered.inner.group is not None:
        rule = "ROW_NUMBER goes around GROUP BY: in a query around it"
        raise refused(numbered.call, rule)
    rule = "rows that are numbered come from one table, and WHERE chooses of them"
    numbered.inner.refuse(rule, "having", "order", "joins")
    grouped = _grouped(numbered)
    if grouped is not None:
        return _of_results(statement, numbered, *grouped)
    of = numbered.within.table(numbered.inner.source)
    return _Top(statement, numbered, of, translator).results()


def _orders(call: exp.Window) -> list[exp.Ordered]:
    order = call.args.get("order")
    if order is None:
        raise refused(call, "ROW_NUMBER is ORDER BY something")
    for each in order.expressions:
        # Spark: nulls are first, ascending, and last, descending
        if bool(each.args.get("nulls_first")) == bool(each.args.get("desc")):
            raise refused(each, "nulls are less than any value: NULLS of this kind is not covered")
    found: list[exp.Ordered] = order.expressions
    return found


def _directions(orders: list[exp.Ordered]) -> bool | list[bool]:
    down = [bool(each.args.get("desc")) for each in orders]
    return down[0] if len({*down}) == 1 else down


class _Top:
    """Reads a numbering of rows, of windows or of keys."""

    def __init__(
        self, statement: Statement, numbered: _Numbered, of: Input, translator: Translator
    ) -> None:
        self._statement, self._numbered = statement, numbered
        self._of = of.where(numbered.inner.where)
        self._columns = Columns(self._of)
        self._settings = translator.settings.over(of)
        self._inner = {(i.alias or i.node.name).lower(): i.node for i in numbered.inner.items}
        self._has_star = any(self._of.is_star(item.node) for item in numbered.inner.items)

    def results(self) -> Results:
        """Return the results."""
        call = self._numbered.inner.window(self._numbered.call)
        by = [*(call.args.get("partition_by") or ())]
        windows = {name for name in map(self._of.window_column, by) if name}
        if self._of.window is not None and not {*_BOUNDS} <= windows:
            rule = "of rows in windows, PARTITION BY has window_start and window_end"
            raise refused(self._numbered.call, rule)
        keys = [self._columns.name(each) for each in by if not self._of.window_column(each)]
        orders = _orders(call)
        if self._takes_last(orders):
            return self._last(keys)
        order = [self._columns.name(each.this) for each in orders]
        used = self._used(keys)
        named: dict[str, Any] = {
            "descending": _directions(orders),
            "columns": used,
            "number": self._number,
        }
        with placed(self._numbered.call):
            count = self._numbered.count
            if self._of.window is not None:
                outputs = (
                    self._windowed(keys).call("with_outputs").call("top", count, order, **named)
                )
                return self._chosen(outputs, (*keys, *_BOUNDS, *used, self._number))
            by_all = keys or [self._columns.added("true")]
            keyed = self._columns.stream.call("key_by", *by_all)
            more = dict(self._settings.options)
            if self._settings.order:
                more["arrival_order"] = [*self._settings.order]
            numbers = (self._number,) if self._shows_number else ()
            named["number"] = self._number if numbers else None
            outputs = keyed.call("with_outputs").call("top", count, order, **named, **more)
            return self._chosen(outputs, (*by_all, *used, *numbers, CHANGE))

    @property
    def _number(self) -> str:
        return _number_of(self._numbered)

    @property
    def _shows_number(self) -> bool:
        """Whether the query around shows numbers; else a row that gets another does not change."""
        nodes = [item.node for item in self._items()]
        nodes += [] if self._numbered.rest is None else [self._numbered.rest]
        names = {column.name.lower() for node in nodes for column in node.find_all(exp.Column)}
        return self._number.lower() in names

    def _takes_last(self, orders: list[exp.Ordered]) -> bool:
        """Whether the last row in time is kept: of equal times it is the last one that came."""
        first = orders[0]
        of_time = isinstance(first.this, exp.Column) and self._of.owns(first.this)
        if self._numbered.count != 1 or len(orders) > 1 or not of_time or self._of.window is None:
            return False
        return bool(first.args.get("desc")) and self._columns.name(first.this) == self._of.time

    def _last(self, keys: list[str]) -> Results:
        used = self._used(keys) or [self._of.time]
        picked = {
            name: made("gw.arg_max", gw.arg_max, name, self._of.time, first=False) for name in used
        }
        with placed(self._numbered.call):
            outputs = self._windowed(keys).call("with_outputs").call("aggregate", **picked)
            names = (*keys, *_BOUNDS, *used)
            return self._chosen(outputs, names, number=exp.Literal.number(1))

    def _windowed(self, keys: list[str]) -> Said:
        window, stream = self._of.window, self._columns.stream
        assert window is not None
        by = window.partition_by
        if by is not None and sorted(by) != sorted(keys):
            rule = "sessions are numbered by what SESSION has after PARTITION BY, and no more"
            raise refused(self._numbered.call, rule)
        if keys:
            windowed = stream.call("key_by", *keys).call("window", window.assigner)
        else:
            windowed = stream.call("window_all", window.assigner)
        return self._settings.of(windowed)

    # ---- what stands in results

    def _inlined(self, node: exp.Expr) -> exp.Expr:
        """Return what an expression around the numbering is over the rows."""

        def visit(each: exp.Expr) -> exp.Expr:
            if not isinstance(each, exp.Column):
                return each
            name = each.name.lower()
            if name == self._number.lower():
                return each
            if name in self._inner and not isinstance(self._inner[name], exp.Star):
                of: exp.Expr = self._inner[name].copy()
                return of if isinstance(of, exp.Column) else exp.Paren(this=of)
            if self._has_star:
                return exp.column(each.this.copy())
            raise refused(each, f"there is no such column; there are {', '.join(self._inner)}")

        return node.copy().transform(visit)

    def _items(self) -> list[Item]:
        items: list[Item] = []
        for item in self._statement.items:
            if not self._statement.is_all(item.node):
                items.append(item)
                continue
            if self._has_star:
                items += (Item(result(name), None) for name in self._of.names.known)
                items += (Item(result(name), None) for name in self._of.window_names)
            items += (
                Item(result(i.alias or i.node.name), None)
                for i in self._numbered.inner.items
                if not self._of.is_star(i.node)
            )
        return items

    def _used(self, keys: list[str]) -> list[str]:
        """Return the columns of rows that the query around shows, keys aside."""
        nodes = [item.node for item in self._items()]
        if self._numbered.rest is not None:
            nodes.append(self._numbered.rest)
        used: dict[str, None] = {}
        for node in map(self._inlined, nodes):
            for column in node.find_all(exp.Column):
                is_ours = column.name.lower() == self._number.lower()
                if is_ours or self._of.window_column(column):
                    continue
                used[self._of.column(column)] = None
        return [name for name in used if name not in keys]

    def _chosen(
        self, outputs: Said, names: tuple[str, ...], number: exp.Expr | None = None
    ) -> Results:
        def meaning(node: exp.Expr) -> exp.Expr | None:
            if not isinstance(node, exp.Column):
                return None
            if node.name.lower() == self._number.lower():
                return result(self._number) if number is None else number
            window = self._of.window_column(node)
            return bound(window) if window else result(self._of.column(node))

        def of(node: exp.Expr) -> exp.Expr:
            return meant(self._inlined(node), meaning, "there is no such column")

        window = self._of.window
        assigner, change = (None, CHANGE) if window is None else (window.assigner, None)
        results = Results(outputs, names, assigner, change=change)
        items, condition = self._items(), self._numbered.rest
        named = named_items(tuple(items), of)
        rest = None if condition is None else of(condition)
        check_condition(results, rest, condition)
        return chosen_of(results, self._statement, items, named, rest)


def _of_results(
    statement: Statement, numbered: _Numbered, grouped: Statement, translator: Translator
) -> Results:
    """Return the keys of windows whose results come first."""
    inner, call = numbered.inner, numbered.inner.window(numbered.call)
    grouped.check()
    grouped.refuse("a join gives pairs: aggregate them in another query", "joins")
    number = _number_of(numbered)
    ranking = Ranking(
        numbered.count,
        tuple(each.this for each in _orders(call)),
        _directions(_orders(call)),
        tuple(call.args.get("partition_by") or ()),
        number,
        numbered.call,
    )
    of = translator.table(grouped.source)
    results = Aggregated(grouped, of, translator.settings, ranking).results()
    if inner.where is not None:
        rule = "rows are chosen before they are numbered by HAVING, or after it in the query around"
        raise refused(inner.where, rule)

    def meaning(node: exp.Expr) -> exp.Expr | None:
        if node is numbered.call:
            return result(number)
        return named_result(node, results.names)

    items = with_all(inner, [name for name in results.names if name != number])
    rule = f"there is no such result; there are {', '.join(results.names)}"
    chosen = results.select(named_items(items, lambda node: meant(node, meaning, rule)))
    return outer(statement, chosen, numbered.rest)


def _number_of(numbered: _Numbered) -> str:
    """Return what the number is called."""
    aliases = (item.alias for item in numbered.inner.items if item.node is numbered.call)
    alias = next(aliases)
    assert alias is not None
    return alias


def _grouped(numbered: _Numbered) -> tuple[Statement, Translator] | None:
    """Return the aggregates of windows that are numbered, and what reads them, if it is these."""
    found = numbered.within.query_in(numbered.inner.source)
    return None if found is None or found[0].group is None else found
