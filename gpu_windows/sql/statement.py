"""What a SELECT says, clause by clause, and what of it is not covered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.places import refused

#: Clauses that are read; all others are refused.
_READ = {"expressions", "from_", "where", "group", "having", "joins", "windows", "with_", "order",
         "match"}  # fmt: skip
_INSTEAD = {
    "limit": "LIMIT is not covered: take ROW_NUMBER, or of a batch .result().limit(n), and of an "
    "Arrow table .slice(0, n)",
    "distinct": "SELECT DISTINCT is not covered: group by the columns, in windows",
    "qualify": "QUALIFY is not covered: number rows in a query within, WHERE is around it",
    "laterals": "LATERAL is not covered: add columns before, by with_columns",
    "hint": "hints are not covered: say .options(...)",
}


@dataclass(frozen=True)
class Item:
    """One of the list of SELECT: what it is, and the name that a text gives it."""

    node: exp.Expr
    alias: str | None


def is_star_of(node: exp.Expr, table: str) -> bool:
    """Whether a text means all columns of a table: ``*``, or ``t.*``.

    Raises
    ------
    SqlError
        If they are of another table.
    """
    if isinstance(node, exp.Star):
        return True
    if not (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return False
    if node.table.lower() != table.lower():
        raise refused(node, f"there is no such table here; there is {table}", node.table)
    return True


@dataclass(frozen=True)
class Statement:
    """A SELECT.

    Parameters
    ----------
    select : sqlglot.exp.Select
    """

    select: exp.Select

    def check(self) -> None:
        """Raise `SqlError` for clauses that are not covered."""
        for name, value in self.select.args.items():
            if name in _READ or not value or name == "kind":
                continue
            rule = _INSTEAD.get(name, f"{name.strip('_').upper()} is not covered")
            raise refused(value if isinstance(value, exp.Expr) else self.select, rule)
        for item in self.items:
            star = item.node.this if isinstance(item.node, exp.Column) else item.node
            if isinstance(star, exp.Star) and any(star.args.values()):
                raise refused(star, "* is of all columns: name those that are wanted")
        if self.select.args.get("from_") is None:
            raise refused(self.select, "a query is FROM a table")
        if not self.select.expressions:
            raise refused(self.select, "SELECT names what it gives")

    @property
    def items(self) -> tuple[Item, ...]:
        """The list of SELECT."""
        return tuple(
            Item(each.this, each.alias) if isinstance(each, exp.Alias) else Item(each, None)
            for each in self.select.expressions
        )

    @property
    def is_star(self) -> bool:
        """Whether it is ``SELECT *``."""
        return len(self.items) == 1 and isinstance(self.items[0].node, exp.Star)

    def is_all(self, node: exp.Expr) -> bool:
        """Whether an item means all columns of what is FROM: ``*``, or ``q.*``.

        Raises
        ------
        SqlError
            If they are of another table.
        """
        return is_star_of(node, self.source.alias_or_name)

    def refuse(self, rule: str, *clauses: str) -> None:
        """Raise `SqlError` if it has one of these clauses, by the parser's names."""
        for name in clauses:
            clause = self.select.args.get(name)
            if clause:
                raise refused(clause[0] if isinstance(clause, list) else clause, rule)

    @property
    def source(self) -> exp.Expr:
        """What is FROM."""
        source = self.select.args["from_"].this
        assert isinstance(source, exp.Expr)
        return source

    @property
    def joins(self) -> list[exp.Join]:
        """The tables that are joined."""
        return self.select.args.get("joins") or []

    @property
    def group(self) -> exp.Group | None:
        """GROUP BY."""
        return self.select.args.get("group")

    @property
    def where(self) -> exp.Expr | None:
        """The condition of WHERE."""
        where = self.select.args.get("where")
        return None if where is None else where.this

    @property
    def having(self) -> exp.Expr | None:
        """The condition of HAVING."""
        having = self.select.args.get("having")
        return None if having is None else having.this

    @property
    def order(self) -> list[exp.Ordered]:
        """ORDER BY."""
        order = self.select.args.get("order")
        return [] if order is None else order.expressions

    @property
    def over(self) -> list[exp.Window]:
        """The calls with OVER in the list of SELECT."""
        return [each for item in self.items for each in item.node.find_all(exp.Window)]

    @property
    def has_aggregates(self) -> bool:
        """Whether the list of SELECT has aggregates that are not in a call with OVER."""
        return any(is_aggregate(unit) for item in self.items for unit in units(item.node))

    def window(self, call: exp.Window) -> exp.Window:
        """Return a call with the window that it names (``OVER w``) written out."""
        named = call.args.get("alias")
        if named is None:
            return call
        for each in self.select.args.get("windows") or ():
            if each.name.lower() == named.name.lower():
                parts = {n: each.args.get(n) for n in ("partition_by", "order", "spec")}
                whole = exp.Window(this=call.this.copy(), **_copies(parts))
                whole.parent = call.parent
                return whole
        raise refused(call, "there is no such WINDOW", named.name)


def _copies(parts: dict[str, Any]) -> dict[str, Any]:
    """Return parts without the places that they have."""
    return {
        name: [one.copy() for one in each]
        if isinstance(each, list)
        else None
        if each is None
        else each.copy()
        for name, each in parts.items()
    }


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of a condition that must all hold."""
    if condition is None:
        return []
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def together(conditions: list[exp.Expr]) -> exp.Expr | None:
    """Return the condition that holds where all do; None if there are none."""
    return exp.and_(*conditions, copy=True) if conditions else None


def units(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the aggregates, calls with OVER and columns of an expression, the outermost ones."""
    outermost = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.AggFunc, exp.Column)
    if isinstance(node, outermost) or is_named_aggregate(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from units(child)


#: Aggregates that are no class of the parser's.
NAMED = ("MEAN", "EVERY", "SOME", "STD", "PERCENTILE")


def is_named_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate that is known by name alone."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in NAMED


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate, alone or with FILTER, IGNORE NULLS or RESPECT NULLS."""
    kinds = (exp.AggFunc, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
    return isinstance(node, kinds) or is_named_aggregate(node)
