"""Joins: of rows near in time, of rows and versions, and of the rows of windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from gpu_windows.expressions.arrow import ArrowExpressions
from gpu_windows.expressions.places import placed, refused
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.rules import LONG_MIN
from gpu_windows.sql.inputs import Columns, Input, check_timed
from gpu_windows.sql.kinds import kind_of_type, with_kinds
from gpu_windows.sql.results import Results, Settings, bound, meant, named_items, result
from gpu_windows.sql.said import Said
from gpu_windows.sql.stages import in_same_windows, times_of_pairs
from gpu_windows.sql.statement import Item, Statement, conjuncts, together
from gpu_windows.sql.times import Times
from gpu_windows.sql.translator import Translator
from gpu_windows.sql.versions import check_versioned, unversioned, version_of
from gpu_windows.sql.windows import duration
from gpu_windows.vocabulary.options import show_ticks

_BOUNDS = ("window_start", "window_end")
#: A column of each side that is null in no row of it.
_HERE = "true"


def has_join(statement: Statement, translator: Translator) -> bool:
    """Whether a query joins tables."""
    del translator
    return bool(statement.joins)


def read_join(statement: Statement, translator: Translator) -> Results:
    """Return the pairs of two tables.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    if len(statement.joins) > 1:
        raise refused(statement.joins[1], "a query joins two tables")
    for clause in (statement.group, statement.having, *statement.order, *statement.over):
        if clause is not None:
            raise refused(clause, "a join gives pairs: aggregate them in another query")
    return _Join(statement, translator).results()


