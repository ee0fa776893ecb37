"""Interval joins, temporal joins and window joins: JOIN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from gpu_windows.expressions.arrow import build_expression
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.functions.join import LEFT_ALONE
from gpu_windows.rules import LONG_MIN
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.kinds import temporal_join
from gpu_windows.sql.kinds.join_sides import Sides, join_type
from gpu_windows.sql.syntax.statement import Item, Statement, conjunction, conjuncts
from gpu_windows.sql.syntax.type_names import CLOCK_TIME, TIMESTAMP
from gpu_windows.sql.syntax.value_types import apply_type_rules, infer_type, value_type
from gpu_windows.sql.syntax.window_functions import duration_call
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import (
    WINDOW_BOUNDS,
    Input,
    free_name,
    result_column,
    window_bound,
)
from gpu_windows.sql.tables.results import (
    Results,
    Settings,
    items_by_name,
    rewrite_over_results,
)
from gpu_windows.sql.tables.stages import delays_of_pairs, in_same_windows
from gpu_windows.sql.translator import Translator
from gpu_windows.vocabulary.options import show_ticks

#: Joins the left rows with the right ones.
_Step = Callable[[ApiCall, ApiCall], ApiCall]
#: A column of each side that is never null in its rows: null in a result, the side is missing.
_PRESENT = "true"
_NO_COLUMN = "neither table has a column of this name"


def read_join(statement: Statement, translator: Translator) -> Results:
    """Return the joined pairs of two tables.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    join = Join(statement, translator)
    return join.results(join.expand_stars())


