"""Runs a script: opens its tables, translates its queries, and starts or writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gpu_windows.commits.write_target import Mode
from gpu_windows.datastream.write import write_stream
from gpu_windows.errors import QueryError
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.runners.outputs import Outputs
from gpu_windows.sql.scripts.catalog import Catalog, Task
from gpu_windows.sql.scripts.connectors import STREAMS, Connectors
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.lexer import Excerpt, error_at
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
    text : str
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

    text: str
    catalog: Catalog
    streams: Mapping[str, Any]
    settings: Settings
    session: Any = None
    streaming: bool | None = None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def outputs(self) -> dict[str, Outputs]:
        """Return the outputs of all queries, by the names of their results."""
        with self.errors_of_rows():
            results_by_name = self._results
            for table in self._read_tables:
                self._connectors.check_reached(table)
            return {name: results.outputs.value for name, results in results_by_name.items()}

    def errors_of_rows(self) -> AbstractContextManager[None]:
        """Raise errors of single rows as `SqlError`."""
        return errors_of_rows(self.text, self.catalog)

    def explain(self) -> str:
        """Return all queries with their plans, and what options of SET do here."""
        check_options(self.text, self.catalog.options, self._connectors.zone)
        tasks = (*self.catalog.tasks, *self.catalog.explained)
        parts = []
        for task in tasks:
            found = self._translate(task, Stages(), without_rows=True)
            title = task.name if task.target is None else f"INSERT INTO {task.name}"
            parts.append(f"-- {title}\n{found.outputs.code}\n\n{found.outputs.value.explain()}")
        return "\n\n".join([*parts, *explain_options(self.catalog.options)])

    def write(self, sinks: Mapping[str, str | PathLike[str]]) -> dict[str, Any]:
        """Write the results of bounded queries to their targets."""
        targets = self._targets(sinks)
        writers = {
            name: self._connectors.writer(task.target, sinks.get(name), _mode(task))
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
            if task.insert is not None and task.insert.overwrites:
                rule = "INSERT OVERWRITE is for bounded results: INSERT INTO"
                raise error_at(self.text, task.insert.place.start, rule, task.name)
        by_name = {
            name: sinks[name] if name in sinks else self._connectors.sink(task.target)
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

    def _targets(self, sinks: Mapping[str, Any]) -> dict[str, Task]:
        """Return the queries of INSERT by target; those that stand alone are not written."""
        targets = {task.name: task for task in self.catalog.tasks if task.target is not None}
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
        return Connectors(self.text, self.session, self._is_streaming)

    @property
    def _is_streaming(self) -> bool:
        """Whether tables are read as streams."""
        if self.streaming is not None:
            return self.streaming
        tasks = self.catalog.tasks
        modes = {task.scope.options.get("execution.runtime-mode", "") for task in tasks} - {""}
        if modes:
            return "streaming" in {mode.lower() for mode in modes}
        targets = {task.name.lower() for task in tasks if task.target is not None}
        streams = {name.lower() for name in self.streams}
        return any(
            table.connector in STREAMS
            for task in tasks
            for name, table in task.scope.tables.items()
            if name not in targets | streams
        )

    @cached_property
    def _results(self) -> dict[str, Results]:
        check_options(self.text, self.catalog.options, self._connectors.zone)
        check_order(self.text, self.catalog)
        own = {name.lower() for name in self.functions}
        for name, place in self.catalog.functions.items():
            if name not in own:
                rule = "a function of a script is given, as sql_script(text, {name: function}, ...)"
                raise error_at(self.text, place.start, rule, place.value)
        by_name: dict[str, list[Task]] = {}
        for task in self.catalog.tasks:
            by_name.setdefault(task.name, []).append(task)
        names = {name.lower() for name in by_name}
        if self._is_on_arrow:  # stages are computed as queries are built: none is if one is refused
            for tasks in by_name.values():
                self._translate_union(tasks, Stages({*names}), without_rows=True)
        found = {  # names of stages do not depend on the order of INSERT
            name: self._translate_union(by_name[name], Stages(names)) for name in sorted(by_name)
        }
        return {name: found[name] for name in by_name}

    def _translate_union(
        self, tasks: list[Task], stages: Stages, *, without_rows: bool = False
    ) -> Results:
        """Return the results of all queries that insert into one table."""
        first, *others = tasks
        for other in others:
            assert first.insert is not None, "results that stand alone have names of their own"
            assert other.insert is not None, "results that stand alone have names of their own"
            if first.insert.columns != other.insert.columns or other.insert.partition:
                rule = "two INSERT statements into a table give the same columns: UNION ALL"
                raise error_at(self.text, other.insert.place.start, rule, other.name)
            if first.insert.options != other.insert.options:
                rule = "two INSERT statements into a table have the same OPTIONS"
                raise error_at(self.text, other.insert.place.start, rule, other.name)
            if first.insert.overwrites or other.insert.overwrites:
                rule = "INSERT OVERWRITE is the only statement into its table"
                raise error_at(self.text, other.insert.place.start, rule, other.name)
            try:
                first = replace(first, scope=first.scope.merge(other.scope))
            except QueryError as error:
                place = other.insert.place.start
                raise error_at(self.text, place, error.rule, str(error.value)) from error
        trees = [self._parse(task) for task in tasks]
        tree = trees[0]
        for following in trees[1:]:
            tree = exp.Union(this=tree, expression=following, distinct=False)
        return self._translate(first, stages, tree, without_rows=without_rows)

    def _parse(self, task: Task) -> exp.Expr:
        return self._parse_text(task.query, task)

    def _translate(
        self,
        task: Task,
        stages: Stages,
        tree: exp.Expr | None = None,
        *,
        without_rows: bool = False,
    ) -> Results:
        """Translate a query; ``without_rows``: over no rows, so that nothing is computed."""
        parsed = self._parse(task) if tree is None else tree
        tables = _Tables(self, task, without_rows=without_rows)
        found = translate(parsed, tables, self.settings, self._views(task), stages)
        if task.target is None:
            return found
        return as_target(self.text, task, found, on_arrow=self._is_on_arrow)

    def _parse_text(self, query: Excerpt, task: Task) -> exp.Expr:
        tree = parse_statement(query.in_place, on_arrow=self._is_on_arrow, functions=self.functions)
        return self._with_options.bind(tree, query, task.scope.tables)

    def _views(self, task: Task) -> dict[str, View]:
        views: dict[str, View] = {}
        for name, view in task.scope.views.items():
            tree = self._parse_text(view.query, task)
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
            rows = self._connectors.rows(definition, stream, is_shared=self._is_shared)
            self._open_tables[key] = open_table(
                self.text, definition, rows, idle, on_arrow=self._is_on_arrow
            )
        return self._open_tables[key]

    @cached_property
    def _open_tables(self) -> dict[tuple[object, ...], Input]:
        return {}

    @cached_property
    def _with_options(self) -> TablesWithOptions:
        return TablesWithOptions(self.text)

    @cached_property
    def _read_tables(self) -> list[TableDefinition]:
        """The tables that are read by their connectors."""
        return []

    @property
    def _is_shared(self) -> bool:
        return len({task.name for task in self.catalog.tasks}) > 1


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


def _mode(task: Task) -> Mode:
    """Return how results are written where there are some."""
    return "overwrite" if task.insert is not None and task.insert.overwrites else "error"


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