class _Join:
    """Reads a join of two tables."""

    def __init__(self, statement: Statement, translator: Translator) -> None:
        self._statement = statement
        self._join = statement.joins[0]
        left = translator.table(statement.source)
        right = translator.table(unversioned(self._join))
        conditions = [*conjuncts(self._join.args.get("on")), *conjuncts(statement.where)]
        self._left, self._right = in_same_windows(left, right, conditions)
        self._settings: Settings = translator.settings.over(self._left, self._right)
        self._span: tuple[int, int] | None = None
        if self._left.alias.lower() == self._right.alias.lower():
            rule = "the two sides of a join have different names: say AS"
            raise refused(self._join.this, rule, self._right.alias)
        self._how = _how(self._join)
        self._columns = Columns(self._left), Columns(self._right)
        self._picked: tuple[dict[str, str], dict[str, str]] = {}, {}

    def results(self) -> Results:
        """Return the results."""
        sides = (self._left, self._right)
        if any(side.window for side in sides) and not all(side.window for side in sides):
            rule = "both sides of a join are in windows, or none"
            raise refused(self._join.this, rule)
        check_timed(self._left, self._statement.source)
        check_timed(self._right, self._join.this)
        conditions, after = self._conditions()
        keys, rest = self._keys(conditions)
        if version_of(self._join) is not None:
            step, where = self._of_versions(keys), rest
        elif self._left.window is not None:
            step, where = self._of_windows(keys, rest)
        else:
            step, where = self._of_times(keys, rest)
        return self._chosen(step, keys, where, after)

    def _conditions(self) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """Return what makes a pair, and what chooses among the results."""
        on, where = self._join.args.get("on"), conjuncts(self._statement.where)
        if self._join.args.get("using"):
            raise refused(self._join, "USING is not covered: say ON a.key = b.key")
        if on is not None:
            return self._with_times(conjuncts(on), where)
        if self._how != "inner":
            raise refused(self._join, "this join needs ON")
        return where, []

    def _with_times(
        self, on: list[exp.Expr], where: list[exp.Expr]
    ) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """Return the same; what WHERE says of the times of an inner join makes its pairs, too."""
        is_near = self._how == "inner" and version_of(self._join) is None
        if not is_near or self._left.window is not None:
            return on, where
        others = Times(self._side_of_time).bounds(where)[2]
        return [*on, *(each for each in where if each not in others)], others

    def _side_of(self, node: exp.Expr) -> int | None:
        """Return the side of all columns of an expression; None if there are of both, or none."""
        sides = {self._owner(column) for column in node.find_all(exp.Column)}
        return sides.pop() if len(sides) == 1 else None

    def _owner(self, column: exp.Column) -> int:
        owners = [i for i, side in enumerate((self._left, self._right)) if side.owns(column)]
        if len(owners) == 1:
            return owners[0]
        both = f"{self._left.alias} and {self._right.alias}"
        if owners:
            raise refused(column, f"{both} have a column of this name: say whose")
        raise refused(column, f"neither {self._left.alias} nor {self._right.alias} has it")

    def _keys(
        self, conditions: Sequence[exp.Expr]
    ) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
        """Return pairs of expressions that are equal, and all other conditions."""
        keys, rest = [], []
        for each in conditions:
            pair = self._equal(each)
            if pair is None or self._is_of_windows(each) or self._is_of_times(*pair):
                rest.append(each)
            else:
                keys.append(pair)
        return keys, rest

    def _equal(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """Return both sides of an equation, the left table's first."""
        if not isinstance(node, exp.EQ):
            return None
        sides = self._side_of(node.this), self._side_of(node.expression)
        if sides == (0, 1):
            return node.this, node.expression
        return (node.expression, node.this) if sides == (1, 0) else None

    def _is_of_windows(self, node: exp.Expr) -> bool:
        return any(
            side.window_column(column) is not None
            for column in node.find_all(exp.Column)
            for side in (self._left, self._right)
        )

    def _is_of_times(self, left: exp.Expr, right: exp.Expr) -> bool:
        if self._left.window is not None:
            return False
        return self._is_time(0, left) and self._is_time(1, right)

    def _is_time(self, side: int, node: exp.Expr) -> bool:
        of = (self._left, self._right)[side]
        plain = isinstance(node, exp.Column) and self._owner(node) == side
        return plain and of.column(node) == of.time  # type: ignore[arg-type]

    def _side_of_time(self, column: exp.Column) -> int | None:
        side = self._owner(column)
        return side if self._is_time(side, column) else None

    # ---- what is a pair

    def _keyed(self, keys: Sequence[tuple[exp.Expr, exp.Expr]]) -> tuple[list[str], list[str]]:
        ours, its = self._columns
        if not keys:
            return [ours.added(_HERE)], [its.added(_HERE)]
        return [ours.name(one) for one, _ in keys], [its.name(other) for _, other in keys]

    def _of_windows(
        self, keys: Sequence[tuple[exp.Expr, exp.Expr]], rest: Sequence[exp.Expr]
    ) -> tuple[Any, list[exp.Expr]]:
        same, others = set(), []
        for each in rest:
            pair = self._equal(each)
            named = pair and [
                side.window_column(one)
                for side, one in zip((self._left, self._right), pair, strict=True)
            ]
            if named and named[0] == named[1] and named[0] is not None:
                same.add(named[0])
            elif self._is_of_windows(each):
                raise refused(each, "windows are joined where both their bounds are equal")
            else:
                others.append(each)
        if not {*_BOUNDS} <= same:
            rule = "a join of windows is ON window_start and window_end of both"
            raise refused(self._join, rule)
        ours, its = self._left.window, self._right.window
        assert ours is not None
        assert its is not None
        if ours.assigner.value != its.assigner.value:
            raise refused(self._join.this, "both sides are in the same windows", its.assigner.text)
        by_left, by_right = self._keyed(keys)

        def step() -> Said:
            right = self._columns[1].stream.call("key_by", *by_right)
            left = self._columns[0].stream.call("key_by", *by_left)
            return left.call("join", _inline(right)).call("window", ours.assigner)

        return step, others

    def _of_versions(self, keys: Sequence[tuple[exp.Expr, exp.Expr]]) -> Any:
        sides = self._left, self._right
        check_versioned(self._join, self._how, *sides, has_key=len(keys) > 0)
        by_left, by_right = self._keyed(keys)
        self._span = LONG_MIN, 0  # a version is of the left row's time or before

        def step() -> Said:
            right = self._columns[1].stream.call("key_by", *by_right)
            left = self._columns[0].stream.call("key_by", *by_left)
            return left.call("temporal_join", _inline(right))

        return step

    def _of_times(
        self, keys: Sequence[tuple[exp.Expr, exp.Expr]], rest: Sequence[exp.Expr]
    ) -> tuple[Any, list[exp.Expr]]:
        lower, upper, others = Times(self._side_of_time).bounds(rest)
        if not lower or not upper:
            rule = (
                "a join without windows is of rows near in time, from both sides: ON a.key = b.key "
                "AND b.ts BETWEEN a.ts - INTERVAL '5' MINUTES AND a.ts + INTERVAL '5' MINUTES"
            )
            raise refused(self._join, rule)
        bounds = max(lower), min(upper)
        if bounds[0] > bounds[1]:
            shown = " > ".join(map(show_ticks, bounds))
            raise refused(self._join, "the bounds of time leave nothing between them", shown)
        self._span = bounds
        by_left, by_right = self._keyed(keys)

        def step() -> Said:
            right = self._columns[1].stream.call("key_by", *by_right)
            left = self._columns[0].stream.call("key_by", *by_left)
            pairs = left.call("interval_join", _inline(right))
            return pairs.call("between", *map(duration, bounds)).call("join_late")

        return step, others

    # ---- what is shown of it

    def _chosen(
        self,
        step: Any,
        keys: Sequence[tuple[exp.Expr, exp.Expr]],
        where: Sequence[exp.Expr],
        after: Sequence[exp.Expr],
    ) -> Results:
        with placed(self._join):
            named = named_items(
                tuple(self._items()), lambda node: meant(node, self._meaning, "no table has it")
            )
        rest = together([*after])
        condition = None if rest is None else meant(rest, self._meaning, "no table has it")
        pairs = self._side_by_side(where)
        inner = None if pairs is None else meant(pairs, self._meaning_in_pair, "no table has it")
        ours, its = self._picked
        if self._how in LEFT_ALONE and inner is None:
            its = {}
        if not ours and (not its or self._how in LEFT_ALONE):
            ours = {"sql_left": self._columns[0].added(_HERE)}
        if self._how in LEFT_ALONE and any(name in self._picked[1] for name in _names(named)):
            raise refused(self._statement.select, "SEMI and ANTI joins show the left side alone")
        with placed(self._join):
            said = self._settings.of(step())
            options = {"how": self._how, **self._where(inner, ours, its)}
            outputs = said.call("with_outputs").call("select", ours, its, **options)
        names = tuple(outputs.value.plan.result_schema.names)
        public = outputs.value.plan.query.public
        window, of_each = self._left.window, (self._left.time, self._right.time)
        times = times_of_pairs(self._how, self._span, (ours, its), of_each)
        assigner = None if window is None else window.assigner
        results = Results(outputs, tuple(public.get(name, name) for name in names), assigner, times)
        with placed(self._statement.select):
            return results.select(named, condition)

    def _where(
        self, condition: exp.Expr | None, ours: Mapping[str, str], its: Mapping[str, str]
    ) -> dict[str, Said]:
        """Return what must hold for a pair besides, as an expression of Arrow."""
        if condition is None:
            return {}
        sides = zip((ours, its), self._columns, strict=True)
        fields = [
            columns.stream.value.source.schema.field(column).with_name(name)
            for chosen, columns in sides
            for name, column in chosen.items()
        ]
        schema = pa.schema(fields)
        condition = with_kinds(condition, lambda c: kind_of_type(schema.field(c.name).type))
        found = ArrowExpressions(schema).typed(condition)
        return {"where": Said(found.expression, str(found.expression))}

    def _items(self) -> list[Item]:
        """Return the list of SELECT, ``*`` written out."""
        items: list[Item] = []
        for item in self._statement.items:
            node = item.node
            if isinstance(node, exp.Star):
                items += self._stars((self._left, self._right))
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                sides = (self._left, self._right)
                of = [side for side in sides if side.alias.lower() == node.table.lower()]
                if not of:
                    raise refused(node, "there is no such table here", node.table)
                items += self._stars(of)
            else:
                items.append(item)
        return items

    def _stars(self, sides: Sequence[Input]) -> list[Item]:
        shown = sides[:1] if self._how in LEFT_ALONE else sides
        return [
            Item(exp.column(exp.to_identifier(name, quoted=True), table=side.alias), None)
            for side in shown
            for name in side.names.known
        ]

    def _meaning(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column):
            return None
        side = self._owner(node)
        of = (self._left, self._right)[side]
        window = of.window_column(node)
        if window is None:
            return self._shown(side, of.column(node))
        if self._how in ("inner", ("left", "right")[side]) or self._how in LEFT_ALONE:
            return bound(window)
        here = self._shown(side, self._columns[side].added(_HERE))
        return exp.Case(ifs=[exp.If(this=here, true=bound(window))])

    def _side_by_side(self, conditions: Sequence[exp.Expr]) -> exp.Expr | None:
        """Return conditions as one: those of the left side, of the right side, of both."""
        each = [(self._side_of(node), node) for node in conditions]
        of_one = (together([node for side, node in each if side == i]) for i in (0, 1))
        both = [node for side, node in each if side is None]
        return together([*(node for node in of_one if node is not None), *both])

    def _meaning_in_pair(self, node: exp.Expr) -> exp.Expr | None:
        """Return the same in a condition on pairs: what is of one side a DataFrame has computed."""
        found = self._meaning(node)
        if found is not None or not self._left.timed.source.is_of_spark:
            return found
        is_moment = isinstance(node, exp.Cast) and node.find(exp.Column) is None
        side = 0 if is_moment else self._side_of(node)
        if side is None or isinstance(node, exp.Interval) or self._is_of_windows(node):
            return None
        return self._shown(side, self._columns[side].name(node))

    def _shown(self, side: int, column: str) -> exp.Column:
        """Return the result that is a column of a side."""
        for name, of in self._picked[side].items():
            if of == column:
                return result(name)
        name = f"{('left', 'right')[side]}_{column}"
        self._picked[side][name] = column
        return result(name)


def _names(named: Mapping[str, exp.Expr]) -> set[str]:
    return {column.name for node in named.values() for column in node.find_all(exp.Column)}


def _inline(said: Said) -> Said:
    """Return what is an argument: its text a step deeper."""
    return replace(said, text=said.text.replace("\n    ", "\n        "))


def _how(join: exp.Join) -> str:
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if join.args.get("method") or kind not in ("", "inner", "outer", "semi", "anti", "cross"):
        raise refused(join, "a join is INNER, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI")
    if kind in ("semi", "anti"):
        if side not in ("", "left"):
            raise refused(join, "SEMI and ANTI joins keep the left side")
        return kind
    return side or "inner"
