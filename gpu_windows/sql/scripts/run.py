"""Runs a script: opens its tables, translates its queries, and starts or writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from os import PathLike
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gpu_windows.datastream.write import write_stream
from gpu_windows.errors import QueryError
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.runners.outputs import Outputs
from gpu_windows.sql.scripts.catalog import Catalog, InsertTask, Task
from gpu_windows.sql.scripts.connectors import STREAMS, Connectors, sink_of, writer_of
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.lexer import Excerpt
from gpu_windows.sql.scripts.option_hints import TablesWithOptions
from gpu_windows.sql.scripts.options import (
    IDLE_TIMEOUT,
    check_options,
    check_order,
    explain_options,
    read_trigger,
)
from gpu_windows.sql.scripts.row_errors import errors_of_rows
from gpu_windows.sql.scripts.tables import open_table
from gpu_windows.sql.scripts.target_columns import as_target
from gpu_windows.sql.syntax.parse import parse_statement
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.sql.tables.results import Results, Settings
from gpu_windows.sql.tables.stages import Stages
from gpu_windows.sql.tables.streams import tables_by_name
from gpu_windows.sql.translate import translate
from gpu_windows.sql.translator import View

if TYPE_CHECKING:
    from gpu_windows.annotations import StreamingQuery


@dataclass(frozen=True)
class ScriptRun:
    """The queries of a script over its tables.

    Parameters
    ----------
    catalog : Catalog
    streams : mapping of str to Stream
        Rows of tables, by name.
    settings : Settings
    session : SparkSession, optional
    streaming : bool, optional
        Whether tables are streams; None: as the text says.
    functions : mapping of str to callable
        The user's aggregates, by name.
    """

    catalog: Catalog
    streams: Mapping[str, Any]
    settings: Settings
    session: Any
    streaming: bool | None
    functions: Mapping[str, Callable[..., Any]]
    _with_options: TablesWithOptions = field(default_factory=TablesWithOptions)
    _open_tables: dict[tuple[object, ...], Input] = field(default_factory=dict)
    #: The tables that are read by their connectors.
    _read_tables: list[TableDefinition] = field(default_factory=list)

    def outputs(self) -> dict[str, Outputs]:
        """Return the outputs of all queries, by the names of their results."""
        with self.errors_of_rows():
            results_by_name = self._results
            for table in self._read_tables:
                self._connectors.check_reached(table)
            return {name: results.outputs.value for name, results in results_by_name.items()}

    def errors_of_rows(self) -> AbstractContextManager[None]:
        """Raise errors of single rows as `SqlError`."""
        return errors_of_rows(self.catalog)

    def explain(self) -> str:
        """Return all queries with their plans, and what options of SET do here."""
        check_options(self.catalog.options, self._connectors.zone)
        parts = []
        for task in (*self.catalog.tasks, *self.catalog.explained):
            found = self._translate([task], Stages(), without_rows=True)
            title = f"INSERT INTO {task.name}" if isinstance(task, InsertTask) else task.name
            parts.append(f"-- {title}\n{found.outputs.code}\n\n{found.outputs.value.explain()}")
        return "\n\n".join([*parts, *explain_options(self.catalog.options)])

    def write(self, sinks: Mapping[str, str | PathLike[str]]) -> dict[str, Any]:
        """Write the results of bounded queries to their targets."""
        targets = self._targets(sinks)
        writers = {
            name: writer_of(
                task.target, sinks.get(name), "overwrite" if task.insert.overwrites else "error"
            )
            for name, task in targets.items()
        }
        outputs = self.outputs()
        with self.errors_of_rows():
            found = {name: write(outputs[name]) for name, write in writers.items()}
        return {name: each for name, each in found.items() if each is not None}

    def write_stream(
        self,
        checkpoint: str | PathLike[str],
        sinks: Mapping[str, Any],
        trigger: Mapping[str, Any] | None,
        name: str | None,
    ) -> StreamingQuery:
        """Start all INSERT statements as one streaming query."""
        targets = self._targets(sinks)
        for task in targets.values():
            if task.insert.overwrites:
                rule = "INSERT OVERWRITE is for bounded results: INSERT INTO"
                raise task.insert.place.error(rule, task.name)
        by_name = {
            name: sinks[name] if name in sinks else sink_of(task.target)
            for name, task in targets.items()
        }
        options = next(iter(targets.values())).scope.options
        outputs = self.outputs()
        return write_stream(
            {name: outputs[name] for name in sorted(targets)},  # whatever the order of INSERT
            by_name,
            checkpoint,
            trigger=read_trigger(options) if trigger is None else trigger,
            name=options.get("pipeline.name") if name is None else name,
        )

    def _targets(self, sinks: Mapping[str, Any]) -> dict[str, InsertTask]:
        """Return the queries of INSERT by target; those that stand alone are not written."""
        targets = {task.name: task for task in self.catalog.inserts}
        if not targets:
            raise QueryError(
                "the script has no INSERT: call .results()",
                value=[task.name for task in self.catalog.tasks],
            )
        unknown = [name for name in sinks if name not in targets]
        if unknown:
            rule = f"a sink is for a target of INSERT: {', '.join(targets)}"
            raise QueryError(rule, value=unknown[0])
        return targets

    @cached_property
    def _connectors(self) -> Connectors:
        return Connectors(self.session, self._is_streaming)

    @property
    def _is_streaming(self) -> bool:
        """Whether tables are read as streams."""
        if self.streaming is not None:
            return self.streaming
        tasks = self.catalog.tasks
        modes = {task.scope.options.get("execution.runtime-mode", "") for task in tasks} - {""}
        if modes:
            return "streaming" in {mode.lower() for mode in modes}
        targets = {task.name.lower() for task in self.catalog.inserts}
        streams = {name.lower() for name in self.streams}
        return any(
            table.connector in STREAMS
            for task in tasks
            for name, table in task.scope.tables.items()
            if name not in targets | streams
        )

    @cached_property
    def _results(self) -> dict[str, Results]:
        check_options(self.catalog.options, self._connectors.zone)
        check_order(self.catalog)
        own = {name.lower() for name in self.functions}
        for name, place in self.catalog.functions.items():
            if name not in own:
                rule = "a function of a script is given, as sql_script(text, {name: function}, ...)"
                raise place.error(rule, place.value)
        by_name: dict[str, list[Task]] = {}
        for task in self.catalog.tasks:
            by_name.setdefault(task.name, []).append(task)
        names = {name.lower() for name in by_name}
        if self._is_on_arrow:  # stages are computed as queries are built: none is if one is refused
            for tasks in by_name.values():
                self._translate(tasks, Stages({*names}), without_rows=True)
        found = {  # names of stages do not depend on the order of INSERT
            name: self._translate(by_name[name], Stages(names)) for name in sorted(by_name)
        }
        return {name: found[name] for name in by_name}

    def _translate(
        self, tasks: list[Task], stages: Stages, *, without_rows: bool = False
    ) -> Results:
        """Translate a query, or all that insert into one table, as their union.

        ``without_rows``: over no rows, so that nothing is computed.
        """
        inserts = [task for task in tasks if isinstance(task, InsertTask)]
        task = reduce(_merge_tasks, inserts) if inserts else tasks[0]
        tree, *others = [self._parse(each.query, each) for each in tasks]
        for other in others:
            tree = exp.Union(this=tree, expression=other, distinct=False)
        tables = _Tables(self, task, without_rows=without_rows)
        found = translate(tree, tables, self.settings, self._views(task), stages)
        if not isinstance(task, InsertTask):
            return found
        return as_target(task, found, on_arrow=self._is_on_arrow)

    def _parse(self, query: Excerpt, task: Task, *, is_view: bool = False) -> exp.Expr:
        options: dict[str, Any] = {"functions": self.functions, "is_view": is_view}
        tree = parse_statement(query.in_place, on_arrow=self._is_on_arrow, **options)
        return self._with_options.bind(tree, query, task.scope.tables)

    def _views(self, task: Task) -> dict[str, View]:
        views: dict[str, View] = {}
        for name, view in task.scope.views.items():
            tree = self._parse(view.query, task, is_view=True)
            views = {**views, name: View(_with_columns(tree, view.columns), views)}
        return views

    @property
    def _is_on_arrow(self) -> bool:
        streams = self.streams.values()
        return self.session is None and not any(e.source.is_of_spark for e in streams)

    def open(self, name: str, task: Task) -> Input | None:
        """Return a table by its name in lower case; None for other names."""
        found = self._with_options.find(name, task.scope.tables)
        name, definition = found or (name, task.scope.tables.get(name))
        given = {key.lower(): (key, each) for key, each in self.streams.items()}
        if definition is None:
            if name not in given:
                return None
            return tables_by_name({given[name][0]: given[name][1]})[name]
        idle = task.scope.options.get(IDLE_TIMEOUT)
        key = (name, definition.place.start, idle, *definition.options.items())
        if key not in self._open_tables:
            _, stream = given.get(name, (name, None))
            if stream is None:
                self._read_tables.append(definition)
            is_shared = len({task.name for task in self.catalog.tasks}) > 1
            rows = self._connectors.rows(definition, stream, is_shared=is_shared)
            self._open_tables[key] = open_table(definition, rows, idle, on_arrow=self._is_on_arrow)
        return self._open_tables[key]


class _Tables(Mapping[str, Input]):
    """The tables of a query, which are opened when they are read."""

    def __init__(self, run: ScriptRun, task: Task, *, without_rows: bool) -> None:
        self._run, self._task, self._without_rows = run, task, without_rows

    def __getitem__(self, name: str) -> Input:
        found = self._run.open(name, self._task)
        if found is None:
            raise KeyError(name)
        return found.without_rows if self._without_rows else found

    def __contains__(self, name: object) -> bool:
        has_options = self._run._with_options.find(str(name), self._task.scope.tables)
        return name in self._names or has_options is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def _names(self) -> dict[str, None]:
        given = (name.lower() for name in self._run.streams)
        return dict.fromkeys((*self._task.scope.tables, *given))


def _merge_tasks(first: InsertTask, other: InsertTask) -> InsertTask:
    """Return the first of two queries that insert into one table, in the scope of both."""
    insert, place = other.insert, other.insert.place
    if first.insert.columns != insert.columns or insert.partition:
        rule = "two INSERT statements into a table give the same columns: UNION ALL"
        raise place.error(rule, other.name)
    if first.insert.options != insert.options:
        raise place.error("two INSERT statements into a table have the same OPTIONS", other.name)
    if first.insert.overwrites or insert.overwrites:
        raise place.error("INSERT OVERWRITE is the only statement into its table", other.name)
    try:
        return replace(first, scope=first.scope.merge(other.scope))
    except QueryError as error:
        raise place.error(error.rule, str(error.value)) from error


def _with_columns(tree: exp.Expr, names: tuple[str, ...]) -> exp.Expr:
    """Return the query of a view with other names for its columns."""
    if not names:
        return tree
    inner = tree
    while isinstance(inner, exp.Subquery | exp.SetOperation):
        inner = inner.this
    items = list(inner.expressions) if isinstance(inner, exp.Select) else []
    if len(items) != len(names) or any(isinstance(e, exp.Star) for e in items):
        raise sql_error(tree, f"the query of a view has a column for each of {', '.join(names)}")
    for node, name in zip(items, names, strict=True):
        value = node.this if isinstance(node, exp.Alias) else node
        node.replace(exp.alias_(value.copy(), name, quoted=True))
    return tree
