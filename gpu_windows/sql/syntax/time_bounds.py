"""Bounds of the difference of two sides' times, in the condition of a join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.intervals import interval_ticks


@dataclass(frozen=True)
class _Difference:
    """Bounds of ``right time - left time`` in ticks, inclusive; None is unbounded."""

    lower: int | None = None
    upper: int | None = None


#: The comparison that holds where one does not; times are never null.
_NEGATED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
}
#: The comparison of the same operands in the other order.
_SWAPPED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
}


class TimeComparisons:
    """Reads comparisons of the times of two sides.

    Parameters
    ----------
    side_of : callable
        Returns the side, 0 or 1, whose event time a column is, and the ticks between both; None
        for other columns.
    """

    def __init__(self, side_of: Callable[[exp.Column], tuple[int, int] | None]) -> None:
        self._side_of = side_of

    def bounds(self, conditions: Sequence[exp.Expr]) -> tuple[list[int], list[int], list[exp.Expr]]:
        """Return lower and upper bounds of ``right time - left time``, and all other conditions."""
        found = [self._differences(each) for each in conditions]
        others = [each for each, some in zip(conditions, found, strict=True) if not some]
        differences = [each for some in found for each in some]
        lower = [each.lower for each in differences if each.lower is not None]
        upper = [each.upper for each in differences if each.upper is not None]
        return lower, upper, others

    def _differences(self, node: exp.Expr) -> list[_Difference]:
        """Return the bounds of ``right time - left time`` in a condition; empty for others."""
        if isinstance(node, exp.Between):
            low = exp.GTE(this=node.this, expression=node.args["low"])
            high = exp.LTE(this=node.this, expression=node.args["high"])
            both = [*self._compare(low), *self._compare(high)]
            return both if len(both) == 2 else []
        if isinstance(node, exp.Not):
            inner = node.this.unnest()
            kind = _NEGATED.get(type(inner))
            return [] if kind is None else self._compare(kind(**inner.args))
        return self._compare(node)

    def _compare(self, node: exp.Expr) -> list[_Difference]:
        if type(node) not in (exp.EQ, exp.GTE, exp.LTE, exp.GT, exp.LT):
            return []
        assert isinstance(node, exp.Binary)
        one, other = self._shifted_time(node.this), self._shifted_time(node.expression)
        if one is None or other is None or one[0] == other[0]:
            return []
        kind: Any = type(node)
        if one[0] == 0:  # swap: the right side first
            one, other = other, one
            kind = _SWAPPED.get(kind, kind)
        distance = other[1] - one[1]  # right + a <kind> left + b: right - left <kind> b - a
        if kind is exp.EQ:
            return [_Difference(distance, distance)]
        if kind in (exp.GTE, exp.GT):
            return [_Difference(lower=distance + (kind is exp.GT))]
        return [_Difference(upper=distance - (kind is exp.LT))]

    def _shifted_time(self, node: exp.Expr) -> tuple[int, int] | None:
        """Return the side whose time an expression is, and the ticks added to it."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            return self._side_of(node)
        if isinstance(node, exp.Add | exp.Sub) and node.expression.find(exp.Interval):
            time = self._shifted_time(node.this)
            if time is None or node.expression.find(exp.Column):
                return None
            ticks = interval_ticks(node.expression)
            return time[0], time[1] + (ticks if isinstance(node, exp.Add) else -ticks)
        return None
