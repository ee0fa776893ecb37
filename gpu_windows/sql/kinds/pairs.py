"""GROUP BY, OVER and ROW_NUMBER over a join: its pairs are a stage."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import position_meta
from gpu_windows.sql.kinds.joins import Join
from gpu_windows.sql.syntax.statement import Item, Statement, name_of
from gpu_windows.sql.tables.inputs import free_name, result_column
from gpu_windows.sql.translator import Translator

#: Clauses of the join itself.
_OF_JOIN = ("from_", "joins", "where")
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
    columns = PairColumns(join)
    select = exp.Select()
    for name, value in statement.select.args.items():
        if name not in _OF_JOIN and value is not None:
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


class PairColumns:
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
