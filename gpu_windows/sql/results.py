"""From the results of the API to those that a text asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from gpu_windows.errors import QueryError
from gpu_windows.expressions.places import placed, refused, written
from gpu_windows.sql.inputs import Input
from gpu_windows.sql.kinds import kind_of, kind_of_type, with_kinds
from gpu_windows.sql.said import Said
from gpu_windows.sql.statement import Item, Statement

#: What is noted of an item of SELECT: what it is called where the text says no AS.
SHOWN = "shown"
#: Returns what a part of a text is among the results, if it is one.
Meaning = Callable[[exp.Expr], "exp.Expr | None"]


@dataclass(frozen=True)
class Settings:
    """What is said of a query besides its text.

    Parameters
    ----------
    order : tuple of str
        Columns that give the order of arrival.
    options : mapping
        See `gpu_windows.typing.Options`.
    """

    order: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)

    def over(self, *inputs: Input) -> Settings:
        """Return the same over these tables: results of a query have no order of arrival."""
        return replace(self, order=()) if any(each.is_results for each in inputs) else self

    def of(self, step: Said) -> Said:
        """Say it of a step that takes an order and options."""
        if self.order:
            step = step.call("arrival_order", *self.order)
        return step.call("options", **self.options) if self.options else step


@dataclass(frozen=True)
class Results:
    """The outputs of a query.

    Parameters
    ----------
    outputs : Said of Outputs
    names : tuple of str
        Names of the results, in order.
    window : Said of WindowAssigner, optional
        The windows that they are of.
    times : frozenset of str
        Results before anything is chosen that are the time of rows which they become.
    before : Results, optional
        The results before anything was chosen.
    steps : tuple of (mapping of str to sqlglot.exp.Expr, sqlglot.exp.Expr or None)
        What was chosen of them, one after the other: expressions by name, and a condition.
    change : str, optional
        The one that tells what changes are, which stays whatever is chosen.
    kinds : mapping of str to str or None, optional
        Kinds of the results; default: those of the query's.
    """

    outputs: Said
    names: tuple[str, ...]
    window: Said | None = None
    times: frozenset[str] = frozenset()
    before: Results | None = None
    steps: tuple[tuple[Mapping[str, exp.Expr], exp.Expr | None], ...] = ()
    change: str | None = None
    kinds: Mapping[str, str | None] | None = None

    def kind_of(self, column: exp.Column) -> str | None:
        """Return the kind of a result, if it is known."""
        if self.kinds is not None:
            return self.kinds.get(column.name)
        plan = self.outputs.value.plan
        names = {shown: name for name, shown in plan.query.display_names.items()}
        schema = plan.result_schema
        at = schema.get_field_index(names.get(column.name, column.name))
        return None if at < 0 else kind_of_type(schema.field(at).type)

    @property
    def base(self) -> Said:
        """The outputs before anything was chosen."""
        return self.outputs if self.before is None else self.before.outputs

    @property
    def base_names(self) -> tuple[str, ...]:
        """Names of the results before anything was chosen."""
        return self.names if self.before is None else self.before.names

    def select(
        self, items: Mapping[str, exp.Expr], where: exp.Expr | None = None, *, star: bool = False
    ) -> Results:
        """Return other results: expressions by name, over these by their names.

        ``star``: all stay, and only the condition is new.
        """
        if star:
            items = {name: result(name) for name in self.names}
        if self.change is not None and self.change not in items:
            items = {**items, self.change: result(self.change)}
        items = {name: with_kinds(each, self.kind_of) for name, each in items.items()}
        where = None if where is None else with_kinds(where, self.kind_of)
        kinds = {name: kind_of(each, self.kind_of) for name, each in items.items()}
        kept, before = tuple(items), self.before or self
        steps = (*self.steps, (items, where))
        as_is = {n: e for n, e in items.items() if isinstance(e, exp.Column) and e.name == n}
        condition = {} if where is None else {"where": written(where)}
        if kept == self.names and len(as_is) == len(items):
            outputs = self.outputs.call("select", **condition) if condition else self.outputs
            return replace(self, outputs=outputs, before=before, steps=steps, kinds=kinds)
        places: list[str | dict[str, str]] = []
        for name, expression in items.items():
            if name in as_is:
                places.append(name)
            elif places and isinstance(places[-1], dict):
                places[-1][name] = written(expression)
            else:
                places.append({name: written(expression)})
        last = places.pop() if isinstance(places[-1], dict) and "where" not in places[-1] else {}
        assert isinstance(last, dict)
        try:
            outputs = self.outputs.call("select", *places, **condition, **last)
        except QueryError:
            self._raise_at({n: e for n, e in items.items() if n not in as_is}, where)
            raise
        changed = replace(self, outputs=outputs, names=kept, before=before)
        return replace(changed, steps=steps, kinds=kinds)

    def _raise_at(self, items: Mapping[str, exp.Expr], where: exp.Expr | None) -> None:
        """Raise `SqlError` with the place of the expression that is refused alone, too."""
        if where is not None:
            with placed(where):
                self.outputs.call("select", where=written(where))
        for name, expression in items.items():
            with placed(expression):
                self.outputs.call("select", {name: written(expression)})


def result(name: str) -> exp.Column:
    """Return a result as a column of an expression."""
    return exp.column(exp.to_identifier(name, quoted=True))


def bound(column: str) -> exp.Expr:
    """Return a bound of windows, or their time, over the results."""
    if column != "window_time":
        return result(column)
    tick = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.Var(this="SECOND"))
    return exp.Sub(this=result("window_end"), expression=tick)


def meant(node: exp.Expr, meaning: Meaning, rule: str) -> exp.Expr:
    """Return an expression over the results for one over the rows.

    Raises
    ------
    SqlError
        With ``rule``, where a column of it is none of the results.
    """

    def visit(each: exp.Expr) -> exp.Expr:
        found = meaning(each)
        if found is not None:
            return found
        if isinstance(each, exp.Column):
            raise refused(each, rule)
        if isinstance(each, exp.Star):
            raise refused(each, "* stands for the rows of a table: name keys and aggregates")
        if isinstance(each, exp.Query):
            raise refused(each, "a query in an expression is not covered: join it")
        if isinstance(each, exp.Window):
            raise refused(each, "OVER stands in the list of SELECT, over rows of a table")
        if isinstance(each, exp.AggFunc):
            raise refused(each, "an aggregate goes with GROUP BY and windows, or with OVER")
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


def name_of(item: Item) -> str:
    """Return what Spark calls an item of the list of SELECT."""
    if item.alias is not None:
        return item.alias
    node = item.node
    if SHOWN in node.meta:
        return str(node.meta[SHOWN])
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
        return "count(1)"
    shown = node.sql(dialect="spark", normalize_functions="lower", identify=False)
    return shown.replace("`", "")


def named_items(items: tuple[Item, ...], of: Callable[[exp.Expr], exp.Expr]) -> dict[str, exp.Expr]:
    """Return the list of SELECT by the names of its items.

    Raises
    ------
    SqlError
        If two have one name.
    """
    named: dict[str, exp.Expr] = {}
    for item in items:
        name = name_of(item)
        if name.lower() in (other.lower() for other in named):
            raise refused(item.node, "results have different names: say AS", name)
        with placed(item.node):
            named[name] = of(item.node)
    return named


def named_result(node: exp.Expr, names: tuple[str, ...]) -> exp.Column | None:
    """Return the result that a text names, by any case; None if it names none."""
    if not isinstance(node, exp.Column):
        return None
    found = [name for name in names if name.lower() == node.name.lower()]
    return result(found[0]) if found else None


def outer(statement: Statement, of: Results, where: exp.Expr | None) -> Results:
    """Return what a query around others makes of their results.

    Raises
    ------
    SqlError
        If it does more than choose.
    """
    for clause in (statement.group, statement.having, *statement.order, *statement.over):
        if clause is not None:
            rule = "a query around windows chooses columns and rows of their results, no more"
            raise refused(clause, rule)

    def meaning(node: exp.Expr) -> exp.Expr | None:
        return named_result(node, of.names)

    rule = f"there is no such result; there are {', '.join(of.names)}"
    condition = None if where is None else meant(where, meaning, rule)
    check_condition(of, condition, where)
    items = with_all(statement, of.names)
    named = named_items(items, lambda node: meant(node, meaning, rule))
    return chosen_of(of, statement, items, named, condition)


def chosen_of(
    of: Results,
    statement: Statement,
    items: Sequence[Item],
    named: Mapping[str, exp.Expr],
    condition: exp.Expr | None,
) -> Results:
    """Return what is chosen of results that may tell changes.

    Parameters
    ----------
    of : Results
    statement : Statement
        Around them.
    items : sequence of Item
        Its list of SELECT.
    named : mapping of str to sqlglot.exp.Expr
        The same over the results.
    condition : sqlglot.exp.Expr, optional
        Over the results.

    Raises
    ------
    SqlError
        If a change would be lost.
    """
    for item, (name, expression) in zip(items, named.items(), strict=True):
        if of.change is not None and name.lower() == of.change and expression != result(of.change):
            rule = "the results tell in a column of this name what changes are: say AS"
            raise refused(item.node, rule, name)
    with placed(statement.select):
        return of.select(named, condition)


def check_condition(of: Results, condition: exp.Expr | None, node: exp.Expr | None) -> None:
    """Raise `SqlError`, with the place of a node, if a condition would lose changes."""
    if of.change is not None and condition is not None and node is not None:
        with placed(node):  # it is tried alone
            of.select({}, condition, star=True)


def with_all(statement: Statement, names: Sequence[str]) -> tuple[Item, ...]:
    """Return the list of SELECT with the names that ``*`` stands for."""
    items: list[Item] = []
    for item in statement.items:
        if statement.is_all(item.node):
            items += (Item(result(name), None) for name in names)
        else:
            items.append(item)
    return tuple(items)
