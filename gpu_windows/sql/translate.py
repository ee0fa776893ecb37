"""Which kind of query a SELECT is, and what it is FROM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from gpu_windows.expressions.dialect import TableArgument, WindowFunction
from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.aggregated import Aggregated
from gpu_windows.sql.aggregates import is_aggregate
from gpu_windows.sql.chosen import chosen
from gpu_windows.sql.inputs import WINDOW_COLUMNS, Input, Window, check_timed
from gpu_windows.sql.results import Results, Settings, outer
from gpu_windows.sql.said import Said
from gpu_windows.sql.stages import Stages, staged
from gpu_windows.sql.statement import Statement

_NO_WINDOWS = (
    "a query here has windows, OVER, a numbering of rows or a join in time; what has none is "
    "Spark's own: spark.sql"
)


def translated(tree: exp.Expr, tables: Mapping[str, Said], settings: Settings) -> Results:
    """Return the results of a statement over tables, by their names in lower case.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    return Translator(tables, settings, stages=Stages()).results(tree)


@dataclass(frozen=True)
class View:
    """A query of WITH.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
    views : mapping of str to View
        What stood before it: it sees these.
    """

    tree: exp.Expr
    views: Mapping[str, View]


@dataclass(frozen=True)
class Translator:
    """Reads statements over tables.

    Parameters
    ----------
    tables : mapping of str to Said of TimedStream
        By name in lower case.
    settings : Settings
    views : mapping of str to View
        The queries of WITH, by name in lower case.
    stages : Stages
        Names of the queries whose results are rows of others.
    """

    tables: Mapping[str, Said]
    settings: Settings
    views: Mapping[str, View] = field(default_factory=dict)
    stages: Stages = field(default_factory=Stages)

    def results(self, tree: exp.Expr) -> Results:
        """Return the results of a statement; see `translated`."""
        if isinstance(tree, exp.Subquery) and not tree.args.get("joins"):
            return self.results(tree.this)
        if not isinstance(tree, exp.Select):
            raise refused(tree, "a query is one SELECT")
        with placed(tree):
            return self.scoped(tree)._of(Statement(tree))

    def scoped(self, tree: exp.Select) -> Translator:
        """Return what reads a statement, which sees the queries of its own WITH, too."""
        with_ = tree.args.get("with_")
        if with_ is None:
            return self
        if with_.args.get("recursive"):
            raise refused(with_, "WITH RECURSIVE is not covered")
        views, own = self.views, set[str]()
        for each in with_.expressions:
            _check_alias(each)
            name = each.alias.lower()
            if name in own:
                raise refused(each.args["alias"], "queries of WITH have different names", name)
            own.add(name)
            views = {**views, name: View(each.this, views)}
        return replace(self, views=views)

    def query_in(self, node: exp.Expr) -> tuple[Statement, Translator] | None:
        """Return the query that stands in FROM, and what reads it; None if it is no SELECT."""
        reader, tree = self, node
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            view = self.views.get(node.this.name.lower())
            if view is None:
                return None
            reader, tree = replace(self, views=view.views), view.tree
        while isinstance(tree, exp.Subquery) and not tree.args.get("joins"):
            tree = tree.this
        return (Statement(tree), reader.scoped(tree)) if isinstance(tree, exp.Select) else None

    def _of(self, statement: Statement) -> Results:
        from gpu_windows.sql.joins import joined
        from gpu_windows.sql.match import matched
        from gpu_windows.sql.over import over, sorted_by_time
        from gpu_windows.sql.top import top, top_count
        from gpu_windows.sql.window_rows import rows_in_windows

        statement.check()
        if statement.select.args.get("match"):
            return matched(statement, self)
        if statement.joins:
            return joined(statement, self)
        if top_count(statement, self) is not None:
            return top(statement, self)
        has_aggregates = any(
            is_aggregate(each) for item in statement.items for each in _outermost(item.node)
        )
        of = self.input(statement.source)
        if isinstance(of, Results):
            if not (statement.group or has_aggregates or statement.over or statement.order):
                return outer(statement, of, statement.where)
            of = self._staged(of, statement.source)
        if statement.group is not None or (has_aggregates and not statement.over):
            return Aggregated(statement, of, self.settings).results()
        if statement.over:
            statement.refuse("rows with OVER come in order of time: leave ORDER BY out", "order")
            return over(statement, of, self.settings)
        if statement.order:
            return sorted_by_time(statement, of, self.settings)
        if of.window is not None:
            return rows_in_windows(statement, of, self.settings)
        raise refused(statement.select, _NO_WINDOWS)

    # ---- FROM

    def input(self, node: exp.Expr) -> Input | Results:
        """Return a table of FROM, or the results of a query there."""
        _check_alias(node)
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if not isinstance(node, exp.Table):
            raise refused(node, "FROM takes tables, window functions and queries")
        for name in ("pivots", "sample", "version", "when", "changes", "hints"):
            if node.args.get(name):
                raise refused(node, f"{name.upper()} of a table is not covered")
        call = _called(node)
        if call is not None:
            return self._windowed(call, node.alias)
        if not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            raise refused(node, f"a table is one of {', '.join(self.tables)}")
        name = node.this.name.lower()
        if name in self.views:
            view = self.views[name]
            reader = replace(self, views=view.views)
            return reader._query(view.tree, node.alias or node.this.name)
        if name not in self.tables:
            known = ", ".join(each.text for each in self.tables.values()) or "none"
            rule = f"there is no such table; there are {known}, by the names that sql is given"
            raise refused(node, rule)
        self.stages.read(self.tables[name].value.source, node)
        return Input(node.alias or node.this.name, self.tables[name])

    def table(self, node: exp.Expr) -> Input:
        """Return a table of FROM; results of a query become rows, which have their time.

        Raises
        ------
        SqlError
            If they have none, or are used twice.
        """
        found = self.input(node)
        return self._staged(found, node) if isinstance(found, Results) else found

    def _staged(self, results: Results, node: exp.Expr) -> Input:
        alias = node.alias
        if isinstance(node, exp.Table):
            name = self.stages.of_view(node.this.name, node)
            return staged(results, name, alias or node.this.name, node)
        return staged(results, self.stages.free(alias), alias, node)

    def _subquery(self, node: exp.Subquery) -> Input | Results:
        return self._query(node.this, node.alias)

    def _query(self, tree: exp.Expr, alias: str) -> Input | Results:
        """Return the rows of a query that has no windows of its own, or the results of one."""
        plain = self._plain(tree, alias)
        return self.results(tree) if plain is None else plain

    def _plain(self, tree: exp.Expr, alias: str) -> Input | Results | None:
        """Return rows, or results, that a query within only filters, and gives columns."""
        from gpu_windows.sql.top import top_count

        if isinstance(tree, exp.Subquery):
            return self._plain(tree.this, alias or tree.alias)
        if not isinstance(tree, exp.Select) or tree.args.get("with_"):
            return None
        statement = Statement(tree)
        if statement.group or statement.joins or statement.over or statement.order:
            return None
        if tree.args.get("match"):
            return None
        outermost = (each for item in statement.items for each in _outermost(item.node))
        if any(map(is_aggregate, outermost)) or statement.select.args.get("from_") is None:
            return None
        statement.check()
        statement.refuse("HAVING goes with GROUP BY: choose rows by WHERE", "having")
        if top_count(statement, self) is not None:
            return None
        of = self.input(statement.source)
        if isinstance(of, Results):
            return outer(statement, of, statement.where)
        of = of.where(statement.where)
        renamed = replace(of, alias=alias or of.alias)
        if statement.is_star:
            return renamed
        return replace(chosen(statement, of), alias=renamed.alias)

    def _windowed(self, call: WindowFunction, alias: str) -> Input:
        from gpu_windows.sql.windows import function_arguments

        table, time, assigner = function_arguments(call)
        of = self._argument(table)
        if of.window is not None:
            raise refused(call, "rows are in windows once")
        clashes = [name for name in WINDOW_COLUMNS[:2] if of.names.has(exp.column(name))]
        if clashes and of.is_results:
            rule = "the window function gives columns of this name, too: say AS in the query within"
            raise refused(call, rule, clashes[0])
        check_timed(of, time, of.column(time))
        by = table.args.get("partition_by")
        if by is None:
            keys: tuple[str, ...] | None = () if call.this == "SESSION" else None
        elif call.this != "SESSION":
            raise refused(call, "PARTITION BY goes with SESSION")
        else:
            wrong = [each for each in by if not isinstance(each, exp.Column)]
            if wrong:
                raise refused(wrong[0], "SESSION is PARTITION BY columns")
            keys = tuple(map(of.column, by))
        return replace(of, alias=alias or of.alias, window=Window(assigner, keys))

    def _argument(self, table: TableArgument) -> Input:
        node = table.this
        if isinstance(node, exp.Select):
            node = exp.Subquery(this=node)
        return self.table(node)


def _check_alias(node: exp.Expr) -> None:
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        raise refused(alias.columns[0], "columns get names in the list of SELECT: say AS there")


def _called(node: exp.Table) -> WindowFunction | None:
    """Return the window function of FROM, if it is one."""
    call = node.this
    is_table = isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE"
    if is_table and len(call.expressions) == 1:
        call = call.expressions[0]
    if isinstance(call, WindowFunction):
        return call
    if isinstance(call, exp.Func):
        raise refused(node, "the functions of FROM are TUMBLE, HOP, CUMULATE and SESSION")
    return None


def _outermost(node: exp.Expr) -> Any:
    from gpu_windows.sql.statement import units

    return units(node)
