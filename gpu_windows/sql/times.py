"""What the condition of a join says of the times of its sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.intervals import ticks_of


@dataclass(frozen=True)
class _Difference:
    """``right time - left time`` is at least, or at most, so many ticks."""

    lower: int | None = None
    upper: int | None = None


class Times:
    """Reads comparisons of the times of two sides.

    Parameters
    ----------
    side_of : callable
        The side, 0 or 1, of whose rows a column is the time; None for other columns.
    """

    def __init__(self, side_of: Callable[[exp.Column], int | None]) -> None:
        self._side_of = side_of

    def bounds(self, conditions: Sequence[exp.Expr]) -> tuple[list[int], list[int], list[exp.Expr]]:
        """Return lower and upper bounds of ``right time - left time``, and all other conditions."""
        lower: list[int] = []
        upper: list[int] = []
        others = []
        for each in conditions:
            found = self._differences(each)
            others += [] if found else [each]
            for difference in found:
                lower += [] if difference.lower is None else [difference.lower]
                upper += [] if difference.upper is None else [difference.upper]
        return lower, upper, others

    def _differences(self, node: exp.Expr) -> list[_Difference]:
        """Return what a condition says of ``right time - left time``; nothing if it says none."""
        if isinstance(node, exp.Between):
            low = exp.GTE(this=node.this, expression=node.args["low"])
            high = exp.LTE(this=node.this, expression=node.args["high"])
            both = [*self._compared(low), *self._compared(high)]
            return both if len(both) == 2 else []
        return self._compared(node)

    def _compared(self, node: exp.Expr) -> list[_Difference]:
        if type(node) not in (exp.EQ, exp.GTE, exp.LTE, exp.GT, exp.LT):
            return []
        assert isinstance(node, exp.Binary)
        one, other = self._moved(node.this), self._moved(node.expression)
        if one is None or other is None or one[0] == other[0]:
            return []
        kind: Any = type(node)
        if one[0] == 0:  # as of the right side
            one, other = other, one
            kind = {exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.LT: exp.GT}.get(
                kind, kind
            )
        distance = other[1] - one[1]  # right + a <kind> left + b: right - left <kind> b - a
        if kind is exp.EQ:
            return [_Difference(distance, distance)]
        if kind in (exp.GTE, exp.GT):
            return [_Difference(lower=distance + (kind is exp.GT))]
        return [_Difference(upper=distance - (kind is exp.LT))]

    def _moved(self, node: exp.Expr) -> tuple[int, int] | None:
        """Return whose time an expression is, and by how many ticks it is moved."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            side = self._side_of(node)
            return None if side is None else (side, 0)
        if isinstance(node, exp.Add | exp.Sub) and node.expression.find(exp.Interval):
            of = self._moved(node.this)
            if of is None or node.expression.find(exp.Column):
                return None
            ticks = ticks_of(node.expression)
            return of[0], of[1] + (ticks if isinstance(node, exp.Add) else -ticks)
        return None
