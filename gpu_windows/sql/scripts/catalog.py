"""The queries of a script, with the tables and views that they see."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_windows.errors import QueryError, SqlError
from gpu_windows.sql.scripts.definitions import (
    CreateTable,
    TableDefinition,
    Watermark,
    merge_tables,
)
from gpu_windows.sql.scripts.lexer import Excerpt, Token, error_at
from gpu_windows.sql.scripts.option_hints import merge_options
from gpu_windows.sql.scripts.statements import (
    CreateFunction,
    CreateView,
    Drop,
    Explain,
    Insert,
    Query,
    SetOption,
    Statement,
)


@dataclass(frozen=True)
class Scope:
    """The tables and views that a query sees, and the options that are set.

    Parameters
    ----------
    tables : mapping of str to TableDefinition
        By name in lower case.
    views : mapping of str to CreateView
        By name in lower case, in order.
    options : mapping of str to str
    """

    tables: Mapping[str, TableDefinition] = field(default_factory=dict)
    views: Mapping[str, CreateView] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def merge(self, other: Scope) -> Scope:
        """Return the tables and views of both, with the options of this one.

        Raises
        ------
        QueryError
            If a name stands for two things in them.
        """
        own: dict[str, TableDefinition | CreateView] = {**self.tables, **self.views}
        others: dict[str, TableDefinition | CreateView] = {**other.tables, **other.views}
        for name, found in own.items():
            if others.get(name, found) is not found:
                rule = (
                    "between two INSERT statements into one table no table or view is defined "
                    "again: give it another name"
                )
                raise QueryError(rule, value=found.name)
        return replace(
            self,
            tables={**self.tables, **other.tables},
            views={**self.views, **other.views},
        )


@dataclass(frozen=True)
class Task:
    """A query of a script.

    Parameters
    ----------
    name : str
        Of its results: that of the target, or ``result`` of a SELECT that stands alone.
    query : Excerpt
    scope : Scope
    target : TableDefinition, optional
        The table of INSERT.
    insert : Insert, optional
    """

    name: str
    query: Excerpt
    scope: Scope
    target: TableDefinition | None = None
    insert: Insert | None = None


@dataclass(frozen=True)
class Catalog:
    """The queries of a script, in order.

    Parameters
    ----------
    tasks : tuple of Task
        Of INSERT and SELECT.
    explained : tuple of Task
        Of EXPLAIN.
    functions : mapping of str to Token
        Names of functions of CREATE FUNCTION, in lower case, and where they are.
    options : mapping of str to SetOption
        The options that were set, by name.
    """

    tasks: tuple[Task, ...]
    explained: tuple[Task, ...]
    functions: Mapping[str, Token]
    options: Mapping[str, SetOption]


def read_catalog(script: str, statements: tuple[Statement, ...]) -> Catalog:
    """Return the queries of statements.

    Raises
    ------
    SqlError
        If a name is used twice, or a table does not exist.
    """
    reader = _Reader(script)
    for statement in statements:
        reader.apply(statement)
    tasks = tuple(_with_names(reader.tasks))
    return Catalog(tasks, tuple(reader.explained), reader.functions, reader.options)


def _with_names(tasks: Sequence[Task]) -> Iterator[Task]:
    """Yield tasks; a SELECT that stands alone gets a name that no target has."""
    used = {task.name for task in tasks if task.target is not None}
    numbered = (f"result_{number}" for number in itertools.count(2))
    names = (each for each in itertools.chain(["result"], numbered) if each not in used)
    for task in tasks:
        yield task if task.target is not None else replace(task, name=next(names))


class _Reader:
    """Applies statements, one after another."""

    def __init__(self, script: str) -> None:
        self._script, self._scope = script, Scope()
        self.tasks: list[Task] = []
        self.explained: list[Task] = []
        self.functions: dict[str, Token] = {}
        self.options: dict[str, SetOption] = {}

    def apply(self, statement: Statement) -> None:
        """Apply a statement."""
        _APPLY[type(statement)](self, statement)

    def create_table(self, statement: CreateTable) -> None:
        """Define a table; write the results of its query, if it has one."""
        table = statement.table
        if not self._is_free(table.name, table.place, if_not_exists=statement.if_not_exists):
            return
        if statement.like is not None:
            other = self._table(*statement.like)
            table = merge_tables(table, other, statement.excludes)
        self._check_names(table)
        self._scope = replace(self._scope, tables={**self._scope.tables, table.name.lower(): table})
        if statement.query is not None:
            insert = Insert(table.name, table.place, (), {}, statement.query)
            self.tasks.append(Task(table.name, statement.query, self._scope, table, insert))

    def create_view(self, statement: CreateView) -> None:
        """Define a view."""
        if self._is_free(statement.name, statement.place, if_not_exists=statement.if_not_exists):
            views = {**self._scope.views, statement.name.lower(): statement}
            self._scope = replace(self._scope, views=views)

    def create_function(self, statement: CreateFunction) -> None:
        """Record the name of a function."""
        self.functions[statement.name.lower()] = statement.place

    def insert(self, statement: Insert) -> None:
        """Add a query whose results are written."""
        self.tasks.append(self._insert_task(statement))

    def query(self, statement: Query) -> None:
        """Add a query whose results are shown."""
        self.tasks.append(self._query_task(statement))

    def explain(self, statement: Explain) -> None:
        """Add queries that are explained."""
        for each in statement.statements:
            is_insert = isinstance(each, Insert)
            self.explained.append(
                self._insert_task(each) if is_insert else self._query_task(each)  # type: ignore[arg-type]
            )

    def set_option(self, statement: SetOption) -> None:
        """Set an option, or reset one or all."""
        options = dict(self._scope.options)
        if statement.key is None:
            options.clear()
        elif statement.value is None:
            options.pop(statement.key, None)
        else:
            options[statement.key] = statement.value
            self.options[statement.key] = statement
        self._scope = replace(self._scope, options=options)

    def drop(self, statement: Drop) -> None:
        """Remove a table or a view."""
        name = statement.name.lower()
        if name not in {**self._scope.tables, **self._scope.views} and not statement.if_exists:
            raise self._error(statement.place, "there is no such table or view")
        tables = {key: each for key, each in self._scope.tables.items() if key != name}
        views = {key: each for key, each in self._scope.views.items() if key != name}
        self._scope = replace(self._scope, tables=tables, views=views)

    def _insert_task(self, statement: Insert) -> Task:
        target = merge_options(self._table(statement.target, statement.place), statement.options)
        return Task(target.name, statement.query, self._scope, target, statement)

    def _query_task(self, statement: Query) -> Task:
        return Task("result", statement.text, self._scope)

    def _table(self, name: str, place: Token) -> TableDefinition:
        """Return the table of a name that stands at a place."""
        table = self._scope.tables.get(name.lower())
        if table is None:
            names = ", ".join(each.name for each in self._scope.tables.values()) or "none"
            raise self._error(place, f"CREATE TABLE has no such table; there are {names}")
        return table

    def _is_free(self, name: str, place: Token, *, if_not_exists: bool) -> bool:
        exists = name.lower() in {**self._scope.tables, **self._scope.views}
        if exists and not if_not_exists:
            raise self._error(place, "a table or view of this name exists")
        return not exists

    def _check_names(self, table: TableDefinition) -> None:
        names = {each.name.lower() for each in table.columns}
        keys: tuple[str, ...] = (*table.primary_key, *table.partitions)
        watermark: Watermark | None = table.watermark
        if watermark is not None and watermark.column.lower() not in names:
            raise self._error(watermark.place, "the table has no such column")
        time = table.event_time
        if watermark is not None and time is not None and time.dtype is not None:
            rule = table.event_time_error(time.dtype)
            if rule is not None:
                raise self._error(watermark.place, rule)
        for name in keys:
            if name.lower() not in names:
                raise self._error(table.place, f"the table has no column {name}")

    def _error(self, place: Token, rule: str) -> SqlError:
        return error_at(self._script, place.start, rule, place.value)


_APPLY: Mapping[type, Callable[..., None]] = {
    CreateTable: _Reader.create_table,
    CreateView: _Reader.create_view,
    CreateFunction: _Reader.create_function,
    Insert: _Reader.insert,
    Query: _Reader.query,
    Explain: _Reader.explain,
    SetOption: _Reader.set_option,
    Drop: _Reader.drop,
}
