"""ROW_NUMBER in a subquery, and the condition on it in the query around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.statement import Statement, conjunction, conjuncts
from gpu_windows.sql.translator import Translator


@dataclass(frozen=True)
class Numbering:
    """A subquery that numbers rows, and how many of them the outer query takes.

    ``inner`` is the subquery and ``within`` its translator, ``call`` the ROW_NUMBER and ``alias``
    its name, ``rest`` the other conditions of the outer query.
    """

    inner: Statement
    within: Translator
    alias: str
    call: exp.Window
    count: int
    rest: exp.Expr | None

    @property
    def partition_by(self) -> list[exp.Expr]:
        """PARTITION BY of the call."""
        return self.inner.window(self.call).args.get("partition_by") or []

    @property
    def orders(self) -> list[exp.Ordered]:
        """ORDER BY of the call.

        Raises
        ------
        SqlError
            If there is none, or nulls are not less than values.
        """
        call = self.inner.window(self.call)
        order = call.args.get("order")
        if order is None:
            raise sql_error(call, "ROW_NUMBER needs ORDER BY")
        for each in order.expressions:
            # Spark's default: nulls first in ascending order, last in descending order
            if bool(each.args.get("nulls_first")) == bool(each.args.get("desc")):
                rule = "nulls sort below any value: NULLS FIRST or LAST against that is not covered"
                raise sql_error(each, rule)
        found: list[exp.Ordered] = order.expressions
        return found

    def in_query(self, inner: Statement, within: Translator) -> Numbering:
        """Return the same numbering in another form of its subquery."""
        _, call = _row_numbers(inner)[self.alias.lower()]
        return replace(self, inner=inner, within=within, call=call)


def find_numbering(statement: Statement, translator: Translator) -> Numbering | None:
    """Return the numbering whose first rows a query takes; None if it takes none."""
    found = translator.query_in(statement.source)
    if found is None or statement.where is None:
        return None
    inner, within = found
    numbers = _row_numbers(inner)
    for index, each in enumerate(parts := conjuncts(statement.where)):
        for name, (alias, call) in numbers.items():
            count = _count_of(each, name)
            if count is not None:
                is_whole = isinstance(each, exp.LT | exp.LTE | exp.GT | exp.GTE) or (
                    count == 1 and not isinstance(each, exp.Between)
                )
                others = [*parts[:index], *parts[index + 1 :]]
                rest = conjunction(others if is_whole else parts)
                return Numbering(inner, within, alias, call, count, rest)
    return None


def _row_numbers(inner: Statement) -> dict[str, tuple[str, exp.Window]]:
    """Return the names and calls of ROW_NUMBER in the list of SELECT, by name in lower case."""
    return {
        item.alias.lower(): (item.alias, item.node)
        for item in inner.items
        if item.alias
        and isinstance(item.node, exp.Window)
        and isinstance(item.node.this, exp.RowNumber)
    }


def _count_of(condition: exp.Expr, name: str) -> int | None:
    """Return the greatest number of ``name <= 3``, ``= 2``, ``IN (1, 2)``, ``BETWEEN 2 AND 4``."""
    if condition.args.get("negate"):
        return None
    among = [condition.args.get("high")] if isinstance(condition, exp.Between) else []
    among = condition.expressions if isinstance(condition, exp.In) else among
    if among and isinstance(condition.this, exp.Column) and condition.this.name.lower() == name:
        numbers = [int(e.name) for e in among if isinstance(e, exp.Literal) and e.is_int]
        return max(numbers) if len(numbers) == len(among) and max(numbers) > 0 else None
    if not isinstance(condition, exp.Binary):
        return None
    kind: Any = type(condition)
    one, other = condition.this, condition.expression
    if isinstance(one, exp.Literal):
        flipped: dict[Any, Any] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}
        one, other, kind = other, one, flipped.get(kind)
    is_number = isinstance(one, exp.Column) and one.name.lower() == name
    if not is_number or not (isinstance(other, exp.Literal) and other.is_int):
        return None
    number = int(other.name)
    if kind is exp.EQ and number < 1:
        return None
    return {exp.EQ: number, exp.LTE: number, exp.LT: number - 1}.get(kind)


def directions_of(orders: list[exp.Ordered]) -> bool | list[bool]:
    """Return whether columns are descending: one value if they are alike."""
    down = [bool(each.args.get("desc")) for each in orders]
    return down[0] if len({*down}) == 1 else down
