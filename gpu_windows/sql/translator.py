"""Reads statements over tables: WITH, FROM and queries within, and picks the reader of a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from gpu_windows.expressions.dialect import TableArgument, WindowFunction
from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.chosen import chosen
from gpu_windows.sql.inputs import WINDOW_COLUMNS, Input, Window, check_timed
from gpu_windows.sql.results import Results, Settings, outer
from gpu_windows.sql.said import Said
from gpu_windows.sql.stages import Stages, staged
from gpu_windows.sql.statement import Statement
from gpu_windows.sql.windows import function_arguments


@dataclass(frozen=True)
class Reader:
    """Recognizes and reads one kind of SELECT.

    Parameters
    ----------
    recognizes : callable
        Whether a statement, whose clauses may not be checked yet, is of the kind.
    read : callable
        Returns the results of such a statement; raises `SqlError` for what is not covered.
    """

    recognizes: Callable[[Statement, Translator], bool]
    read: Callable[[Statement, Translator], Results]


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
    readers : sequence of Reader
        The kinds of SELECT: the first that recognizes a statement reads it.
    read_rows : callable
        Reads a statement that no reader recognizes: it chooses rows and columns alone.
    tables : mapping of str to Said of TimedStream
        By name in lower case.
    settings : Settings
    views : mapping of str to View
        The queries of WITH, by name in lower case.
    stages : Stages
        Names of the queries whose results are rows of others.
    """

    readers: Sequence[Reader]
    read_rows: Callable[[Statement, Translator], Results]
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
        statement.check()
        reader = self._reader_of(statement)
        return self.read_rows(statement, self) if reader is None else reader.read(statement, self)

    def _reader_of(self, statement: Statement) -> Reader | None:
        return next((each for each in self.readers if each.recognizes(statement, self)), None)

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
        if isinstance(tree, exp.Subquery):
            return self._plain(tree.this, alias or tree.alias)
        if not isinstance(tree, exp.Select) or tree.args.get("with_"):
            return None
        statement = Statement(tree)
        if tree.args.get("from_") is None or self._reader_of(statement) is not None:
            return None
        statement.check()
        statement.refuse("HAVING goes with GROUP BY: choose rows by WHERE", "having")
        of = self.input(statement.source)
        if isinstance(of, Results):
            return outer(statement, of, statement.where)
        of = of.where(statement.where)
        renamed = replace(of, alias=alias or of.alias)
        if statement.is_star:
            return renamed
        return replace(chosen(statement, of), alias=renamed.alias)

    def _windowed(self, call: WindowFunction, alias: str) -> Input:
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