class Join:
    """Reads a join of two tables.

    Parameters
    ----------
    statement : Statement
        Of its clauses, those of the join and the list of SELECT are read.
    translator : Translator

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """

    def __init__(self, statement: Statement, translator: Translator) -> None:
        self._statement = statement
        self._join = statement.joins[0]
        left = translator.table(statement.source)
        right = temporal_join.read_right_table(self._join, translator)
        conditions = [*conjuncts(self._join.args.get("on")), *conjuncts(statement.where)]
        self.sides = Sides(in_same_windows(left, right, conditions))
        self._left, self._right = self.sides.tables
        self._settings: Settings = translator.settings.for_inputs(self._left, self._right)
        self._span: tuple[int, int] | None = None
        if self._left.alias.lower() == self._right.alias.lower():
            rule = "both sides of the join have the same name: rename one with AS"
            raise sql_error(self._join.this, rule, self._right.alias)
        self._join_type = join_type(self._join)
        self._columns = Columns(self._left), Columns(self._right)
        self._picked: tuple[dict[str, str], dict[str, str]] = {}, {}

    def results(self, items: Sequence[Item]) -> Results:
        """Return the results: expressions over columns of both sides.

        Raises
        ------
        SqlError
            With the position of what is not covered.
        """
        in_windows = [side.window is not None for side in self.sides.tables]
        if any(in_windows) and not all(in_windows):
            rule = "a join needs windows on both sides, or on neither"
            raise sql_error(self._join.this, rule)
        temporal_join.check_times(self._join, self._statement.source, self._left, self._right)
        conditions, after = self._conditions()
        keys, rest = self.sides.keys(conditions)
        if temporal_join.version_of(self._join) is not None:
            step, where = self._temporal_join(keys), rest
        elif self._left.window is not None:
            step, where = self._window_join(keys, rest)
        else:
            step, where = self._interval_join(rest)
        return self._select(step, self._key_columns(keys), where, after, items)

    def _conditions(self) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """Return the conditions of a pair, and those that filter results."""
        on, where = self._join.args.get("on"), conjuncts(self._statement.where)
        if self._join.args.get("using"):
            raise sql_error(self._join, "USING is not covered: use ON a.key = b.key")
        if on is None and self._join_type != "inner":
            raise sql_error(self._join, "an outer join needs ON")
        return self._with_times(conjuncts(on), where)

    def _window_conditions(self) -> list[exp.Expr]:
        """Return the conditions on windows of both sides, which filter results.

        Raises
        ------
        SqlError
            If results have rows of the other side alone, which such a condition is not for.
        """
        sides = ("left", "right")
        for index, side in enumerate(self.sides.tables):
            keeps_other = self._join_type in (sides[1 - index], "full", *("anti",) * index)
            if side.window_conditions and keeps_other:
                rule = f"the {sides[index]} side of this join cannot be filtered by its windows"
                raise sql_error(self._join, rule)
        return [*self._left.window_conditions, *self._right.window_conditions]

    def _with_times(
        self, on: list[exp.Expr], where: list[exp.Expr]
    ) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """Return the same; comparisons of times in WHERE move to ON, for inner joins keys, too.

        A comparison in WHERE of an outer join is never true for a missing row: the join is inner.
        """
        is_temporal = temporal_join.version_of(self._join) is not None
        if self._join_type in LEFT_ALONE or is_temporal:
            return on, where
        if self._left.window is None:
            timed = [each for each in where if self.sides.bounds_times(each)]
            if timed:
                self._join_type = "inner"
                on, where = [*on, *timed], [each for each in where if each not in timed]
        if self._join_type == "inner":
            pairs = [each for each in where if self.sides.equal(each) is not None]
            on, where = [*on, *pairs], [each for each in where if each not in pairs]
        return on, where

    # ---- the step of the API

    def _key_columns(
        self, keys: Sequence[tuple[exp.Expr, exp.Expr]]
    ) -> tuple[list[str], list[str]]:
        """Return the columns that are equal in a pair."""
        left, right = self._columns
        if not keys:
            return [left.add(_PRESENT)], [right.add(_PRESENT)]
        return [left.name(one) for one, _ in keys], [right.name(other) for _, other in keys]

    def _window_join(
        self, keys: Sequence[tuple[exp.Expr, exp.Expr]], rest: Sequence[exp.Expr]
    ) -> tuple[_Step, list[exp.Expr]]:
        same, others = set(), []
        for each in rest:
            pair = self.sides.equal(each)
            bound = None if pair is None else self._left.window_column(pair[0])
            if pair and bound is not None and bound == self._right.window_column(pair[1]):
                same.add(bound)
            elif self.sides.has_window_columns(each):
                raise sql_error(each, "a window join needs equal window_start and window_end")
            else:
                others.append(each)
        left, right = self._left.window, self._right.window
        assert left is not None
        assert right is not None
        if left.start is not None and right.start is not None:
            starts = left.start, right.start
            if starts in zip(*self._key_columns(keys), strict=True):
                same.add(WINDOW_BOUNDS[0])
        if not {*WINDOW_BOUNDS} <= same:
            rule = "a window join needs window_start and window_end of both sides in ON"
            raise sql_error(self._join, rule)
        assigner = left.assigner
        if assigner.value != right.assigner.value:
            rule = "a window join needs the same windows on both sides"
            raise sql_error(self._join.this, rule, right.assigner.code)

        def step(rows: ApiCall, added: ApiCall) -> ApiCall:
            return rows.call("join", added).call("window", assigner)

        return step, others

    def _temporal_join(self, keys: Sequence[tuple[exp.Expr, exp.Expr]]) -> _Step:
        temporal_join.check_temporal_join(
            self._join, self._join_type, *self.sides.tables, has_key=len(keys) > 0
        )
        self._span = LONG_MIN, 0  # a version is valid at the left row's time: it is not later
        return lambda left, right: left.call("temporal_join", right)

    def _interval_join(self, rest: Sequence[exp.Expr]) -> tuple[_Step, list[exp.Expr]]:
        lower, upper, others = self.sides.time_bounds(rest)
        if not lower or not upper:
            rule = (
                "a join without windows needs a lower and an upper bound of time: ON a.key = b.key "
                "AND b.ts BETWEEN a.ts - INTERVAL '5' MINUTES AND a.ts + INTERVAL '5' MINUTES"
            )
            raise sql_error(self._join, rule)
        bounds = max(lower), min(upper)
        if bounds[0] > bounds[1]:
            value = " > ".join(map(show_ticks, bounds))
            raise sql_error(self._join, "the lower bound of time exceeds the upper bound", value)
        self._span = bounds

        def step(left: ApiCall, right: ApiCall) -> ApiCall:
            pairs = left.call("interval_join", right)
            return pairs.call("between", *map(duration_call, bounds)).call("join_late")

        return step, others

    def _apply(self, step: _Step, by_left: list[str], by_right: list[str]) -> ApiCall:
        """Return a step over the rows of both sides by their keys."""
        right = self._columns[1].stream.call("key_by", *by_right)
        indented = replace(right, code=right.code.replace("\n    ", "\n        "))
        left = self._columns[0].stream.call("key_by", *by_left)
        return self._settings.apply(step(left, indented))

    # ---- results

    def _select(
        self,
        step: _Step,
        keys: tuple[list[str], list[str]],
        where: Sequence[exp.Expr],
        after: Sequence[exp.Expr],
        items: Sequence[Item],
    ) -> Results:
        with errors_at(self._join):
            selected = items_by_name(tuple(items), self._rewrite)
        rest, pairs = conjunction([*after]), self._conjunction_by_side(where)
        unmatched = rest and self._rewrite(rest)
        condition = conjunction([*conjuncts(unmatched), *self._window_conditions()])
        inner = conjunction([*map(self._pair_condition, conjuncts(pairs))])
        left, right = self._picked
        if self._join_type in LEFT_ALONE and inner is None:
            right = {}
        if not left and (not right or self._join_type in LEFT_ALONE):
            left = {"sql_left": self._columns[0].add(_PRESENT)}
        used = {each.name for node in selected.values() for each in node.find_all(exp.Column)}
        if self._join_type in LEFT_ALONE and used & {*self._picked[1]}:
            rule = "SEMI and ANTI joins return columns of the left side alone"
            raise sql_error(self._statement.select, rule)
        with errors_at(self._join):
            step_call = self._apply(step, *keys)
            options = {"how": self._join_type, **self._where(inner, left, right)}
            outputs = step_call.call("with_outputs").call("select", left, right, **options)
        with errors_at(self._statement.select):
            return self._results_of_pairs(outputs, left, right).select(selected, condition)

    def _results_of_pairs(
        self, outputs: ApiCall, left: Mapping[str, str], right: Mapping[str, str]
    ) -> Results:
        """Return the results of a join; ``left``, ``right``: their columns of each side."""
        names = tuple(outputs.value.plan.result_schema.names)
        public = outputs.value.plan.query.display_names
        window = self._left.window
        delays = delays_of_pairs(self._join_type, self._span, (left, right), self.sides.tables)
        results = Results(outputs, tuple(public.get(name, name) for name in names), delays=delays)
        if window is None:
            return results
        starts = (name for name, column in left.items() if column == window.start)
        return replace(results, window=window.assigner, start=next(starts, None))

    def _where(
        self, condition: exp.Expr | None, left: Mapping[str, str], right: Mapping[str, str]
    ) -> dict[str, ApiCall]:
        """Return the option with the remaining condition of a pair, as an Arrow expression."""
        if condition is None:
            return {}
        sides = zip((left, right), self._columns, strict=True)
        fields = [
            columns.stream.value.source.schema.field(column).with_name(name)
            for picked, columns in sides
            for name, column in picked.items()
        ]
        schema = pa.schema(fields)
        condition = apply_type_rules(condition, lambda c: value_type(schema.field(c.name).type))
        found = build_expression(condition, schema)
        return {"where": ApiCall(found.expression, str(found.expression))}

    def expand_stars(self) -> list[Item]:
        """Return the list of SELECT with ``*`` expanded."""
        items: list[Item] = []
        for item in self._statement.items:
            node = item.node
            if isinstance(node, exp.Star):
                items += self.star_items(self.sides.tables)
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                owners = self.sides.with_alias(node.table)
                if not owners:
                    raise sql_error(node, "there is no such table here", node.table)
                items += self.star_items(owners)
            else:
                items.append(item)
        return items

    def star_items(self, sides: Sequence[Input]) -> list[Item]:
        """Return the columns of sides of the join that ``*`` stands for."""
        returned = sides[:1] if self._join_type in LEFT_ALONE else sides
        return [
            Item(exp.column(exp.to_identifier(name, quoted=True), table=side.alias), None)
            for side in returned
            for name in side.all_names
        ]

    def _rewrite(self, node: exp.Expr) -> exp.Expr:
        return rewrite_over_results(node, self._to_result, _NO_COLUMN)

    def _to_result(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column):
            return None
        side = self.sides.owner(node)
        table = self.sides.tables[side]
        window = table.window_column(node)
        if window is None:
            return self._column_result(side, table.column(node))
        if self._join_type in ("inner", ("left", "right")[side]) or self._join_type in LEFT_ALONE:
            return window_bound(window)
        here = self._column_result(side, self._columns[side].add(_PRESENT))
        return exp.Case(ifs=[exp.If(this=here, true=window_bound(window))])

    def _conjunction_by_side(self, conditions: Sequence[exp.Expr]) -> exp.Expr | None:
        """Return the conjunction of conditions, ordered: left side, right side, both."""
        each = [(self.sides.side_of(node), node) for node in conditions]
        one_sided = (conjunction([node for side, node in each if side == i]) for i in (0, 1))
        both = [node for side, node in each if side is None]
        return conjunction([*(node for node in one_sided if node is not None), *both])

    def _pair_condition(self, condition: exp.Expr) -> exp.Expr:
        """Return a condition of pairs over results; DataFrames compute one-sided parts before.

        The rest is computed in UTC: clock times beside instants become instants of the session's
        zone.
        """
        of_spark = self._left.timed_stream.source.is_of_spark
        nodes = condition.walk() if of_spark else ()
        times = {infer_type(each, self._type_of) for each in nodes}
        to_instants = TIMESTAMP in times and CLOCK_TIME in times

        def to_result(node: exp.Expr) -> exp.Expr | None:
            found = self._to_result(node)
            is_part = found is None or (to_instants and self._type_of(node) == CLOCK_TIME)
            return (
                self._side_result(node, to_instants=to_instants) if of_spark and is_part else found
            )

        return rewrite_over_results(condition, to_result, _NO_COLUMN)

    def _side_result(self, node: exp.Expr, *, to_instants: bool) -> exp.Expr | None:
        """Return the result that a side computes; None for other parts of a condition."""
        is_constant = isinstance(node, exp.Cast) and node.find(exp.Column) is None
        side = 0 if is_constant else self.sides.side_of(node)
        if side is None or isinstance(node, exp.Interval) or self.sides.has_window_columns(node):
            return None
        if to_instants and infer_type(node, self._type_of) == CLOCK_TIME:
            node = exp.cast(node.copy(), exp.DType.TIMESTAMPLTZ)
        return self._column_result(side, self._columns[side].name(node))

    def _type_of(self, node: exp.Expr) -> str | None:
        """Return the type of a column of a side; None for other nodes."""
        if not isinstance(node, exp.Column):
            return None
        return self.sides.tables[self.sides.owner(node)].type_of(node)

    def _column_result(self, side: int, column: str) -> exp.Column:
        """Return the result of a side's column, and pick the column."""
        for name, picked in self._picked[side].items():
            if picked == column:
                return result_column(name)
        sources = [each.timed_stream.source for each in self.sides.tables]
        used = [name for source in sources for name in source.schema.names]
        name = free_name(f"{('left', 'right')[side]}_{column}", used)
        self._picked[side][name] = column
        return result_column(name)
