"""MEASURES of a match: row values and aggregates, and expressions over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.expressions.sql_text import errors_at, sql_error, to_spark_sql
from gpu_windows.functions.patterns.navigation import (
    AggregateArgument,
    Navigation,
    check_expression,
    column_of,
    is_aggregate,
    is_navigation,
    is_rowtime,
    replace_parts,
)
from gpu_windows.functions.patterns.program import RowReference

_AGGREGATES: Mapping[type[exp.Expr], Callable[..., Aggregate]] = {
    exp.Sum: gw.sum_,
    exp.Avg: gw.mean,
    exp.Min: gw.min_,
    exp.Max: gw.max_,
    exp.Count: gw.count,
}


class Results(Protocol):
    """Collects the row values and aggregates that measures need."""

    def add_row_value(self, row: RowReference, text: str, wanted: str | None) -> str:
        """Add an expression over one row of a match; return the name of its result."""

    def add_aggregate(
        self, variable: int, function: Callable[..., Aggregate], text: str | None,
        wanted: str | None,
    ) -> str:  # fmt: skip
        """Add an aggregate over the rows of a variable; return the name of its result."""


class Measures:
    """Reads measures of a match.

    Parameters
    ----------
    navigation : Navigation
    results : Results
    """

    def __init__(self, navigation: Navigation, results: Results) -> None:
        self._navigation, self._results = navigation, results

    def read(self, name: str, node: exp.Expr) -> str | None:
        """Return a measure as an expression over results; None if it is a result of that name.

        Raises
        ------
        SqlError
            With the position of what is not covered.
        """
        check_expression(node)
        while isinstance(node, exp.Paren):
            node = node.this
        with errors_at(node):
            is_leaf = self._is_leaf(node) or isinstance(node, exp.Column)
            if is_leaf and not (is_navigation(node) and self._navigation.push_inwards(node)):
                self._leaf(node, name)
                return None
            return to_spark_sql(self._over_results(node))

    @staticmethod
    def _is_leaf(node: exp.Expr) -> bool:
        return is_navigation(node) or is_aggregate(node) or is_rowtime(node)

    def _over_results(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression over a match to one over results."""

        def over_results(each: exp.Expr) -> exp.Expr:
            if is_navigation(each):
                push_inwards = self._navigation.push_inwards(each)
                if push_inwards is not None:
                    return self._over_results(push_inwards)
            if self._is_leaf(each) or isinstance(each, exp.Column):
                return column_of(self._leaf(each, None))
            return each

        return replace_parts(node.copy(), over_results)

    def _leaf(self, node: exp.Expr, wanted: str | None) -> str:
        if is_aggregate(node):
            return self._aggregate(node, self._navigation.rows(node), wanted)
        value = self._navigation.value(node)
        if value is None or value.row is None:
            raise sql_error(node, "FIRST and LAST take a column of the rows")
        return self._results.add_row_value(value.row, to_spark_sql(value.of), wanted)

    def _aggregate(self, node: exp.Expr, rows: AggregateArgument, wanted: str | None) -> str:
        function: Any = _AGGREGATES[type(node)]
        text = None if rows.of is None else to_spark_sql(rows.of)
        return self._results.add_aggregate(rows.variable, function, text, wanted)
