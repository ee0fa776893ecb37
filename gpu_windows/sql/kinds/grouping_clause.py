"""The clause GROUP BY of a window aggregation: keys, windows, grouping sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from gpu_windows.expressions.dialect import WindowFunction
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.grouping_sets import expand_sets
from gpu_windows.sql.syntax.statement import Statement
from gpu_windows.sql.syntax.window_functions import make_assigner, read_group_window
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import WINDOW_BOUNDS, Input, Window, check_timed

_NO_WINDOWS = (
    "GROUP BY without windows never ends on a stream: use a window function, FROM "
    "TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL '10' MINUTES); in batch, use spark.sql"
)
_NOT_SAME_WINDOWS = (
    "group results by windows of their time, FROM TUMBLE(TABLE q, DESCRIPTOR(window_time), "
    "INTERVAL '1' HOUR); results of SESSION cannot be grouped by their own windows"
)


@dataclass(frozen=True)
class Grouping:
    """The clause GROUP BY: distinct keys, windows, the window function, grouping sets of keys.

    ``table`` is in its result windows if it is grouped by them.
    """

    table: Input
    keys: tuple[exp.Expr, ...]
    window: Window
    call: WindowFunction | None
    sets: tuple[tuple[exp.Expr, ...], ...] | None


def time_columns(group: exp.Group | None) -> list[exp.Expr]:
    """Return the times of ``GROUP BY TUMBLE(time, size)``."""
    calls = () if group is None else group.expressions
    return [
        each.expressions[0]
        for each in calls
        if isinstance(each, WindowFunction) and each.expressions
    ]


class GroupingClause:
    """Reads GROUP BY.

    Parameters
    ----------
    statement : Statement
    table : Input
    columns : Columns
        Of the table.
    """

    def __init__(self, statement: Statement, table: Input, columns: Columns) -> None:
        self._statement, self._table, self._columns = statement, table, columns

    def read(self) -> Grouping:
        """Return the clause.

        Raises
        ------
        SqlError
            With the position of what is not covered.
        """
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
        bounds_in_group = {name for name in map(table.window_bound, plain) if name}
        if sets is not None and not bounds_in_group:  # each set may have them
            of_sets = [{table.window_column(each) or "" for each in some} for some in sets]
            bounds_in_group = set.intersection(*of_sets) if of_sets else set()
            sets = [self._without_windows(some) for some in sets]
        if not {*WINDOW_BOUNDS} <= bounds_in_group:
            raise sql_error(group, "GROUP BY needs both window_start and window_end")
        return self._make_grouping(group, self._without_windows(plain), window, None, sets)

    def _without_windows(self, nodes: Iterable[exp.Expr]) -> tuple[exp.Expr, ...]:
        return tuple(each for each in nodes if not self._table.window_column(each))

    def _group_by_function(
        self,
        calls: list[WindowFunction],
        plain: list[exp.Expr],
        sets: list[tuple[exp.Expr, ...]] | None,
    ) -> Grouping:
        if len(calls) > 1 or self._table.window is not None:
            raise sql_error(calls[-1], "rows can be assigned to windows once")
        time, durations = read_group_window(calls[0])
        check_timed(self._table, time, self._table.column(time))
        assigner = make_assigner(calls[0], durations, self._table.display_zone)
        keys = tuple(each for each in plain if each is not calls[0])
        return self._make_grouping(calls[0], keys, Window(assigner), calls[0], sets)

    def _make_grouping(
        self,
        node: exp.Expr,
        keys: tuple[exp.Expr, ...],
        window: Window,
        call: WindowFunction | None,
        sets: list[tuple[exp.Expr, ...]] | None,
    ) -> Grouping:
        if sets is not None:
            whole = [(*keys, *some) for some in sets]
            all_keys = self._unique(itertools.chain(keys, *whole))
            return Grouping(self._table, all_keys, window, call, tuple(map(self._unique, whole)))
        keys = self._unique(keys)
        by = window.partition_by
        if by is not None:
            key_names = [self._columns.name(each).lower() for each in keys]
            if sorted(key_names) != sorted(name.lower() for name in by):
                rule = "GROUP BY and PARTITION BY of SESSION must have the same keys"
                raise sql_error(node, rule)
        return Grouping(self._table, keys, window, call, None)

    def _unique(self, nodes: Iterable[exp.Expr]) -> tuple[exp.Expr, ...]:
        return tuple({self._table.spark_text(each): each for each in nodes}.values())

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
