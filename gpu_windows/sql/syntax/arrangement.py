"""DISTINCT, ORDER BY, LIMIT, OFFSET and FETCH of a query or a UNION: they need all results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from sqlglot import exp

from gpu_windows.expressions.sql_text import canonical_text, sql_error
from gpu_windows.sql.syntax.statement import Statement, is_any_star, name_of, names_of

_Q = TypeVar("_Q", bound=exp.Query)
#: The clauses, as the parser calls them.
_CLAUSES = ("distinct", "order", "limit", "offset")


@dataclass(frozen=True)
class Sorting:
    """A part of ORDER BY.

    Parameters
    ----------
    node : sqlglot.exp.Ordered
    column : str or int
        The name of a result, or its position from 1.
    """

    node: exp.Ordered
    column: str | int


@dataclass(frozen=True)
class Clauses:
    """The clauses of a query that depend on all its results.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        The first of them, for the position of errors.
    distinct : bool
    order : tuple of Sorting
    limit : int, optional
    offset : int
    added : tuple of str
        Names of results that were added for ORDER BY alone.
    """

    node: exp.Expr
    distinct: bool = False
    order: tuple[Sorting, ...] = ()
    limit: int | None = None
    offset: int = 0
    added: tuple[str, ...] = field(default=())


def has_clauses(tree: exp.Expr, *, sorts: bool = True) -> bool:
    """Whether a query has such clauses. ``sorts``: whether ORDER BY is one."""
    return any(tree.args.get(name) for name in _clauses_of(tree) if sorts or name != "order")


def _clauses_of(tree: exp.Expr) -> tuple[str, ...]:
    """Return the clauses that a query may have; DISTINCT of UNION is not one."""
    return _CLAUSES if isinstance(tree, exp.Select) else _CLAUSES[1:]


def split_clauses(tree: _Q) -> tuple[_Q, Clauses]:
    """Return a query without these clauses, with what ORDER BY needs in SELECT, and the clauses.

    Raises
    ------
    SqlError
        If a clause is not covered.
    """
    clauses = _clauses_of(tree)
    node = next(tree.args[name] for name in clauses if tree.args.get(name))
    distinct = tree.args.get("distinct") if isinstance(tree, exp.Select) else None
    if distinct is not None and distinct.args.get("on"):
        raise sql_error(tree, "DISTINCT ON is not covered: ROW_NUMBER, and WHERE number = 1")
    limit, offset = _limit_of(tree), _number_of(tree.args.get("offset"), "OFFSET")
    plain = tree.copy()
    for name in clauses:
        plain.set(name, None)
    order, added = _order_of(tree, plain, is_distinct=distinct is not None)
    place = tree if node is distinct else node
    return plain, Clauses(place, distinct is not None, order, limit, offset or 0, added)


def _limit_of(tree: exp.Expr) -> int | None:
    node = tree.args.get("limit")
    if not isinstance(node, exp.Fetch):
        return _number_of(node, "LIMIT")
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise sql_error(node, "FETCH takes a number of rows: FETCH NEXT 3 ROWS ONLY")
    return 1 if node.args.get("count") is None else _literal(node, node.args["count"], "FETCH")


def _number_of(node: exp.Expr | None, clause: str) -> int | None:
    """Return the number of LIMIT or OFFSET; None for LIMIT ALL."""
    if node is None:
        return None
    if node.args.get("expressions"):
        raise sql_error(node, f"{clause} BY is not covered: ROW_NUMBER, and WHERE number <= N")
    value = node.expression
    if isinstance(value, exp.Var | exp.Column) and value.name.upper() == "ALL":
        return None
    return _literal(node, value, clause)


def _literal(node: exp.Expr, value: exp.Expr, clause: str) -> int:
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise sql_error(node, f"{clause} takes a whole number, such as 10")
    return int(value.name)


def _order_of(
    tree: exp.Query, plain: exp.Query, *, is_distinct: bool
) -> tuple[tuple[Sorting, ...], tuple[str, ...]]:
    """Return ORDER BY over names of results; other expressions are added to SELECT."""
    order = tree.args.get("order")
    if order is None:
        return (), ()
    select = plain if isinstance(plain, exp.Select) else None
    items = {} if select is None else _items_by_name(select)
    found, added = list[Sorting](), list[str]()
    for each in order.expressions:
        node = each.this.unnest()
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            found.append(Sorting(each, int(node.name)))
            continue
        is_name = isinstance(node, exp.Column) and not node.table
        has_star = select is not None and select.is_star and isinstance(node, exp.Column)
        if has_star or (is_name and (select is None or node.name.lower() in items)):
            found.append(Sorting(each, node.name))
            continue
        if select is None:
            raise sql_error(each, "ORDER BY of this query takes names and positions of results")
        text = canonical_text(node)
        same = [name for name, item in items.items() if canonical_text(item) == text]
        if same:
            found.append(Sorting(each, same[0]))
            continue
        if is_distinct:
            raise sql_error(each, "ORDER BY with DISTINCT takes what is in the list of SELECT")
        name = _free_name(items, added)
        added.append(name)
        select.append("expressions", exp.alias_(_over_rows(node, items), name, quoted=True))
        found.append(Sorting(each, name))
    return tuple(found), tuple(added)


def _items_by_name(select: exp.Select) -> dict[str, exp.Expr]:
    """Return the expressions of SELECT by the names of results, in lower case."""
    items = Statement(select).items
    stars = any(is_any_star(each.node) for each in items)
    names = map(name_of, items) if stars else names_of(items)
    pairs = [*zip(names, items, strict=True)]
    return {name.lower(): item.node for name, item in reversed(pairs) if name not in ("", "*")}


def _over_rows(node: exp.Expr, items: dict[str, exp.Expr]) -> exp.Expr:
    """Return an expression with names of results replaced by what they stand for."""

    def visit(each: exp.Expr) -> exp.Expr:
        is_name = isinstance(each, exp.Column) and not each.table
        item = items.get(each.name.lower()) if is_name else None
        return each if item is None else exp.Paren(this=item.copy())

    return node.copy().transform(visit)


def _free_name(items: dict[str, exp.Expr], added: list[str]) -> str:
    used = {*items, *added}
    numbered = (f"sql_order_{i}" for i in range(len(used) + 1))
    return next(each for each in numbered if each not in used)


# ---- UNION

_INSTEAD_OF_SETS = {
    exp.Intersect: "INTERSECT is not covered: a SEMI join in windows",
    exp.Except: "EXCEPT is not covered: an ANTI join in windows",
}


def selects_of_union(tree: exp.SetOperation) -> list[exp.Expr]:
    """Return the queries of a UNION ALL or UNION, in order.

    Raises
    ------
    SqlError
        If it is another operation on sets, or names columns.
    """
    if not isinstance(tree, exp.Union):
        raise sql_error(tree.expression, _INSTEAD_OF_SETS[type(tree)], type(tree).__name__.upper())
    for name in ("by_name", "side", "kind", "on"):
        if tree.args.get(name):
            raise sql_error(tree.expression, "UNION ALL takes columns by their position")
    left = tree.this
    is_part = isinstance(left, exp.Union) and not (left.args.get("with_") or has_clauses(left))
    if is_part and (tree.args.get("distinct") or not left.args.get("distinct")):
        return [*selects_of_union(left), tree.expression]
    return [left, tree.expression]
