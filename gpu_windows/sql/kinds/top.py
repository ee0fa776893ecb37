"""Top-N of windows, of results or of keys: ROW_NUMBER in a subquery, and WHERE around it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.aggregates.over import row_number
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.sql.kinds.group_by import Ranking, WindowAggregation
from gpu_windows.sql.kinds.numbering import (
    Numbering,
    directions_of,
    find_numbering,
    in_query,
    number_name,
    orders_of,
)
from gpu_windows.sql.kinds.pairs import stage_pairs
from gpu_windows.sql.kinds.unnest import explode_rows, has_unnest
from gpu_windows.sql.syntax.statement import Item, Statement, conjunction, conjuncts, names_of
from gpu_windows.sql.tables.inputs import Columns, Input, result_column, window_bound
from gpu_windows.sql.tables.processing_time import in_time_of, order_columns
from gpu_windows.sql.tables.results import (
    Results,
    check_keeps_changes,
    expand_star,
    find_result,
    items_by_name,
    rewrite_over_results,
    select_checked,
    select_from_results,
)
from gpu_windows.sql.translator import Translator

_BOUNDS = ["window_start", "window_end"]
#: The column with the kind of change, in a top-N per key.
CHANGE = "change"


def is_top(statement: Statement, translator: Translator) -> bool:
    """Whether a query takes the first rows that its subquery numbers."""
    return find_numbering(statement, translator) is not None


def read_top(statement: Statement, translator: Translator) -> Results:
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
        return translator.read(_around(statement))
    if numbering.inner.group is not None:
        rule = "number the results of GROUP BY in an outer query"
        raise sql_error(numbering.call, rule)
    rule = "ROW_NUMBER takes rows of FROM, with WHERE as the only other clause"
    numbering.inner.refuse(rule, "having", "order")
    if has_unnest(numbering.inner, numbering.within):
        numbering = in_query(numbering, *explode_rows(numbering.inner, numbering.within))
    if numbering.inner.joins:
        inner, within = stage_pairs(numbering.inner, numbering.within)
        numbering = in_query(numbering, inner, within)
    grouped = _find_group_by(numbering)
    if grouped is not None:
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
    call = numbering.inner.window(numbering.call)
    windowed = table.in_result_windows
    by = {windowed.window_bound(each) for each in call.args.get("partition_by") or ()}
    return windowed if {*_BOUNDS} <= by else table


class _Top:
    """Reads a top-N of rows, per window or per key."""

    def __init__(
        self, statement: Statement, numbering: Numbering, table: Input, translator: Translator
    ) -> None:
        self._statement, self._numbering = statement, numbering
        table = in_time_of(table, order_columns(numbering.inner, [numbering.call]))
        self._table = table.where(numbering.inner.where)
        self._columns = Columns(self._table)
        self._settings = translator.settings.for_inputs(table)
        self._for_stage = translator.for_stage
        self._has_star = any(self._table.is_star(item.node) for item in numbering.inner.items)
        items = self._inner_items()
        names = names_of(items)
        self._inner_names = names
        self._inner = {n.lower(): item.node for n, item in zip(names, items, strict=True)}

    def results(self) -> Results:
        """Return the results."""
        call = self._numbering.inner.window(self._numbering.call)
        by = [*(call.args.get("partition_by") or ())]
        windows = {name for name in map(self._table.window_bound, by) if name}
        if self._table.window is not None and not {*_BOUNDS} <= windows:
            rule = "PARTITION BY needs window_start and window_end for rows in windows"
            raise sql_error(self._numbering.call, rule)
        keys = [self._columns.name(each) for each in by if not self._table.window_column(each)]
        orders = orders_of(call)
        takes_last = self._takes_last(orders)
        if takes_last and self._table.window is not None:
            return self._last_by_time(keys)
        if self._for_stage and self._takes_first(orders):
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
            if self._table.window is not None:
                outputs = (
                    self._window_step(keys)
                    .call("with_outputs")
                    .call("top", count, order, **arguments)
                )
                return self._select(outputs, (*keys, *_BOUNDS, *used, self._number))
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
            return self._select(outputs, (*by_all, *used, *numbers, CHANGE))

    @property
    def _number(self) -> str:
        return number_name(self._numbering)

    @property
    def _shows_number(self) -> bool:
        """Whether the outer query reads the number; else a new number is not a change."""
        nodes = [item.node for item in self._items()]
        nodes += [] if self._numbering.rest is None else [self._numbering.rest]
        names = {column.name.lower() for node in nodes for column in node.find_all(exp.Column)}
        return self._number.lower() in names

    def _takes_last(self, orders: list[exp.Ordered]) -> bool:
        """Whether the query takes the latest row: of equal times, the one that arrived last."""
        first = orders[0]
        is_column = isinstance(first.this, exp.Column) and self._table.owns(first.this)
        if self._numbering.count != 1 or len(orders) > 1 or not is_column:
            return False
        return bool(first.args.get("desc")) and self._columns.name(first.this) == self._table.time

    def _takes_first(self, orders: list[exp.Ordered]) -> bool:
        """Whether the query takes the first rows of keys by time, which never change later."""
        by = orders[0].this
        is_column = isinstance(by, exp.Column) and self._table.owns(by)
        if self._table.window is not None or len(orders) > 1 or not is_column:
            return False
        return not orders[0].args.get("desc") and self._columns.name(by) == self._table.time

    def _first_by_time(self, keys: list[str]) -> Results:
        """Return the first rows of keys in order of time, as the watermark reaches them."""
        by = keys or [self._columns.add("true")]
        used = self._used_columns([])
        with errors_at(self._numbering.call):
            step = self._settings.apply(self._columns.stream.call("key_by", *by).call("over"))
            number = {self._number: call_api("gw.row_number", row_number)}
            outputs = step.call("with_outputs").call("aggregate", used, **number)
        names = tuple(outputs.value.plan.result_schema.names)
        public = tuple(map(self._table.timed_stream.source.display_name, names))
        first = exp.LTE(
            this=result_column(self._number),
            expression=exp.Literal.number(self._numbering.count),
        )
        return self._select(outputs, public, condition=first)

    def _last_by_time(self, keys: list[str]) -> Results:
        used = self._used_columns(keys) or [self._table.time]
        picked = {
            name: call_api("gw.arg_max", gw.arg_max, name, self._table.time, first=False)
            for name in used
        }
        with errors_at(self._numbering.call):
            outputs = self._window_step(keys).call("with_outputs").call("aggregate", **picked)
            names = (*keys, *_BOUNDS, *used)
            return self._select(outputs, names, number=exp.Literal.number(1))

    def _window_step(self, keys: list[str]) -> ApiCall:
        window, stream = self._table.window, self._columns.stream
        assert window is not None
        by = window.partition_by
        if by is not None and sorted(by) != sorted(keys):
            rule = "PARTITION BY of ROW_NUMBER and of SESSION must have the same keys"
            raise sql_error(self._numbering.call, rule)
        if keys:
            windowed = stream.call("key_by", *keys).call("window", window.assigner)
        else:
            windowed = stream.call("window_all", window.assigner)
        return self._settings.apply(windowed)

    # ---- results

    def _inline(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression of the outer query to one over the rows of the subquery."""

        def visit(each: exp.Expr) -> exp.Expr:
            if not isinstance(each, exp.Column):
                return each
            name = each.name.lower()
            if name == self._number.lower():
                return each
            if name in self._inner and not isinstance(self._inner[name], exp.Star):
                inner: exp.Expr = self._inner[name].copy()
                return inner if isinstance(inner, exp.Column) else exp.Paren(this=inner)
            if self._has_star:
                return exp.column(each.this.copy())
            raise sql_error(each, f"there is no such column; there are {', '.join(self._inner)}")

        return node.copy().transform(visit)

    def _items(self) -> list[Item]:
        items: list[Item] = []
        for item in self._statement.items:
            if not self._statement.is_all(item.node):
                items.append(item)
                continue
            items += (Item(result_column(name), None) for name in self._inner_names)
        return items

    def _inner_items(self) -> list[Item]:
        """Return the list of SELECT of the subquery with ``*`` expanded."""
        items: list[Item] = []
        for item in self._numbering.inner.items:
            if self._table.is_star(item.node):
                items += (Item(result_column(name), None) for name in self._table.all_names)
            else:
                items.append(item)
        return items

    def _used_columns(self, keys: list[str]) -> list[str]:
        """Return the columns of rows that the outer query reads, without the keys."""
        nodes = [item.node for item in self._items()]
        if self._numbering.rest is not None:
            nodes.append(self._numbering.rest)
        used: dict[str, None] = {}
        for node in map(self._inline, nodes):
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
        display_name = self._table.timed_stream.source.display_name
        names = tuple(map(display_name, names))

        def to_result(node: exp.Expr) -> exp.Expr | None:
            if not isinstance(node, exp.Column):
                return None
            if node.name.lower() == self._number.lower():
                return result_column(self._number) if number is None else number
            window = self._table.window_column(node)
            if window:
                return window_bound(window)
            column = self._table.column(node)
            return result_column(display_name(column))

        def rewrite(node: exp.Expr) -> exp.Expr:
            return rewrite_over_results(self._inline(node), to_result, "there is no such column")

        window = self._table.window
        assigner = None if window is None else window.assigner
        change = CHANGE if window is None and condition is None else None
        start = None if window is None else window.start
        results = Results(outputs, names, assigner, change=change, start=start)
        items, query = self._items(), self._numbering.rest
        selected = items_by_name(tuple(items), rewrite)
        of_windows = self._table.window_conditions
        rest = conjunction([*conjuncts(query and rewrite(query)), *of_windows])
        check_keeps_changes(results, rest, query)
        rest = conjunction([*conjuncts(condition), *conjuncts(rest)])
        return select_checked(results, self._statement, items, selected, rest)


