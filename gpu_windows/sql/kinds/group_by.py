"""Window aggregation: GROUP BY window_start, window_end, or GROUP BY TUMBLE(...)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from gpu_windows.expressions.dialect import WindowFunction
from gpu_windows.expressions.sql_text import canonical_text, errors_at, sql_error
from gpu_windows.planning.kinds.grouping import GROUPING_ID
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.kinds.aggregates import build_aggregate
from gpu_windows.sql.syntax.grouping_sets import expand_sets
from gpu_windows.sql.syntax.statement import Statement, is_aggregate, names_of
from gpu_windows.sql.syntax.window_functions import AUXILIARY_FUNCTIONS, read_group_window
from gpu_windows.sql.tables.inputs import Columns, Input, Window, check_timed
from gpu_windows.sql.tables.results import (
    Results,
    Settings,
    items_by_name,
    result_column,
    rewrite_over_results,
    window_bound,
)
from gpu_windows.sql.translator import Translator

_BOUNDS = ("window_start", "window_end")
_NO_ORDER = "ORDER BY is not covered here: results are emitted as windows end"
_NO_WINDOWS = (
    "GROUP BY without windows never ends on a stream: use a window function, FROM "
    "TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL '10' MINUTES); in batch, use spark.sql"
)
_NOT_SAME_WINDOWS = (
    "group results by windows of their time, FROM TUMBLE(TABLE q, DESCRIPTOR(window_time), "
    "INTERVAL '1' HOUR); results of SESSION cannot be grouped by their own windows"
)
_NOT_GROUPED = "this is neither an aggregate nor in GROUP BY"


@dataclass(frozen=True)
class _Grouping:
    """The clause GROUP BY: distinct keys, windows, the window function, grouping sets of keys."""

    keys: tuple[exp.Expr, ...]
    window: Window
    call: WindowFunction | None
    sets: tuple[tuple[exp.Expr, ...], ...] | None


@dataclass(frozen=True)
class Ranking:
    """The top-N of the results of a window: see `WindowedStream.top_keys`.

    Parameters
    ----------
    count : int
    by : tuple of sqlglot.exp.Expr
        Results by their names in the outer query.
    descending : bool or list of bool
    partition_by : tuple of sqlglot.exp.Expr
        window_start, window_end and maybe other results.
    number : str
        Name of the result with the number.
    node : sqlglot.exp.Expr
        The call of ROW_NUMBER, for the position of errors.
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
    """Return aggregates per window.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    table = translator.table(statement.source)
    return WindowAggregation(statement, table, translator.settings).results()


class WindowAggregation:
    """Reads a window aggregation.

    Parameters
    ----------
    statement : Statement
    table : Input
    settings : Settings
    ranking : Ranking, optional
        Of an outer query that numbers the results.
    """

    def __init__(
        self, statement: Statement, table: Input, settings: Settings, ranking: Ranking | None = None
    ) -> None:
        self._statement, self._ranking = statement, ranking
        self._settings = settings.for_inputs(table)
        self._table = table.where(statement.where)
        self._columns = Columns(self._table)
        self._aggregates: dict[str, tuple[str, ApiCall]] = {}

    def results(self) -> Results:
        """Return the results.

        Raises
        ------
        SqlError
            With the position of what is not covered.
        """
        grouping, statement = self._grouping_clause, self._statement
        check_timed(self._table, statement.select)
        keys = [self._columns.name(each) for each in grouping.keys]
        for name, item in zip(names_of(statement.items), statement.items, strict=True):
            self._collect_aggregates(item.node, name)
        if statement.having is not None:
            self._collect_aggregates(statement.having, None)
        aggregates = dict(self._aggregates.values())
        if not aggregates:
            self._aggregates["COUNT(*)"] = ("sql_rows", build_aggregate(_COUNT, self._columns))
            aggregates = {"sql_rows": self._aggregates["COUNT(*)"][1]}
        windowed = self._rank(self._window_step(keys))
        with errors_at(statement.select):
            outputs = windowed.call("with_outputs").call("aggregate", **aggregates)
        group_id = () if grouping.sets is None else (GROUPING_ID.name,)
        key_names = [self._table.timed_stream.source.display_name(key) for key in keys]
        number = () if self._ranking is None else (self._ranking.number,)
        names = (*key_names, *_BOUNDS, *aggregates, *group_id, *number)
        results = Results(outputs, names, grouping.window.assigner, start=self._start)
        selected = items_by_name(
            statement.items, lambda node: rewrite_over_results(node, self._to_result, _NOT_GROUPED)
        )
        selected.update({name: result_column(name) for name in number})
        having = statement.having
        where = having and rewrite_over_results(having, self._having_to_result, _NOT_GROUPED)
        if statement.order:
            raise sql_error(statement.order[0], _NO_ORDER)
        with errors_at(statement.select):
            return results.select(selected, where)

    def _window_step(self, keys: list[str]) -> ApiCall:
        grouping, stream = self._grouping_clause, self._columns.stream
        with errors_at(self._statement.group or self._statement.select):
            if keys:
                windowed = stream.call("key_by", *keys).call("window", grouping.window.assigner)
            else:
                windowed = stream.call("window_all", grouping.window.assigner)
            if grouping.sets is not None:
                sets = [[self._columns.name(each) for each in some] for some in grouping.sets]
                windowed = windowed.call("grouping_sets", *sets)
            return self._settings.apply(windowed)

    def _rank(self, windowed: ApiCall) -> ApiCall:
        ranking = self._ranking
        if ranking is None:
            return windowed
        if self._statement.having is not None:
            rule = "HAVING would leave gaps in the numbers: filter in the outer query instead"
            raise sql_error(self._statement.having, rule)
        per = [*map(self._base_result, ranking.partition_by)]
        per = [_BOUNDS[0] if name == self._start else name for name in per]
        if not {*_BOUNDS} <= {*per}:
            raise sql_error(ranking.node, "PARTITION BY needs window_start and window_end")
        per = [name for name in per if name not in _BOUNDS]
        by = [*map(self._base_result, ranking.by)]
        arguments = {"descending": ranking.descending, "per": per, "number": ranking.number}
        with errors_at(ranking.node):
            return windowed.call("top_keys", ranking.count, by, **arguments)

    @property
    def _start(self) -> str | None:
        """The key that is the start of windows; see `Window`."""
        start = self._grouping_clause.window.start
        return None if start is None else self._table.timed_stream.source.display_name(start)

    def _base_result(self, node: exp.Expr) -> str:
        """Return the original result that an outer query names."""
        items = self._statement.items
        for name, item in zip(names_of(items), items, strict=True):
            if isinstance(node, exp.Column) and name.lower() == node.name.lower():
                found = rewrite_over_results(item.node, self._to_result, _NOT_GROUPED)
                if isinstance(found, exp.Column):
                    return found.name
        raise sql_error(node, "results can be numbered by keys, bounds of windows and aggregates")

    # ---- GROUP BY

    @cached_property
    def _grouping_clause(self) -> _Grouping:
        group = self._statement.group
        if group is None:
            rule = "an aggregate over a window function needs GROUP BY window_start, window_end"
            raise sql_error(self._statement.select, rule)
        plain, sets = self._expand_sets(group)
        calls = [each for each in plain if isinstance(each, WindowFunction)]
        if calls:
            return self._group_by_function(calls, plain, sets)
        self._table = table = self._table.in_result_windows
        window = table.window
        if window is None:
            raise sql_error(group, _NOT_SAME_WINDOWS if table.is_results else _NO_WINDOWS)
        bounds_in_group = {name for name in map(self._table.window_bound, plain) if name}
        if sets is not None and not bounds_in_group:
            plain, sets, bounds_in_group = self._bounds_of_sets(plain, sets)
        if not {*_BOUNDS} <= bounds_in_group:
            raise sql_error(group, "GROUP BY needs both window_start and window_end")
        keys = [each for each in plain if not self._table.window_column(each)]
        return self._make_grouping(group, keys, window, None, sets)

    def _bounds_of_sets(
        self, plain: list[exp.Expr], sets: list[tuple[exp.Expr, ...]]
    ) -> tuple[list[exp.Expr], list[tuple[exp.Expr, ...]], set[str]]:
        """Return the same without the bounds of windows, where each set has them."""
        bounds = [{self._table.window_column(each) or "" for each in some} for some in sets]
        bounds_in_group = set.intersection(*bounds) if bounds else set()
        without = [
            tuple(each for each in some if not self._table.window_column(each)) for some in sets
        ]
        return plain, without, bounds_in_group

    def _group_by_function(
        self,
        calls: list[WindowFunction],
        plain: list[exp.Expr],
        sets: list[tuple[exp.Expr, ...]] | None,
    ) -> _Grouping:
        if len(calls) > 1 or self._table.window is not None:
            raise sql_error(calls[-1], "rows can be assigned to windows once")
        time, assigner = read_group_window(calls[0])
        check_timed(self._table, time, self._table.column(time))
        keys = [each for each in plain if each is not calls[0]]
        return self._make_grouping(calls[0], keys, Window(assigner), calls[0], sets)

    def _make_grouping(
        self,
        node: exp.Expr,
        keys: list[exp.Expr],
        window: Window,
        call: WindowFunction | None,
        sets: list[tuple[exp.Expr, ...]] | None,
    ) -> _Grouping:
        if sets is not None:
            texts: dict[str, exp.Expr] = {self._table.spark_text(each): each for each in keys}
            whole = [(*keys, *some) for some in sets]
            for some in whole:
                texts.update((self._table.spark_text(each), each) for each in some)
            keys = [*texts.values()]
            unique = [
                tuple({self._table.spark_text(e): e for e in some}.values()) for some in whole
            ]
            return _Grouping(tuple(keys), window, call, tuple(unique))
        unique_keys = tuple({self._table.spark_text(each): each for each in keys}.values())
        by = window.partition_by
        if by is not None:
            key_names = [self._columns.name(each).lower() for each in unique_keys]
            if sorted(key_names) != sorted(name.lower() for name in by):
                rule = "GROUP BY and PARTITION BY of SESSION must have the same keys"
                raise sql_error(node, rule)
        return _Grouping(unique_keys, window, call, None)

    def _expand_sets(
        self, group: exp.Group
    ) -> tuple[list[exp.Expr], list[tuple[exp.Expr, ...]] | None]:
        """Return the expressions in all grouping sets, and the sets of the others, if any."""
        plain: list[exp.Expr] = []
        sets: list[tuple[exp.Expr, ...]] | None = None
        grouped = [
            each for n in ("grouping_sets", "rollup", "cube") for each in group.args.get(n) or []
        ]
        if group.args.get("all") is not None or group.args.get("totals"):
            raise sql_error(group, "GROUP BY takes expressions, GROUPING SETS, ROLLUP and CUBE")
        for each in (*group.expressions, *grouped):
            if isinstance(each, exp.GroupingSets | exp.Rollup | exp.Cube):
                if sets is not None:
                    raise sql_error(each, "GROUP BY can have one list of grouping sets")
                sets = [*expand_sets(each)]
                if not each.expressions:  # WITH ROLLUP applies to all expressions before it
                    sets, plain = [*expand_sets(type(each)(expressions=plain))], []
            else:
                plain.append(self._resolve_item(each))
        resolved = None if sets is None else [tuple(map(self._resolve_item, some)) for some in sets]
        return plain, resolved

    def _resolve_item(self, node: exp.Expr) -> exp.Expr:
        """Return the item of SELECT that a number or an alias stands for."""
        items = self._statement.items
        if isinstance(node, exp.Literal) and node.is_int:
            position = int(node.name)
            if not 1 <= position <= len(items):
                raise sql_error(node, f"the list of SELECT has {len(items)} items")
            return items[position - 1].node
        if isinstance(node, exp.Column) and not node.table and not self._table.owns(node):
            aliased = [i.node for i in items if (i.alias or "").lower() == node.name.lower()]
            if aliased:
                return aliased[0]
        return node

    # ---- results

    def _collect_aggregates(self, node: exp.Expr, label: str | None) -> None:
        """Build the aggregates of an expression; ``label``: its name, of an item of SELECT."""
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return
        if isinstance(node, exp.Window):
            raise sql_error(
                node, "OVER cannot be used with GROUP BY: number results in an outer query"
            )
        if is_aggregate(node):
            text = canonical_text(node)
            if text not in self._aggregates:
                used = {name.lower() for name, _ in self._aggregates.values()}
                name = label or f"sql_result_{len(used)}"
                if name.lower() in used or name.lower() in self._key_names:
                    name = f"sql_result_{len(used)}"
                self._aggregates[text] = (name, build_aggregate(node, self._columns))
            return
        for child in node.iter_expressions():
            self._collect_aggregates(child, None)

    @cached_property
    def _key_names(self) -> set[str]:
        names = (self._columns.name(each).lower() for each in self._grouping_clause.keys)
        return {*names, *_BOUNDS, GROUPING_ID.name.lower()}

    def _to_result(self, node: exp.Expr) -> exp.Expr | None:
        """Return the result that a node stands for; None if it is not a result itself."""
        if is_aggregate(node) and not isinstance(node, exp.GroupingId | exp.Grouping):
            return result_column(self._aggregates[canonical_text(node)][0])
        if isinstance(node, exp.GroupingId | exp.Grouping):
            return self._grouping(node)
        window = self._window_of(node)
        if window is not None:
            return window_bound(window)
        for key in self._grouping_clause.keys:
            if node == key or (
                isinstance(node, exp.Column)
                and isinstance(key, exp.Column)
                and self._table.owns(node)
                and self._columns.name(node) == self._columns.name(key)
            ):
                return result_column(self._columns.name(key))
        return None

    def _window_of(self, node: exp.Expr) -> str | None:
        call = self._grouping_clause.call
        if call is None:
            return self._table.window_column(node)
        if not (isinstance(node, exp.Anonymous) and node.name.upper() in AUXILIARY_FUNCTIONS):
            return None
        kind = node.name.upper().partition("_")[0]
        same = [one.sql() for one in node.expressions] == [one.sql() for one in call.expressions]
        if kind != call.this or not same:
            raise sql_error(node, f"this must repeat the window of GROUP BY: {call.this}")
        return AUXILIARY_FUNCTIONS[node.name.upper()]

    def _grouping(self, node: exp.GroupingId | exp.Grouping) -> exp.Expr:
        grouping = self._grouping_clause
        if grouping.sets is None:
            raise sql_error(node, "this needs GROUPING SETS, ROLLUP or CUBE")
        if isinstance(node, exp.GroupingId):
            if node.expressions or node.this:
                raise sql_error(node, "GROUPING_ID() takes no arguments: it covers all keys")
            return result_column(GROUPING_ID.name)
        key = node.this or (node.expressions[0] if node.expressions else None)
        indices = [i for i, each in enumerate(grouping.keys) if each == key]
        if not indices:
            raise sql_error(node, "GROUPING takes a key of GROUP BY")
        bit = 1 << (len(grouping.keys) - 1 - indices[0])
        id_ = result_column(GROUPING_ID.name)
        shifted = exp.IntDiv(this=id_, expression=exp.Literal.number(bit))
        is_absent = exp.Mod(this=exp.Paren(this=shifted), expression=exp.Literal.number(2))
        return exp.cast(exp.Paren(this=is_absent), exp.DType.TINYINT)

    def _having_to_result(self, node: exp.Expr) -> exp.Expr | None:
        """Like `_to_result`, in HAVING, which may also name items of SELECT."""
        found = self._to_result(node)
        if found is not None or not isinstance(node, exp.Column) or node.table:
            return found
        for item in self._statement.items:
            if item.alias is not None and item.alias.lower() == node.name.lower():
                return exp.Paren(
                    this=rewrite_over_results(item.node, self._to_result, _NOT_GROUPED)
                )
        return None


_COUNT = exp.Count(this=exp.Star())
