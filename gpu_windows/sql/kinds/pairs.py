"""Queries over the pairs of a join, which are a stage: GROUP BY, OVER, ROW_NUMBER, more tables."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from gpu_windows.expressions.sql_text import position_meta
from gpu_windows.sql.kinds.joins import Join
from gpu_windows.sql.syntax.statement import Item, Statement, conjunction, conjuncts, name_of
from gpu_windows.sql.tables.inputs import free_name, result_column
from gpu_windows.sql.translator import Translator

#: Clauses of the join itself.
_OF_JOIN = ("from_", "joins", "where")
#: Clauses that a query over more tables has anew, or not: queries of WITH are known.
_NEW = (*_OF_JOIN, "with_")
_STAGE = "pairs"


def takes_pairs(statement: Statement) -> bool:
    """Whether a query aggregates, numbers or sorts the pairs of a join."""
    more = statement.group or statement.having or statement.over or statement.order
    return bool(statement.joins and (more or statement.has_aggregates))


def stage_pairs(statement: Statement, translator: Translator) -> tuple[Statement, Translator]:
    """Return the same query over a table, which has the pairs of the join as rows.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    join = Join(statement, translator)
    columns = _PairColumns(join)
    select = exp.Select()
    for name, value in statement.select.args.items():
        if name not in _NEW and value is not None:
            select.set(name, _copy(value))
    select.set("expressions", [_with_label(item) for item in join.expand_stars()])
    for node in [*select.find_all(exp.Column)]:
        if join.sides.owns(node):
            node.replace(columns.name_of(node))
    results, first = join.results(columns.items), statement.joins[0]
    rows = translator.stages.add(results, _STAGE, _STAGE, first)
    return translator.over(rows, first, select)


def _with_label(item: Item) -> exp.Expr:
    """Return an item of SELECT with the name that it has before columns are renamed."""
    name = name_of(item)
    node = item.node.copy()
    return exp.alias_(node, exp.to_identifier(name, quoted=True)) if name else node


def _copy(value: object) -> object:
    if isinstance(value, list):
        return [_copy(each) for each in value]
    return value.copy() if isinstance(value, exp.Expr) else value


class _PairColumns:
    """The columns of pairs that a query reads, and their names in the stage."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._columns: dict[tuple[int, str], tuple[exp.Column, str]] = {}

    def name_of(self, node: exp.Column) -> exp.Column:
        """Return the column of the stage that holds a column of a side."""
        side = self._join.sides.owner(node)
        key = side, node.name.lower()
        if key not in self._columns:
            used = [name for _, name in self._columns.values()]
            self._columns[key] = node, free_name(key[1], used, separator="", first=0)
        found = result_column(self._columns[key][1])
        found.this.meta.update(position_meta(node))
        return found

    @property
    def items(self) -> tuple[Item, ...]:
        """The list of SELECT of the join: at least one column."""
        if not self._columns:
            left = self._join.sides.left
            self.name_of(exp.column(left.names.names[0], table=left.alias, quoted=True))
        return tuple(Item(node, name) for node, name in self._columns.values())


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
    columns = _PairColumns(join)
    query = statement.select.copy()
    for name in _NEW:
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
    for node in statement.select.expressions:
        if isinstance(node, exp.Star):
            yield from _with_names(join.star_items(join.sides.tables))
            for each in statement.joins[1:]:
                yield exp.Column(this=exp.Star(), table=exp.to_identifier(each.this.alias_or_name))
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            owners = join.sides.with_alias(node.table)
            yield from _with_names(join.star_items(owners)) if owners else [node.copy()]
        else:
            yield node.copy()


def _with_names(items: list[Item]) -> Iterator[exp.Expr]:
    for item in items:
        yield exp.alias_(item.node, exp.to_identifier(item.node.name, quoted=True))


def _rename(query: exp.Select, join: Join, columns: _PairColumns, alias: str) -> None:
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