def _top_of_results(
    statement: Statement, numbering: Numbering, grouped: Statement, translator: Translator
) -> Results:
    """Return the top-N of the results of windows."""
    inner, call = numbering.inner, numbering.inner.window(numbering.call)
    grouped.check()
    grouped.refuse("aggregate the results of a join in an outer query", "joins")
    number = number_name(numbering)
    ranking = Ranking(
        numbering.count,
        tuple(each.this for each in orders_of(call)),
        directions_of(orders_of(call)),
        tuple(call.args.get("partition_by") or ()),
        number,
        numbering.call,
    )
    table = translator.table(grouped.source)
    results = WindowAggregation(grouped, table, translator.settings, ranking).results()
    if inner.where is not None:
        rule = "filter results before they are numbered with HAVING, or after it in the outer query"
        raise sql_error(inner.where, rule)

    def to_result(node: exp.Expr) -> exp.Expr | None:
        if node is numbering.call:
            return result_column(number)
        return find_result(node, results.names)

    items = expand_star(inner, [name for name in results.names if name != number])
    rule = f"there is no such result; there are {', '.join(results.names)}"
    selected = results.select(
        items_by_name(items, lambda node: rewrite_over_results(node, to_result, rule))
    )
    return select_from_results(statement, selected, numbering.rest)


def _find_group_by(numbering: Numbering) -> tuple[Statement, Translator] | None:
    """Return the GROUP BY that is numbered, with its translator; None if rows are numbered."""
    found = numbering.within.query_in(numbering.inner.source)
    return None if found is None or found[0].group is None else found
