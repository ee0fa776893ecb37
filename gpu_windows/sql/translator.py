"""Translates statements over tables: resolves WITH and FROM, and picks the reader of a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from gpu_windows.errors import did_you_mean
from gpu_windows.expressions.dialect import WindowFunction
from gpu_windows.expressions.sql_text import errors_at, position_meta, sql_error
from gpu_windows.sql.syntax.arrangement import (
    Clauses,
    has_clauses,
    selects_of_union,
    split_clauses,
)
from gpu_windows.sql.syntax.statement import Statement, is_processing_time, name_of
from gpu_windows.sql.syntax.window_functions import (
    check_without_gaps,
    make_assigner,
    read_window_function,
)
from gpu_windows.sql.tables.arrangement import arrange
from gpu_windows.sql.tables.columns import project
from gpu_windows.sql.tables.inputs import WINDOW_BOUNDS, Input, Window, check_timed
from gpu_windows.sql.tables.processing_time import in_time_of
from gpu_windows.sql.tables.results import Results, Settings, select_from_results
from gpu_windows.sql.tables.stages import Stages
from gpu_windows.sql.tables.unions import Branch, constant_rows, unite


@dataclass(frozen=True)
class Reader:
    """Recognizes and reads one kind of SELECT.

    Parameters
    ----------
    recognizes : callable
        Whether a statement, whose clauses may not be checked yet, is of the kind.
    read : callable
        Returns the results of such a statement, or another query with the same results, and its
        translator; raises `SqlError` for what is not covered.
    """

    recognizes: Callable[[Statement, Translator], bool]
    read: Callable[[Statement, Translator], Results | tuple[Statement, Translator]]


@dataclass(frozen=True)
class View:
    """A query of WITH.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
    views : mapping of str to View
        The queries of WITH before it, which it can name.
    """

    tree: exp.Expr
    views: Mapping[str, View]


@dataclass(frozen=True)
class Translator:
    """Translates statements over tables to results of the API.

    Parameters
    ----------
    readers : sequence of Reader
        The kinds of SELECT: the first that recognizes a statement reads it.
    read_rows : callable
        Reads a statement that no reader recognizes: it selects columns and filters rows alone.
    read_in_time : callable
        Reads such a statement over a stream that has ORDER BY.
    tables : mapping of str to Input
        By name in lower case.
    settings : Settings
    views : mapping of str to View
        The queries of WITH, by name in lower case.
    stages : Stages
        The subqueries whose results are rows of an outer query.
    bound : mapping of str to Input
        Tables that a reader has made of parts of a statement, by the names that it gave to them.
    for_stage : bool
        Whether results become the rows of an outer query, so that they must not change later.
    """

    readers: Sequence[Reader]
    read_rows: Callable[[Statement, Input | Results, Translator], Results]
    read_in_time: Callable[[Statement, Input, Translator], Results]
    tables: Mapping[str, Input]
    settings: Settings
    views: Mapping[str, View] = field(default_factory=dict)
    stages: Stages = field(default_factory=Stages)
    bound: Mapping[str, Input] = field(default_factory=dict)
    for_stage: bool = False

    def results(self, tree: exp.Expr) -> Results:
        """Return the results of a statement; see `gpu_windows.sql.translate.translate`."""
        if isinstance(tree, exp.Query) and self._depends_on_all(tree):
            plain, clauses = split_clauses(tree)
            return arrange(self.results(plain), clauses)
        if isinstance(tree, exp.Subquery) and not tree.args.get("joins"):
            return self.results(tree.this)
        if isinstance(tree, exp.SetOperation):
            return self._read_union(tree)
        if isinstance(tree, exp.Values):
            return self.results(exp.select("*").from_(tree))
        if not isinstance(tree, exp.Select):
            raise sql_error(tree, "a query must be one SELECT")
        with errors_at(tree):
            return self.in_scope(tree)._read(Statement(tree))

    def _depends_on_all(self, tree: exp.Query) -> bool:
        """Whether a query has clauses over its results; rows of a table are sorted by `_read`."""
        if not isinstance(tree, exp.Select) or has_clauses(tree, sorts=False):
            return has_clauses(tree)
        return has_clauses(tree) and self._reader_of(Statement(tree)) is not None

    def in_scope(self, tree: exp.Query) -> Translator:
        """Return a translator that also knows the queries of a statement's own WITH."""
        with_ = tree.args.get("with_")
        if with_ is None:
            return self
        if with_.args.get("recursive"):
            raise sql_error(with_, "WITH RECURSIVE is not covered")
        views, own = self.views, set[str]()
        for each in with_.expressions:
            _check_alias(each)
            name = each.alias.lower()
            if name in own:
                raise sql_error(each.args["alias"], "two queries of WITH have the same name", name)
            own.add(name)
            views = {**views, name: View(each.this, views)}
        return replace(self, views=views)

    def query_in(self, node: exp.Expr) -> tuple[Statement, Translator] | None:
        """Return the subquery of FROM with its translator; None if it is not a SELECT."""
        translator, tree = self, node
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            view = self.views.get(node.this.name.lower())
            if view is None:
                return None
            translator, tree = replace(self, views=view.views), view.tree
        while isinstance(tree, exp.Subquery) and not (tree.args.get("joins") or has_clauses(tree)):
            tree = tree.this
        if not isinstance(tree, exp.Select) or has_clauses(tree, sorts=False):
            return None
        return Statement(tree), translator.in_scope(tree)

    def _read(self, statement: Statement) -> Results:
        statement.check()
        reader = self._reader_of(statement)
        if reader is not None:
            found = reader.read(statement, self)
            if isinstance(found, Results):
                return found
            query, translator = found
            return translator._read(query)
        table = self.input(statement.source)
        if not statement.order:
            return self.read_rows(statement, table, self)
        in_time = isinstance(table, Input) and table.is_in_time(statement.order)
        if not (in_time or table.is_streaming):
            plain, clauses = split_clauses(statement.select)
            return arrange(self.read_rows(Statement(plain), table, self), clauses)
        rows = table if isinstance(table, Input) else self._as_stage(table, statement.source)
        return self.read_in_time(statement, rows, self)

    def _reader_of(self, statement: Statement) -> Reader | None:
        return next((each for each in self.readers if each.recognizes(statement, self)), None)

    # ---- FROM

    def input(self, node: exp.Expr) -> Input | Results:
        """Return a table of FROM, or the results of a subquery there."""
        if isinstance(node, exp.Values):
            return constant_rows(node)
        _check_alias(node)
        if isinstance(node, exp.Subquery):
            return self._query(node.this, node.alias)
        if not isinstance(node, exp.Table):
            raise sql_error(node, "FROM takes tables, window functions and subqueries")
        for name in ("pivots", "sample", "version", "when", "changes", "hints"):
            if node.args.get(name):
                raise sql_error(node, f"{name.upper()} of a table is not covered")
        call = _window_function(node)
        if call is not None:
            return self._window_input(call, node.alias)
        if not isinstance(node.this, exp.Identifier):
            raise sql_error(node, f"a table must be one of {', '.join(self.tables)}")
        name = node.this.name.lower()
        if name in self.bound:
            return self.bound[name]
        if name in self.views:
            view = self.views[name]
            translator = replace(self, views=view.views)
            return translator._query(view.tree, node.alias or node.this.name)
        if name not in self.tables:
            table_names = ", ".join(self.tables) or "none"
            near = did_you_mean(name, self.tables)
            rule = f"there is no such table; sql() is given {table_names}{near}"
            raise sql_error(node, rule, name)
        table = self.tables[name]
        self.stages.read(table.timed_stream.source, node)
        return replace(table, alias=node.alias or node.this.name)

    def names_processing_time(self, source: exp.Expr, time: exp.Expr) -> bool:
        """Whether a node names a column of FROM that is ``PROCTIME()``."""
        if not isinstance(time, exp.Column):
            return False
        found = self.query_in(source)
        if found is None:
            is_table = isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
            table = self.tables.get(source.name.lower()) if is_table else None
            return table is not None and table.is_processing_time(exp.column(time.this.copy()))
        inner, within = found
        for item in inner.items:
            if isinstance(item.node, exp.Star) and within.names_processing_time(inner.source, time):
                return True
            if name_of(item).lower() == time.name.lower():
                node = item.node
                return is_processing_time(node) or within.names_processing_time(inner.source, node)
        return False

    def bind(self, *tables: tuple[Input, exp.Expr]) -> tuple[list[exp.Table], Translator]:
        """Return tables of FROM for inputs, and a translator that knows them and no others.

        Each with the part of the statement that it is made of, for the position of errors.
        """
        bound: dict[str, Input] = {}
        nodes = []
        for table, made_of in tables:
            name = exp.to_identifier(table.alias or f"table {len(bound)}", quoted=True)
            name.meta.update(position_meta(made_of))
            bound[name.name.lower()] = table
            nodes.append(exp.Table(this=name))
        return nodes, replace(self, bound=bound)

    def over(
        self, table: Input, made_of: exp.Expr, query: exp.Select
    ) -> tuple[Statement, Translator]:
        """Return a query over a table in the place of its FROM, and its translator; see `bind`."""
        (node,), bound = self.bind((table, made_of))
        query.set("from_", exp.From(this=node))
        return Statement(query), bound

    def table(self, node: exp.Expr) -> Input:
        """Return a table of FROM; the results of a subquery become rows with an event time.

        Raises
        ------
        SqlError
            If results have no time.
        """
        found = replace(self, for_stage=True).input(node)
        return self._as_stage(found, node) if isinstance(found, Results) else found

    def _as_stage(self, results: Results, node: exp.Expr) -> Input:
        # a query of WITH is computed for each use
        name = node.this.name if isinstance(node, exp.Table) else node.alias
        return self.stages.add(results, name, node.alias or name, node)

    def _query(self, tree: exp.Expr, alias: str) -> Input | Results:
        """Return the rows of a subquery that is a projection, or the results of another kind."""
        rows = self._rows_of_projection(tree, alias)
        return self.results(tree) if rows is None else rows

    # ---- UNION ALL

    def _read_union(self, tree: exp.SetOperation) -> Results:
        """Return the rows of UNION ALL as results; those of UNION are distinct."""
        table = self._unite(tree, "")
        self.settings.check_selects(tree)
        delays, names = dict.fromkeys(table.time_names, (0, 0)), table.names.names
        with errors_at(tree):
            results = Results(table.stream.call("select", *names), names, delays=delays)
        if not tree.args.get("distinct"):
            return results
        return arrange(results, Clauses(tree.expression, distinct=True))

    def _unite(self, tree: exp.SetOperation, alias: str) -> Input:
        """Return the rows of UNION ALL as a table."""
        translator = self.in_scope(tree)
        selects = selects_of_union(tree)
        return unite([translator._branch(each) for each in selects], alias)

    def _branch(self, node: exp.Expr) -> Branch:
        """Return the rows of one SELECT of a union."""
        rows = self._query(node, "")
        if isinstance(rows, Input) and rows.window is not None:  # in windows they are results
            rows = self.results(node)
        if isinstance(rows, Results):
            rows = self.stages.add(rows, "", "", node)
        return Branch(rows, node)

    def _rows_of_projection(self, tree: exp.Expr, alias: str) -> Input | Results | None:
        """Return the rows or results of a subquery that projects, filters, unites; else None."""
        if has_clauses(tree):
            return None
        if isinstance(tree, exp.Subquery):
            return self._rows_of_projection(tree.this, alias or tree.alias)
        if isinstance(tree, exp.SetOperation):
            return None if tree.args.get("distinct") else self._unite(tree, alias)
        if not isinstance(tree, exp.Select) or tree.args.get("with_"):
            return None
        statement = Statement(tree)
        if tree.args.get("from_") is None or self._reader_of(statement) is not None:
            return None
        statement.check()
        statement.refuse("HAVING needs GROUP BY: filter rows with WHERE", "having")
        rows = self.input(statement.source)
        if isinstance(rows, Results):
            return select_from_results(statement, rows, statement.where)
        rows = rows.where(statement.where)
        renamed = replace(rows, alias=alias or rows.alias)
        if statement.is_star:
            return renamed
        return replace(project(statement, rows), alias=renamed.alias)

    def _window_input(self, call: WindowFunction, alias: str) -> Input:
        table, time, durations = read_window_function(call)
        is_query = isinstance(table.this, exp.Select | exp.SetOperation)
        rows = self.table(exp.Subquery(this=table.this) if is_query else table.this)
        if rows.window is not None:
            raise sql_error(call, "rows can be assigned to windows once")
        clashes = [name for name in WINDOW_BOUNDS if rows.names.has(exp.column(name))]
        if clashes and rows.is_results:
            rule = (
                "the window function adds a column of this name: rename it in the subquery with AS"
            )
            raise sql_error(call, rule, clashes[0])
        rows = in_time_of(rows, [time])
        check_timed(rows, time, rows.column(time))
        assigner = make_assigner(call, durations, rows.display_zone)
        check_without_gaps(call, assigner)
        by, is_session = table.args.get("partition_by"), call.this == "SESSION"
        if by is not None and not is_session:
            raise sql_error(call, "PARTITION BY is allowed in SESSION alone")
        wrong = [each for each in by or () if not isinstance(each, exp.Column)]
        if wrong:
            raise sql_error(wrong[0], "PARTITION BY of SESSION takes columns")
        keys = tuple(map(rows.column, by or ())) if is_session else None
        return replace(rows, alias=alias or rows.alias, window=Window(assigner, keys))


def _check_alias(node: exp.Expr) -> None:
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        raise sql_error(alias.columns[0], "name columns with AS in the list of SELECT instead")


def _window_function(node: exp.Table) -> WindowFunction | None:
    """Return the window function of FROM; None if it is a table."""
    call = node.this
    is_table = isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE"
    if is_table and len(call.expressions) == 1:
        call = call.expressions[0]
    if isinstance(call, WindowFunction):
        return call
    if isinstance(call, exp.Func):
        raise sql_error(node, "FROM takes the functions TUMBLE, HOP, CUMULATE and SESSION alone")
    return None
