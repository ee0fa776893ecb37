"""IN, EXISTS and their negations over a subquery in WHERE: SEMI and ANTI joins."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.statement import Statement, conjunction, conjuncts
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.sql.translator import Translator

#: Clauses of the subquery that can be read; others change which rows it has.
_READ = ("expressions", "from_", "where", "distinct", "kind")
_RIGHT = "sql_in"


@dataclass(frozen=True)
class _Predicate:
    """IN or EXISTS with a subquery.

    ``values`` are the values before IN, none for EXISTS.
    """

    node: exp.Expr
    select: exp.Select
    values: tuple[exp.Expr, ...]
    is_in: bool
    negated: bool


def has_subquery(statement: Statement) -> bool:
    """Whether a part of WHERE is IN or EXISTS with a subquery."""
    return any(_predicate(each) is not None for each in conjuncts(statement.where))


def join_subquery(statement: Statement, translator: Translator) -> tuple[Statement, Translator]:
    """Return the same query with a join in the place of the subquery that filters its rows.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    parts = conjuncts(statement.where)
    found = [each for each in map(_predicate, parts) if each is not None]
    if len(found) > 1 or statement.joins:
        rule = "a query takes one IN or EXISTS and no JOIN: put the other in a subquery of FROM"
        raise sql_error(found[-1].node, rule)
    predicate = found[0]
    left = translator.table(statement.source)
    right = _right_table(predicate, left, translator)
    tables = (left, statement.source), (right, predicate.select)
    (left_table, right_table), bound = translator.bind(*tables)
    query = statement.select.copy()
    others = [each for each in parts if _predicate(each) is None]
    query.set("where", exp.Where(this=conjunction(others)) if others else None)
    _qualify(query, left)
    on = _condition(predicate, left, right)
    kind = "ANTI" if predicate.negated else "SEMI"
    query.set("from_", exp.From(this=left_table))
    query.set("joins", [exp.Join(this=right_table, side="LEFT", kind=kind, on=on)])
    return Statement(query), bound


def _predicate(node: exp.Expr) -> _Predicate | None:
    whole, negated = node, False
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    query = node.args.get("query") if isinstance(node, exp.In) else None
    if isinstance(node, exp.Exists):
        query = node.this
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return None
    values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    is_in = isinstance(node, exp.In)
    return _Predicate(whole, query, tuple(values) if is_in else (), is_in, negated)


def _right_table(predicate: _Predicate, left: Input, translator: Translator) -> Input:
    """Return the table of the subquery, under a name that the outer table does not have."""
    select = predicate.select
    for name, value in select.args.items():
        if value and name not in _READ:
            rule = "a subquery of IN or EXISTS takes one table and WHERE: put more into its FROM"
            raise sql_error(value if isinstance(value, exp.Expr) else select, rule)
    if Statement(select).has_aggregates:
        rule = "a subquery of IN or EXISTS has no aggregates: aggregate in a subquery of its FROM"
        raise sql_error(select, rule)
    source = select.args.get("from_")
    if source is None:
        raise sql_error(select, "a subquery needs FROM")
    table = translator.table(source.this)
    if table.alias and table.alias.lower() != left.alias.lower():
        return table
    for column in select.find_all(exp.Column):  # a name of the subquery hides that around it
        if column.table and column.table.lower() == table.alias.lower():
            column.set("table", exp.to_identifier(_RIGHT, quoted=True))
    return replace(table, alias=_RIGHT)


def _condition(predicate: _Predicate, left: Input, right: Input) -> exp.Expr | None:
    """Return the condition of a pair of rows."""
    select = predicate.select
    parts = [each.copy() for each in conjuncts(Statement(select).where)]
    for part in parts:
        _qualify(part, right, left)
    if not predicate.is_in:
        return conjunction(parts)
    items = [each.this if isinstance(each, exp.Alias) else each for each in select.expressions]
    if len(items) != len(predicate.values) or any(isinstance(each, exp.Star) for each in items):
        rule = "the subquery of IN selects one column for each value before it"
        raise sql_error(predicate.node, rule)
    if predicate.negated and len(items) > 1:
        raise sql_error(predicate.node, "NOT IN takes one value: use NOT EXISTS")
    for value, item in zip(predicate.values, items, strict=True):
        one, other = _qualify(value.copy(), left), _qualify(item.copy(), right, left)
        same: exp.Expr = exp.EQ(this=one, expression=other)
        if predicate.negated:  # true for a null: then NOT IN is not true
            nulls = [exp.Is(this=each.copy(), expression=exp.Null()) for each in (one, other)]
            same = exp.Paren(this=exp.or_(same, *nulls))
        parts.append(same)
    return conjunction(parts)


def _qualify(node: exp.Expr, *tables: Input) -> exp.Expr:
    """Write the table before columns: the first that has the name; return the node."""
    for column in [*node.find_all(exp.Column)]:
        if column.table or isinstance(column.this, exp.Star):
            continue
        owner = next((each for each in tables if each.owns(column)), None)
        if owner is not None:
            column.set("table", exp.to_identifier(owner.alias, quoted=True))
    return node
