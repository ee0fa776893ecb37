"""Top-N of windows, of results or of keys: ROW_NUMBER in a subquery, and WHERE around it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.aggregates.over import row_number
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.sql.kinds.group_by import read_group_by
from gpu_windows.sql.kinds.numbering import Numbering, directions_of, find_numbering
from gpu_windows.sql.kinds.pairs import stage_pairs
from gpu_windows.sql.kinds.unnest import explode_rows, has_unnest
from gpu_windows.sql.syntax.statement import Item, Statement, conjunction, conjuncts, names_of
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import (
    WINDOW_BOUNDS,
    Input,
    Window,
    expand_star,
    map_columns,
    result_column,
    window_bound,
)
from gpu_windows.sql.tables.processing_time import in_time_of, order_columns
from gpu_windows.sql.tables.results import (
    Results,
    check_keeps_changes,
    find_result,
    items_by_name,
    rewrite_over_results,
    select_checked,
    select_from_results,
)
from gpu_windows.sql.translator import Translator

#: The column with the kind of change, in a top-N per key.
_CHANGE = "change"


def read_top(
    statement: Statement, translator: Translator
) -> Results | tuple[Statement, Translator]:
    """Return the first rows of windows, of results of windows, or of keys.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    numbering = find_numbering(statement, translator)
    assert numbering is not None
    numbering.inner.check()
    if statement.joins:
        rule = "a query around ROW_NUMBER takes no join: join its results in an outer query"
        raise sql_error(statement.joins[0], rule)
    if statement.group or statement.having or statement.order or statement.over:
        return _around(statement), translator
    if numbering.inner.group is not None:
        rule = "number the results of GROUP BY in an outer query"
        raise sql_error(numbering.call, rule)
    rule = "ROW_NUMBER takes rows of FROM, with WHERE as the only other clause"
    numbering.inner.refuse(rule, "having", "order")
    if has_unnest(numbering.inner):
        numbering = numbering.in_query(*explode_rows(numbering.inner, numbering.within))
    if numbering.inner.joins:
        numbering = numbering.in_query(*stage_pairs(numbering.inner, numbering.within))
    grouped = numbering.within.query_in(numbering.inner.source)
    if grouped is not None and grouped[0].group is not None:
        return _top_of_results(statement, numbering, *grouped)
    table = _in_windows(numbering, numbering.within.table(numbering.inner.source))
    return _Top(statement, numbering, table, translator).results()


def _around(statement: Statement) -> Statement:
    """Return a query over first rows as one over a subquery that takes these alone."""
    first = exp.select("*").from_(statement.source.copy())
    where = statement.where
    first.set("where", None if where is None else exp.Where(this=where.copy()))
    alias = exp.TableAlias(this=exp.to_identifier(statement.source.alias_or_name, quoted=True))
    query = statement.select.copy()
    query.set("from_", exp.From(this=exp.Subquery(this=first, alias=alias)))
    query.set("where", None)
    return Statement(query)


def _in_windows(numbering: Numbering, table: Input) -> Input:
    """Return a table in its result windows if both bounds of them are in PARTITION BY."""
    windowed = table.in_result_windows
    by = {windowed.window_bound(each) for each in numbering.partition_by}
    return windowed if {*WINDOW_BOUNDS} <= by else table


