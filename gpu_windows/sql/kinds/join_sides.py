"""The two sides of a join: which of them owns a column, and what conditions say about both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.time_bounds import TimeComparisons
from gpu_windows.sql.tables.inputs import Input

#: The column of results of windows that is one tick after their time.
_END = "window_end"


@dataclass(frozen=True)
class Sides:
    """The tables of a join.

    Parameters
    ----------
    tables : tuple of Input
        The left and the right one.
    """

    tables: tuple[Input, Input]

    @property
    def left(self) -> Input:
        """The left table."""
        return self.tables[0]

    @property
    def right(self) -> Input:
        """The right table."""
        return self.tables[1]

    def side_of(self, node: exp.Expr) -> int | None:
        """Return the side that owns all columns of an expression; None for both or no side."""
        sides = {self.owner(column) for column in node.find_all(exp.Column)}
        return sides.pop() if len(sides) == 1 else None

    def owns(self, column: exp.Column) -> bool:
        """Whether a node names a column of a side."""
        return self.left.owns(column) or self.right.owns(column)

    def with_alias(self, alias: str) -> list[Input]:
        """Return the table of an alias, in any case: one or no table."""
        return [table for table in self.tables if table.alias.lower() == alias.lower()]

    def owner(self, column: exp.Column) -> int:
        """Return the side that owns a column.

        Raises
        ------
        SqlError
            If both sides do, or none.
        """
        owners = [i for i, side in enumerate(self.tables) if side.owns(column)]
        if len(owners) == 1:
            return owners[0]
        both = f"{self.left.alias} and {self.right.alias}"
        if owners:
            raise sql_error(column, f"{both} have a column of this name: write the table before it")
        rule = f"neither {self.left.alias} nor {self.right.alias} has a column of this name"
        raise sql_error(column, rule)

    def keys(
        self, conditions: Sequence[exp.Expr]
    ) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
        """Return the equated expressions of both sides, and all other conditions."""
        keys, rest = [], []
        for each in conditions:
            pair = self.equal(each)
            if pair is None or self.has_window_columns(each) or self._compares_times(each):
                rest.append(each)
            else:
                keys.append(pair)
        return keys, rest

    def equal(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """Return both sides of an equation between the tables, the left table's first."""
        if not isinstance(node, exp.EQ):
            return None
        sides = self.side_of(node.this), self.side_of(node.expression)
        if sides == (0, 1):
            return node.this, node.expression
        return (node.expression, node.this) if sides == (1, 0) else None

    def has_window_columns(self, node: exp.Expr) -> bool:
        """Whether an expression names a column of windows."""
        return any(table.has_window_columns(node) for table in self.tables)

    def time_bounds(
        self, conditions: Sequence[exp.Expr]
    ) -> tuple[list[int], list[int], list[exp.Expr]]:
        """Return bounds of right time - left time, and other conditions: `TimeComparisons`.

        A condition on a column that the time of its row follows by some delay gives wider bounds,
        and is one of the others, too.
        """
        lower, upper, others = TimeComparisons(self._side_of_time).bounds(conditions)
        for side, table in enumerate(self.tables):
            for column, (low, high) in table.delays.items():
                side_of = partial(self._side_of_delayed, side, column)
                lowest, highest, _ = TimeComparisons(side_of).bounds(others)
                if side == 0:
                    low, high = -high, -low
                lower += [each + low for each in lowest]
                upper += [each + high for each in highest]
        return lower, upper, others

    def bounds_times(self, condition: exp.Expr) -> bool:
        """Whether a condition bounds right time - left time."""
        lower, upper, _ = self.time_bounds([condition])
        return bool(lower or upper)

    def _side_of_delayed(
        self, side: int, delayed: str, column: exp.Column
    ) -> tuple[int, int] | None:
        """Return the same as `_side_of_time`, of one side for a column that is before its time."""
        if self.owner(column) != side:
            return self._side_of_time(column)
        table = self.tables[side]
        is_other = table.window_column(column) is not None or table.column(column) != delayed
        return None if is_other else (side, 0)

    def _compares_times(self, node: exp.Expr) -> bool:
        return self.left.window is None and not self.time_bounds([node])[2]

    def _side_of_time(self, column: exp.Column) -> tuple[int, int] | None:
        """Return the side whose time a column is, and the ticks between both."""
        side = self.owner(column)
        table = self.tables[side]
        if table.column(column) == table.time:
            return side, 0
        is_end = table.window is None and table.in_result_windows.window_column(column) == _END
        return (side, 1) if is_end else None


def join_type(join: exp.Join) -> str:
    """Return inner, left, right, full, semi or anti.

    Raises
    ------
    SqlError
        If it is another one.
    """
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if join.args.get("method") or kind not in ("", "inner", "outer", "semi", "anti", "cross"):
        raise sql_error(join, "a join must be INNER, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI")
    if kind in ("semi", "anti"):
        if side not in ("", "left"):
            raise sql_error(join, "SEMI and ANTI joins can return the left side alone")
        return kind
    return side or "inner"
