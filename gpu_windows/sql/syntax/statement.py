"""A SELECT by its clauses, and checks for clauses that are not covered."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error

#: Clauses that are read; all others are refused.
_READ = {"expressions", "from_", "where", "group", "having", "joins", "windows", "with_", "order",
         "match"}  # fmt: skip
_INSTEAD = {
    "limit": "LIMIT is not covered: use ROW_NUMBER, or in batch .result().limit(n), and for an "
    "Arrow table .slice(0, n)",
    "distinct": "SELECT DISTINCT is not covered: group by the columns, in windows",
    "qualify": "QUALIFY is not covered: number rows in a subquery, and filter with WHERE around it",
    "laterals": "LATERAL is not covered: add columns before, using with_columns",
    "hint": "hints are not covered: use .options(...)",
}


@dataclass(frozen=True)
class Item:
    """An item of the list of SELECT: its expression, and its name in AS."""

    node: exp.Expr
    alias: str | None


def name_of(item: Item) -> str:
    """Return the name of an item of SELECT: that of AS, or of the column; else an empty string."""
    node = item.node.unnest()
    return item.alias or (node.name if isinstance(node, exp.Column) else "")


def names_of(items: Iterable[Item]) -> tuple[str, ...]:
    """Return the names of a list of SELECT without stars, made unique as Flink does.

    Expressions without AS are ``EXPR$2`` by their index, the second ``id`` is ``id0``.
    """
    names: dict[str, None] = {}
    for index, item in enumerate(items):
        wanted = name_of(item) or f"EXPR${index}"
        others = (f"{wanted}{number}" for number in itertools.count())
        free = (each for each in itertools.chain([wanted], others) if each not in names)
        names[next(free)] = None
    return tuple(names)


def is_any_star(node: exp.Expr) -> bool:
    """Whether a node is ``*`` or ``t.*`` of any table."""
    return isinstance(node.this if isinstance(node, exp.Column) else node, exp.Star)


def is_star(node: exp.Expr, table: str) -> bool:
    """Whether a node stands for all columns of a table: ``*``, or ``t.*``.

    Raises
    ------
    SqlError
        If it names another table.
    """
    if isinstance(node, exp.Star):
        return True
    if not (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return False
    if node.table.lower() != table.lower():
        raise sql_error(node, f"there is no such table here; there is {table}", node.table)
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
            raise sql_error(value if isinstance(value, exp.Expr) else self.select, rule)
        for item in self.items:
            star = item.node.this if isinstance(item.node, exp.Column) else item.node
            if isinstance(star, exp.Star) and any(star.args.values()):
                raise sql_error(star, "* with EXCEPT or REPLACE is not covered: name the columns")
        if self.select.args.get("from_") is None:
            raise sql_error(self.select, "a query needs FROM")
        if not self.select.expressions:
            raise sql_error(self.select, "SELECT needs a list of columns")

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

    def refuse(self, rule: str, *clauses: str) -> None:
        """Raise `SqlError` if it has one of the clauses, named as in the parser."""
        for name in clauses:
            clause = self.select.args.get(name)
            if clause:
                raise sql_error(clause[0] if isinstance(clause, list) else clause, rule)

    @property
    def source(self) -> exp.Expr:
        """The first table of FROM."""
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
        return any(is_aggregate(part) for item in self.items for part in outermost_parts(item.node))

    def window(self, call: exp.Window) -> exp.Window:
        """Return a call with its named window (``OVER w``) replaced by the definition."""
        reference = call.args.get("alias")
        if reference is None:
            return call
        for each in self.select.args.get("windows") or ():
            if each.name.lower() == reference.name.lower():
                definition = each.copy().args
                parts = {name: definition.get(name) for name in ("partition_by", "order", "spec")}
                whole = exp.Window(this=call.this.copy(), **parts)
                whole.parent = call.parent
                return whole
        raise sql_error(call, "there is no WINDOW of this name", reference.name)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the operands of AND of a condition."""
    if condition is None:
        return []
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def conjunction(conditions: list[exp.Expr]) -> exp.Expr | None:
    """Return conditions connected by AND; None for an empty list."""
    return exp.and_(*conditions, copy=True) if conditions else None


def outermost_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outermost aggregates, calls with OVER and columns of an expression."""
    outermost = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.AggFunc, exp.Column)
    if isinstance(node, outermost) or is_named_aggregate(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from outermost_parts(child)


def is_processing_time(node: exp.Expr) -> bool:
    """Whether it is ``PROCTIME()``."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME"


#: Aggregates without a class in the parser.
AGGREGATES_BY_NAME = ("MEAN", "EVERY", "SOME", "STD", "PERCENTILE")


#: Metadata of a call: the user's function from names of columns to an aggregate.
USER_AGGREGATE = "user_aggregate"


def is_named_aggregate(node: exp.Expr) -> bool:
    """Whether it is a call of one of `AGGREGATES_BY_NAME`, or of the user's functions."""
    if not isinstance(node, exp.Anonymous):
        return False
    return node.name.upper() in AGGREGATES_BY_NAME or USER_AGGREGATE in node.meta


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate, alone or with FILTER, IGNORE NULLS or RESPECT NULLS."""
    kinds = (exp.AggFunc, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
    return isinstance(node, kinds) or is_named_aggregate(node)