class _Top:
    """Reads a top-N of rows, per window or per key."""

    def __init__(
        self, statement: Statement, numbering: Numbering, table: Input, translator: Translator
    ) -> None:
        self._statement, self._numbering = statement, numbering
        self._number = numbering.alias
        table = in_time_of(table, order_columns(numbering.inner, [numbering.call]))
        self._table = table.where(numbering.inner.where)
        self._columns = Columns(self._table)
        self._settings = translator.settings.for_inputs(table)
        self._for_stage = translator.for_stage
        self._has_star = any(self._table.is_star(item.node) for item in numbering.inner.items)
        inner = self._table.expand_star(numbering.inner.items)
        self._inner_names = names = names_of(inner)
        self._inner = {n.lower(): item.node for n, item in zip(names, inner, strict=True)}

    def results(self) -> Results:
        """Return the results."""
        by, window = self._numbering.partition_by, self._table.window
        bounds = {name for name in map(self._table.window_bound, by) if name}
        if window is not None and not {*WINDOW_BOUNDS} <= bounds:
            rule = "PARTITION BY needs window_start and window_end for rows in windows"
            raise sql_error(self._numbering.call, rule)
        keys = [self._columns.name(each) for each in by if not self._table.window_column(each)]
        orders = self._numbering.orders
        takes_last = self._numbering.count == 1 and self._is_by_time(orders, descends=True)
        if takes_last and window is not None:
            return self._last_by_time(window, keys)
        if self._for_stage and window is None and self._is_by_time(orders, descends=False):
            return self._first_by_time(keys)
        order = [self._columns.name(each.this) for each in orders]
        used = self._used_columns(keys)
        arguments: dict[str, Any] = {
            "descending": directions_of(orders),
            "columns": used,
            "number": self._number,
        }
        with errors_at(self._numbering.call):
            count = self._numbering.count
            if window is not None:
                step = self._window_step(window, keys).call("with_outputs")
                outputs = step.call("top", count, order, **arguments)
                return self._select(outputs, (*keys, *WINDOW_BOUNDS, *used, self._number))
            by_all = keys or [self._columns.add("true")]
            keyed = self._columns.stream.call("key_by", *by_all)
            more = dict(self._settings.options)  # a top-N per key takes options as arguments
            if self._settings.order:
                more["arrival_order"] = [*self._settings.order]
            numbers = (self._number,) if self._shows_number else ()
            arguments["number"] = self._number if numbers else None
            if takes_last:
                arguments["first"] = False
            outputs = keyed.call("with_outputs").call("top", count, order, **arguments, **more)
            return self._select(outputs, (*by_all, *used, *numbers, _CHANGE))

    @cached_property
    def _items(self) -> tuple[Item, ...]:
        """The list of SELECT of the outer query."""
        alias = self._statement.source.alias_or_name
        return expand_star(self._statement.items, alias, self._inner_names)

    @cached_property
    def _nodes(self) -> list[exp.Expr]:
        """The expressions of the outer query, without the condition that counts rows."""
        rest = self._numbering.rest
        return [*(item.node for item in self._items), *([] if rest is None else [rest])]

    @property
    def _shows_number(self) -> bool:
        """Whether the outer query reads the number; else a new number is not a change."""
        columns = (column for node in self._nodes for column in node.find_all(exp.Column))
        return self._number.lower() in {column.name.lower() for column in columns}

    def _is_by_time(self, orders: list[exp.Ordered], *, descends: bool) -> bool:
        """Whether rows are ordered by their event time alone, in a direction."""
        first, *others = orders
        by = first.this
        if others or not isinstance(by, exp.Column) or not self._table.owns(by):
            return False
        is_down = bool(first.args.get("desc"))
        return is_down == descends and self._columns.name(by) == self._table.time

    def _first_by_time(self, keys: list[str]) -> Results:
        """Return the first rows of keys in order of time, which never change later."""
        by = keys or [self._columns.add("true")]
        used = self._used_columns([])
        with errors_at(self._numbering.call):
            step = self._settings.apply(self._columns.stream.call("key_by", *by).call("over"))
            number = {self._number: call_api(row_number)}
            outputs = step.call("with_outputs").call("aggregate", used, **number)
        names = tuple(outputs.value.plan.result_schema.names)
        count = exp.Literal.number(self._numbering.count)
        first = exp.LTE(this=result_column(self._number), expression=count)
        return self._select(outputs, names, condition=first)

    def _last_by_time(self, window: Window, keys: list[str]) -> Results:
        """Return the latest row of each window: of equal times, the one that arrived last."""
        used = self._used_columns(keys) or [self._table.time]
        picked = {name: call_api(gw.arg_max, name, self._table.time, first=False) for name in used}
        with errors_at(self._numbering.call):
            step = self._window_step(window, keys).call("with_outputs")
            outputs = step.call("aggregate", **picked)
            names = (*keys, *WINDOW_BOUNDS, *used)
            return self._select(outputs, names, number=exp.Literal.number(1))

    def _window_step(self, window: Window, keys: list[str]) -> ApiCall:
        by, stream = window.partition_by, self._columns.stream
        if by is not None and sorted(by) != sorted(keys):
            rule = "PARTITION BY of ROW_NUMBER and of SESSION must have the same keys"
            raise sql_error(self._numbering.call, rule)
        return self._settings.apply(window.over(stream, keys))

    # ---- results

    def _inline(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression of the outer query to one over the rows of the subquery."""

        def visit(each: exp.Column) -> exp.Expr:
            name = each.name.lower()
            if name == self._number.lower():
                return each
            if name in self._inner and not isinstance(self._inner[name], exp.Star):
                inner: exp.Expr = self._inner[name].copy()
                return inner if isinstance(inner, exp.Column) else exp.Paren(this=inner)
            if self._has_star:
                return exp.column(each.this.copy())
            raise sql_error(each, f"there is no such column; there are {', '.join(self._inner)}")

        return map_columns(node, visit)

    def _used_columns(self, keys: list[str]) -> list[str]:
        """Return the columns of rows that the outer query reads, without the keys."""
        used: dict[str, None] = {}
        for node in map(self._inline, self._nodes):
            for column in node.find_all(exp.Column):
                is_number = column.name.lower() == self._number.lower()
                if is_number or self._table.window_column(column):
                    continue
                used[self._table.column(column)] = None
        return [name for name in used if name not in keys]

    def _select(
        self,
        outputs: ApiCall,
        names: tuple[str, ...],
        number: exp.Expr | None = None,
        condition: exp.Expr | None = None,
    ) -> Results:
        """Select from rows; ``condition``: over them, in place of their changes."""
        table = self._table

        def to_result(node: exp.Expr) -> exp.Expr | None:
            if not isinstance(node, exp.Column):
                return None
            if node.name.lower() == self._number.lower():
                return result_column(self._number) if number is None else number
            bound = table.window_column(node)
            return table.column_result(node) if bound is None else window_bound(bound)

        def rewrite(node: exp.Expr) -> exp.Expr:
            return rewrite_over_results(self._inline(node), to_result, "there is no such column")

        results = Results(outputs, tuple(map(table.display_name, names)))
        if table.window is not None:
            results = replace(results, window=table.window.assigner, start=table.window.start)
        elif condition is None:
            results = replace(results, change=_CHANGE)
        query = self._numbering.rest
        selected = items_by_name(self._items, rewrite)
        rest = conjunction([*conjuncts(query and rewrite(query)), *table.window_conditions])
        check_keeps_changes(results, rest, query)
        rest = conjunction([*conjuncts(condition), *conjuncts(rest)])
        return select_checked(results, self._statement, self._items, selected, rest)


def _top_of_results(
    statement: Statement, numbering: Numbering, grouped: Statement, translator: Translator
) -> Results:
    """Return the top-N of the results of windows."""
    inner, number = numbering.inner, numbering.alias
    grouped.check()
    grouped.refuse("aggregate the results of a join in an outer query", "joins")
    results = read_group_by(grouped, translator, numbering)
    if inner.where is not None:
        rule = "filter results before they are numbered with HAVING, or after it in the outer query"
        raise sql_error(inner.where, rule)

    def to_result(node: exp.Expr) -> exp.Expr | None:
        if node is numbering.call:
            return result_column(number)
        return find_result(node, results.names)

    alias, names = inner.source.alias_or_name, [name for name in results.names if name != number]
    items = expand_star(inner.items, alias, names)
    rule = f"there is no such result; there are {', '.join(results.names)}"
    selected = results.select(
        items_by_name(items, lambda node: rewrite_over_results(node, to_result, rule))
    )
    return select_from_results(statement, selected, numbering.rest)
