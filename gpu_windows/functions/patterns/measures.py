"""What is told of a match: rows and aggregates, and expressions over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.expressions.places import placed, refused, written
from gpu_windows.functions.patterns.navigation import (
    Navigation,
    Rows,
    check_read,
    column_of,
    is_aggregate,
    is_navigation,
    is_rowtime,
    replaced,
)
from gpu_windows.functions.patterns.program import Place

_AGGREGATES: Mapping[type[exp.Expr], Callable[..., Aggregate]] = {
    exp.Sum: gw.sum_,
    exp.Avg: gw.mean,
    exp.Min: gw.min_,
    exp.Max: gw.max_,
    exp.Count: gw.count,
}


class Results(Protocol):
    """Results of matches, to which those that expressions need are added."""

    def picked(self, place: Place, text: str, wanted: str | None) -> str:
        """Return the name of a result: an expression over one row of a match."""

    def folded(
        self, variable: int, function: Callable[..., Aggregate], text: str | None,
        wanted: str | None,
    ) -> str:  # fmt: skip
        """Return the name of a result: an aggregate over the rows of a variable."""


class Measures:
    """Reads what is told of a match.

    Parameters
    ----------
    navigation : Navigation
    results : Results
    """

    def __init__(self, navigation: Navigation, results: Results) -> None:
        self._navigation, self._results = navigation, results

    def read(self, name: str, node: exp.Expr) -> str | None:
        """Return the expression over results that a measure is; None: it is one of them, by name.

        Raises
        ------
        SqlError
            With the place of what is not covered.
        """
        check_read(node)
        while isinstance(node, exp.Paren):
            node = node.this
        with placed(node):
            is_leaf = self._is_leaf(node) or isinstance(node, exp.Column)
            if is_leaf and not (is_navigation(node) and self._navigation.inwards(node)):
                self._leaf(node, name)
                return None
            return written(self._over(node))

    @staticmethod
    def _is_leaf(node: exp.Expr) -> bool:
        return is_navigation(node) or is_aggregate(node) or is_rowtime(node)

    def _over(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over results."""

        def over_results(each: exp.Expr) -> exp.Expr:
            if is_navigation(each):
                inwards = self._navigation.inwards(each)
                if inwards is not None:
                    return self._over(inwards)
            if self._is_leaf(each) or isinstance(each, exp.Column):
                return column_of(self._leaf(each, None))
            return each

        return replaced(node.copy(), over_results)

    def _leaf(self, node: exp.Expr, wanted: str | None) -> str:
        if is_aggregate(node):
            return self._aggregate(node, self._navigation.rows(node), wanted)
        value = self._navigation.value(node)
        if value is None or value.place is None:
            raise refused(node, "FIRST and LAST are of a column of the rows")
        return self._results.picked(value.place, written(value.of), wanted)

    def _aggregate(self, node: exp.Expr, rows: Rows, wanted: str | None) -> str:
        function: Any = _AGGREGATES[type(node)]
        text = None if rows.of is None else written(rows.of)
        return self._results.folded(rows.variable, function, text, wanted)
