"""Results of queries, and the columns and rows that a statement selects of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any

from sqlglot import exp

from gpu_windows.errors import QueryError
from gpu_windows.expressions.sql_text import errors_at, sql_error, to_spark_sql
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.syntax.statement import Item, Statement, is_processing_time, names_of
from gpu_windows.sql.syntax.value_types import apply_type_rules, infer_type, value_type
from gpu_windows.sql.tables.inputs import Input, check_scalar, expand_star, result_column

#: Returns the result that an expression stands for; None if it is not a result itself.
ToResult = Callable[[exp.Expr], "exp.Expr | None"]


@dataclass(frozen=True)
class Settings:
    """Settings of a query in addition to its text.

    Parameters
    ----------
    order : tuple of str
        Columns that define the order of arrival.
    options : mapping
        See `gpu_windows.typing.Options`.
    """

    order: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)

    def for_inputs(self, *inputs: Input) -> Settings:
        """Return the settings for these tables: results of a query have no order of arrival."""
        return replace(self, order=()) if any(each.is_results for each in inputs) else self

    def check_selects(self, node: exp.Expr) -> None:
        """Raise `SqlError` at a node that selects rows if options ask for a device."""
        if self.options.get("device") == "cuda":
            rule = "device='cuda' is not possible: no kernel of a device selects rows"
            raise sql_error(node, rule)

    def apply(self, step: ApiCall) -> ApiCall:
        """Apply order and options to a step of the API."""
        if self.order:
            step = step.call("arrival_order", *self.order)
        return step.call("options", **self.options) if self.options else step


@dataclass(frozen=True)
class Results:
    """The outputs of a query.

    Parameters
    ----------
    outputs : ApiCall of Outputs
    names : tuple of str
        Names of the result columns, in order.
    window : ApiCall of WindowAssigner, optional
        The windows of the results.
    delays : mapping of str to (int, int)
        Columns of the original results with times, and by how many ticks, at least and at most, the
        event time of a row follows each; (0, 0): it is the event time.
    before : Results, optional
        The original results, before any selection.
    steps : tuple of (mapping of str to sqlglot.exp.Expr, sqlglot.exp.Expr or None)
        The selections since, in order: expressions by name, and a condition.
    change : str, optional
        The column with the kind of change, which every selection keeps.
    types : mapping of str to str or None, optional
        Types of the columns; default: those of the plan.
    start : str, optional
        The original result with the start of windows, if it is not that of ``window``; see
        `gpu_windows.sql.tables.inputs.Window`.
    """

    outputs: ApiCall
    names: tuple[str, ...]
    window: ApiCall | None = None
    delays: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    before: Results | None = None
    steps: tuple[tuple[Mapping[str, exp.Expr], exp.Expr | None], ...] = ()
    change: str | None = None
    types: Mapping[str, str | None] | None = None
    start: str | None = None

    def type_of(self, column: exp.Column) -> str | None:
        """Return the type of a result column; None if it is not known."""
        if self.types is not None:
            return self.types.get(column.name)
        plan = self.outputs.value.plan
        names = {display_name: name for name, display_name in plan.query.display_names.items()}
        schema, name = plan.result_schema, names.get(column.name, column.name)
        if name in plan.query.window_types:
            return value_type(plan.query.window_types[name])
        at = schema.get_field_index(name)
        return None if at < 0 else value_type(schema.field(at).type)

    @property
    def times(self) -> frozenset[str]:
        """Columns of the original results that become the event time of their rows."""
        return frozenset(name for name, delay in self.delays.items() if delay == (0, 0))

    @property
    def is_streaming(self) -> bool:
        """Whether they are those of a stream, which have no end."""
        return bool(self.outputs.value.is_streaming)

    @property
    def base(self) -> ApiCall:
        """The original outputs, before any selection."""
        return self.outputs if self.before is None else self.before.outputs

    @property
    def base_names(self) -> tuple[str, ...]:
        """Names of the original result columns, before any selection."""
        return self.names if self.before is None else self.before.names

    def select(self, items: Mapping[str, exp.Expr], where: exp.Expr | None = None) -> Results:
        """Return a selection: expressions over these results, by name, and a condition."""
        if self.change is not None and self.change not in items:
            items = {**items, self.change: result_column(self.change)}
        items = {name: apply_type_rules(each, self.type_of) for name, each in items.items()}
        where = None if where is None else apply_type_rules(where, self.type_of)
        types = {name: infer_type(each, self.type_of) for name, each in items.items()}
        selected_names, before = tuple(items), self.before or self
        steps = (*self.steps, (items, where))
        is_same = [isinstance(e, exp.Column) and e.name == n for n, e in items.items()]
        outputs = self.outputs
        if selected_names != self.names or not all(is_same):
            texts = {
                name: None if same else to_spark_sql(each)
                for (name, each), same in zip(items.items(), is_same, strict=True)
            }
            outputs = call_select(outputs, texts, items, where)
        elif where is not None:
            outputs = outputs.call("select", where=to_spark_sql(where))
        changed = replace(self, outputs=outputs, names=selected_names, before=before)
        return replace(changed, steps=steps, types=types)


def call_select(
    rows: ApiCall,
    texts: Mapping[str, str | None],
    items: Mapping[str, exp.Expr],
    where: exp.Expr | None = None,
) -> ApiCall:
    """Call ``select`` of the API; an error has the position of the part that is wrong alone.

    Parameters
    ----------
    rows : ApiCall
    texts : mapping of str to (str or None)
        Expressions by name, in order; None: the column of this name.
    items : mapping of str to sqlglot.exp.Expr
        What they are made of.
    where : sqlglot.exp.Expr, optional
        A condition on results.
    """
    columns, last = select_arguments(texts)
    condition = {} if where is None else {"where": to_spark_sql(where)}
    try:
        return rows.call("select", *columns, **condition, **last)
    except QueryError:
        if where is not None:
            with errors_at(where):
                rows.call("select", **condition)
        for name, text in texts.items():
            if text is not None:
                with errors_at(items[name]):
                    rows.call("select", {name: text})
        raise


def select_arguments(
    items: Mapping[str, str | None],
) -> tuple[list[str | dict[str, str]], dict[str, str]]:
    """Return the positional and keyword arguments of a ``select`` of the API.

    Parameters
    ----------
    items : mapping of str to (str or None)
        Expressions by name, in order; None: the column of this name.
    """
    columns: list[str | dict[str, str]] = []
    for name, text in items.items():
        if text is None:
            columns.append(name)
        elif columns and isinstance(columns[-1], dict):
            columns[-1][name] = text
        else:
            columns.append({name: text})
    last = columns[-1]
    words = not isinstance(last, str) and all(n.isidentifier() and not iskeyword(n) for n in last)
    if not words or "where" in last:
        return columns, {}
    assert isinstance(last, dict)
    return columns[:-1], last


def rewrite_over_results(node: exp.Expr, to_result: ToResult, rule: str) -> exp.Expr:
    """Rewrite an expression over rows to one over results.

    Raises
    ------
    SqlError
        With ``rule`` if a column of it is not a result.
    """

    def visit(each: exp.Expr) -> exp.Expr:
        found = to_result(each)
        if found is not None:
            return found
        if isinstance(each, exp.Column):
            raise sql_error(each, rule)
        if is_processing_time(each):
            check_scalar(each)
        if isinstance(each, exp.Star):
            raise sql_error(each, "* selects columns of rows: name keys and aggregates instead")
        if isinstance(each, exp.Query):
            raise sql_error(each, "a query in an expression is not covered: join it")
        if isinstance(each, exp.Window):
            raise sql_error(
                each, "OVER is allowed in the list of SELECT alone, over rows of a table"
            )
        if isinstance(each, exp.AggFunc):
            raise sql_error(each, "an aggregate needs GROUP BY and windows, or OVER")
        args: dict[str, Any] = {}
        for key, value in each.args.items():
            if isinstance(value, list):
                args[key] = [visit(v) if isinstance(v, exp.Expr) else v for v in value]
            else:
                args[key] = visit(value) if isinstance(value, exp.Expr) else value
        made = type(each)(**args)
        made.meta.update(each.meta)
        return made

    return visit(node)


def items_by_name(
    items: tuple[Item, ...], rewrite: Callable[[exp.Expr], exp.Expr]
) -> dict[str, exp.Expr]:
    """Return the items of SELECT, rewritten, by name.

    Raises
    ------
    SqlError
        If names of two items differ in case alone.
    """
    by_name: dict[str, exp.Expr] = {}
    for name, item in zip(names_of(items), items, strict=True):
        if name.lower() in (other.lower() for other in by_name):
            rule = "names of two results differ in case alone: rename one with AS"
            raise sql_error(item.node, rule, name)
        with errors_at(item.node):
            by_name[name] = rewrite(item.node)
    return by_name


def find_result(node: exp.Expr, names: tuple[str, ...]) -> exp.Column | None:
    """Return the result column that a node names, in any case; None for other nodes."""
    if not isinstance(node, exp.Column):
        return None
    found = [name for name in names if name.lower() == node.name.lower()]
    return result_column(found[0]) if found else None


def select_from_results(statement: Statement, results: Results, where: exp.Expr | None) -> Results:
    """Return what an outer query selects from the results of its subquery.

    Raises
    ------
    SqlError
        If it does more than select columns and filter rows.
    """
    for clause in (statement.group, statement.having, *statement.order, *statement.over):
        if clause is not None:
            rule = "a query around results can select columns and filter rows, and nothing else"
            raise sql_error(clause, rule)

    def to_result(node: exp.Expr) -> exp.Expr | None:
        return find_result(node, results.names)

    rule = f"there is no such result; there are {', '.join(results.names)}"
    condition = None if where is None else rewrite_over_results(where, to_result, rule)
    check_keeps_changes(results, condition, where)
    items = expand_star(statement.items, statement.source.alias_or_name, results.names)
    selected = items_by_name(items, lambda node: rewrite_over_results(node, to_result, rule))
    return select_checked(results, statement, items, selected, condition)


def select_checked(
    results: Results,
    statement: Statement,
    items: Sequence[Item],
    selected: Mapping[str, exp.Expr],
    condition: exp.Expr | None,
) -> Results:
    """Return a selection of results, and check that it keeps their changes.

    Parameters
    ----------
    results : Results
    statement : Statement
        The outer query.
    items : sequence of Item
        Its list of SELECT.
    selected : mapping of str to sqlglot.exp.Expr
        The same items as expressions over the results.
    condition : sqlglot.exp.Expr, optional
        Over the results.

    Raises
    ------
    SqlError
        If the column of changes would be replaced.
    """
    for item, (name, expression) in zip(items, selected.items(), strict=True):
        if (
            results.change is not None
            and name.lower() == results.change
            and expression != result_column(results.change)
        ):
            rule = "results have a column of this name for the kind of change: rename with AS"
            raise sql_error(item.node, rule, name)
    with errors_at(statement.select):
        return results.select(selected, condition)


def check_keeps_changes(
    results: Results, condition: exp.Expr | None, node: exp.Expr | None
) -> None:
    """Raise `SqlError` at a node if a condition would lose changes."""
    if results.change is not None and condition is not None and node is not None:
        with errors_at(node):  # tried alone, for the position
            results.select({name: result_column(name) for name in results.names}, condition)
