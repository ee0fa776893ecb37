"""The queries of a script, with the tables and views that they see."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_windows.errors import QueryError, SqlError
from gpu_windows.sql.scripts.definitions import (
    CreateTable,
    TableDefinition,
    merge_tables,
)
from gpu_windows.sql.scripts.lexer import Excerpt, Token
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
    """

    name: str
    query: Excerpt
    scope: Scope


@dataclass(frozen=True)
class InsertTask(Task):
    """A query of INSERT.

    Parameters
    ----------
    name, query, scope
        See `Task`.
    insert : Insert
    target : TableDefinition
        The table that it writes.
    """

    insert: Insert
    target: TableDefinition


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

    @property
    def inserts(self) -> list[InsertTask]:
        """The tasks of INSERT."""
        return [task for task in self.tasks if isinstance(task, InsertTask)]


def read_catalog(statements: tuple[Statement, ...]) -> Catalog:
    """Return the queries of statements.

    Raises
    ------
    SqlError
        If a name is used twice, or a table does not exist.
    """
    reader = _Reader()
    for statement in statements:
        reader.apply(statement)
    tasks = tuple(_with_names(reader.tasks))
    return Catalog(tasks, tuple(reader.explained), reader.functions, reader.options)


def _with_names(tasks: Sequence[Task]) -> Iterator[Task]:
    """Yield tasks; a SELECT that stands alone gets a name that no target has."""
    used = {task.name for task in tasks if isinstance(task, InsertTask)}
    numbered = (f"result_{number}" for number in itertools.count(2))
    names = (each for each in itertools.chain(["result"], numbered) if each not in used)
    for task in tasks:
        yield task if isinstance(task, InsertTask) else replace(task, name=next(names))


class _Reader:
    """Applies statements, one after another."""

    def __init__(self) -> None:
        self._scope = Scope()
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
        _check_names(table)
        self._scope = replace(self._scope, tables={**self._scope.tables, table.name.lower(): table})
        if statement.query is not None:
            self.add_task(Insert(table.name, table.place, (), {}, statement.query))

    def create_view(self, statement: CreateView) -> None:
        """Define a view."""
        if self._is_free(statement.name, statement.place, if_not_exists=statement.if_not_exists):
            views = {**self._scope.views, statement.name.lower(): statement}
            self._scope = replace(self._scope, views=views)

    def create_function(self, statement: CreateFunction) -> None:
        """Record the name of a function."""
        self.functions[statement.name.lower()] = statement.place

    def add_task(self, statement: Insert | Query) -> None:
        """Add a query whose results are written, or shown."""
        self.tasks.append(self._task(statement))

    def explain(self, statement: Explain) -> None:
        """Add queries that are explained."""
        self.explained.extend(map(self._task, statement.statements))

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
            raise _error(statement.place, "there is no such table or view")
        tables = {key: each for key, each in self._scope.tables.items() if key != name}
        views = {key: each for key, each in self._scope.views.items() if key != name}
        self._scope = replace(self._scope, tables=tables, views=views)

    def _task(self, statement: Insert | Query) -> Task:
        if isinstance(statement, Query):
            return Task("result", statement.text, self._scope)
        target = merge_options(self._table(statement.target, statement.place), statement.options)
        return InsertTask(target.name, statement.query, self._scope, statement, target)

    def _table(self, name: str, place: Token) -> TableDefinition:
        """Return the table of a name that stands at a place."""
        table = self._scope.tables.get(name.lower())
        if table is None:
            names = ", ".join(each.name for each in self._scope.tables.values()) or "none"
            raise _error(place, f"CREATE TABLE has no such table; there are {names}")
        return table

    def _is_free(self, name: str, place: Token, *, if_not_exists: bool) -> bool:
        exists = name.lower() in {**self._scope.tables, **self._scope.views}
        if exists and not if_not_exists:
            raise _error(place, "a table or view of this name exists")
        return not exists


def _check_names(table: TableDefinition) -> None:
    names = {each.name.lower() for each in table.columns}
    if table.watermark is not None:
        time, place = table.event_time, table.watermark.place
        if time is None:
            raise _error(place, "the table has no such column")
        rule = None if time.dtype is None else table.event_time_error(time.dtype)
        if rule is not None:
            raise _error(place, rule)
    for name in (*table.primary_key, *table.partitions):
        if name.lower() not in names:
            raise _error(table.place, f"the table has no column {name}")


def _error(place: Token, rule: str) -> SqlError:
    return place.error(rule, place.value)


_APPLY: Mapping[type, Callable[..., None]] = {
    CreateTable: _Reader.create_table,
    CreateView: _Reader.create_view,
    CreateFunction: _Reader.create_function,
    Insert: _Reader.add_task,
    Query: _Reader.add_task,
    Explain: _Reader.explain,
    SetOption: _Reader.set_option,
    Drop: _Reader.drop,
}
