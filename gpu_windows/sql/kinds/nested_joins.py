"""Joins of more than two tables: the pairs of the first two are a stage, which joins the next."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from gpu_windows.sql.kinds.joins import Join
from gpu_windows.sql.kinds.pairs import PairColumns
from gpu_windows.sql.syntax.statement import Item, Statement, conjunction, conjuncts
from gpu_windows.sql.translator import Translator

_STAGE = "pairs"
#: Clauses that the query over the pairs has anew, or not: queries of WITH are known.
_OF_JOINS = ("from_", "joins", "where", "with_")


def nest_first_join(statement: Statement, translator: Translator) -> tuple[Statement, Translator]:
    """Return the same query with a table in the place of the first two, which has their pairs.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    first, *later = statement.joins
    pushed, others = _split_where(statement, translator)
    inner = exp.Select(expressions=[exp.Star()], from_=exp.From(this=statement.source))
    inner.set("joins", [first])
    inner.set("where", pushed and exp.Where(this=pushed))
    join = Join(Statement(inner), translator)
    alias = f"{join.sides.left.alias} JOIN {join.sides.right.alias}"
    columns = PairColumns(join)
    query = statement.select.copy()
    for name in _OF_JOINS:
        query.set(name, None)
    query.set("expressions", [*_without_stars(statement, join)])
    query.set("joins", [each.copy() for each in later])
    query.set("where", others and exp.Where(this=others.copy()))
    _rename(query, join, columns, alias)
    rows = translator.stages.add(join.results(columns.items), _STAGE, alias, first)
    return translator.over(rows, first, query)


def _split_where(
    statement: Statement, translator: Translator
) -> tuple[exp.Expr | None, exp.Expr | None]:
    """Return the condition on the first two tables alone, and the rest of WHERE.

    All of it is the rest where a later join gives rows without these tables.
    """
    first, *later = statement.joins
    conditions = conjuncts(statement.where)
    if any((each.side or "").lower() not in ("", "left") for each in later):
        return None, conjunction(conditions)
    two = [statement.source, first.this]
    own = _column_names(two, translator) or set()
    other = _column_names([each.this for each in later], translator)
    aliases = {each.alias_or_name.lower() for each in two}

    def is_of_two(column: exp.Column) -> bool:
        name = column.name.lower()
        if column.table:
            return column.table.lower() in aliases
        return other is not None and name in own and name not in other

    columns = [[*each.find_all(exp.Column)] for each in conditions]
    is_pushed = [bool(each) and all(map(is_of_two, each)) for each in columns]
    pushed = [each.copy() for each, yes in zip(conditions, is_pushed, strict=True) if yes]
    others = [each for each, yes in zip(conditions, is_pushed, strict=True) if not yes]
    return conjunction(pushed), conjunction(others)


def _column_names(sources: list[exp.Expr], translator: Translator) -> set[str] | None:
    """Return names of columns of tables, in lower case; None if one is not a table by its name."""
    found = set()
    for source in sources:
        is_name = isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
        name = (
            source.name.lower() if is_name and source.name.lower() not in translator.views else ""
        )
        table = translator.bound.get(name) or translator.tables.get(name)
        if table is None:
            return None
        found |= {each.lower() for each in table.all_names}
    return found


def _without_stars(statement: Statement, join: Join) -> Iterator[exp.Expr]:
    """Yield the list of SELECT, with stars over the first two tables expanded."""
    sides = join.sides.left, join.sides.right
    for node in statement.select.expressions:
        if isinstance(node, exp.Star):
            yield from _with_names(join.star_items(sides))
            for each in statement.joins[1:]:
                yield exp.Column(this=exp.Star(), table=exp.to_identifier(each.this.alias_or_name))
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            owners = [side for side in sides if side.alias.lower() == node.table.lower()]
            yield from _with_names(join.star_items(owners)) if owners else [node.copy()]
        else:
            yield node.copy()


def _with_names(items: list[Item]) -> Iterator[exp.Expr]:
    for item in items:
        yield exp.alias_(item.node, exp.to_identifier(item.node.name, quoted=True))


def _rename(query: exp.Select, join: Join, columns: PairColumns, alias: str) -> None:
    """Replace columns of the first two tables by those of their pairs."""
    nodes = [node for part in _parts(query) for node in part.find_all(exp.Column)]
    own = [node for node in nodes if join.sides.owns(node)]
    for node in own:
        if not node.table:  # its name is that of the pairs, so that others may have it, too
            columns.name_of(node)
    for node in own:
        if node.table:
            renamed = columns.name_of(node)
            renamed.set("table", exp.to_identifier(alias, quoted=True))
            node.replace(renamed)


def _parts(query: exp.Select) -> Iterator[exp.Expr]:
    """Yield the clauses of a query that have columns, but not the tables that it joins."""
    for name, value in query.args.items():
        parts = value if isinstance(value, list) else [value]
        if name == "joins":
            parts = [part for each in parts for part in (each.args.get("on"), _version(each))]
        yield from (each for each in parts if isinstance(each, exp.Expr))


def _version(join: exp.Join) -> exp.Expr | None:
    version = join.this.args.get("version")
    return version if isinstance(version, exp.Expr) else None
