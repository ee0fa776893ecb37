"""Evaluates an expression tree; each part only for the rows for which Spark evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.errors import ExpressionError, GpuWindowsError, did_you_mean
from gpu_windows.expressions import casts, strings
from gpu_windows.expressions.arguments import check_arguments
from gpu_windows.expressions.columns import Columns, field_of
from gpu_windows.expressions.comparisons import choose, compare, connect, is_in, unify
from gpu_windows.expressions.functions.table import (
    FUNCTIONS,
    LIST_TO_TEXT,
    MAP_FUNCTION,
    OF_ONE_TYPE,
    RAISING,
    is_covered_call,
    plain_call,
)
from gpu_windows.expressions.functions.time_formats import parse_time
from gpu_windows.expressions.intervals import interval_ticks
from gpu_windows.expressions.numbers import compute_arithmetic, parse_number, round_number
from gpu_windows.expressions.sql_text import excerpt, sql_error
from gpu_windows.expressions.types import arrow_type
from gpu_windows.expressions.values import Guard, Value, call, null

#: Maximum parts of the condition of a join: Arrow evaluates them recursively.
_MAX_PARTS = 5_000
_ALL = Guard()


@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions over the rows of a table.

    Parameters
    ----------
    columns : Columns
    """

    columns: Columns

    def evaluate(self, node: exp.Expr, guard: Guard = _ALL) -> Value:
        """Return the values of an expression; for rows outside of the guard they are undefined.

        Raises
        ------
        SqlError
            If it is not covered over Arrow tables.
        ExpressionError
            If a row has no value, such as a quotient by 0.
        """
        make = _MAKERS.get(type(node))
        if make is None or not is_covered(node):
            function = node.name if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
            names = (name.lower() for name in exp.FUNCTION_BY_NAME)
            near = did_you_mean(function, names) if isinstance(node, exp.Anonymous) else ""
            rule = (
                f"{function} is not covered over Arrow tables{near}: add it as a column before, or"
                " query a Spark DataFrame"
            )
            raise sql_error(node, rule)
        check_arguments(node)
        try:
            found = make(self, node, guard)
            if node.args.get("negate"):
                found = call(pc.invert, found)
        except pa.ArrowException as error:
            raise self._failure(node, error) from None
        if found.parts > _MAX_PARTS:
            rule = f"the condition of a join has more than {_MAX_PARTS} parts: add a column before"
            raise sql_error(node, rule)
        return found

    def _failure(self, node: exp.Expr, error: pa.ArrowException) -> GpuWindowsError:
        message = str(error).partition("\n")[0]
        if not len(self.columns.table):
            return sql_error(node, f"Arrow cannot compute the expression: {message}")
        rule = "an expression must have a value for each row"
        return ExpressionError(rule, value=f"{message}: {excerpt(node)}")

    # ---- operands

    def _rounded_operand(self, node: exp.Expr, guard: Guard) -> Value:
        """Return an operand; of a column, times are rounded down to microseconds."""
        of = node.unnest()
        if isinstance(of, exp.Column):
            return self.columns.column(of, rounds=True)
        return self.evaluate(node, guard)

    def _second_operand(self, first: Value, node: exp.Expr, guard: Guard) -> Value:
        """Return the second operand, which is not evaluated where the first is null."""
        if isinstance(node, exp.Column | exp.Literal):
            return self.evaluate(node, guard)
        return self.evaluate(node, guard.where(call(pc.is_valid, first)))

    def _number(self, node: exp.Expr, guard: Guard) -> Value:
        """Return an operand, null outside of the guard; NULL alone becomes a DOUBLE."""
        of = self.evaluate(node, guard)
        return guard.mask(of.cast(pa.float64()) if types.is_null(of.dtype) else of)

    def _boolean_value(self, node: exp.Expr, guard: Guard) -> Value:
        found = self.evaluate(node, guard)
        if types.is_null(found.dtype):
            return found.cast(pa.bool_())
        if not types.is_boolean(found.dtype):
            raise sql_error(node, f"this must be true or false, got {found.dtype}")
        return found

    # ---- numbers

    def _arithmetic(self, node: exp.Binary, guard: Guard) -> Value:
        if isinstance(node, exp.Div | exp.Mod | exp.IntDiv):
            other = self.evaluate(node.expression, guard)
            one = self._second_operand(other, node.this, guard)
        else:
            one = self.evaluate(node.this, guard)
            other = self._second_operand(one, node.expression, guard)
        return compute_arithmetic(node, one, other, guard)

    def _negative(self, node: exp.Neg, guard: Guard) -> Value:
        of = node.this
        if isinstance(of, exp.Literal) and not of.is_string:
            return self.columns.constant(parse_number(node, f"-{of.this}"))
        return call(pc.negate_checked, self._number(of, guard))

    # ---- truth

    def _compare(self, node: exp.Binary, guard: Guard) -> Value:
        one = self.evaluate(node.this, guard)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            other = self.evaluate(node.expression, guard)
        else:
            other = self._second_operand(one, node.expression, guard)
        return compare(type(node), *unify([one, other], node))

    def _between(self, node: exp.Between, guard: Guard) -> Value:
        value = self.evaluate(node.this, guard)
        low = self._second_operand(value, node.args["low"], guard)
        above = compare(exp.GTE, *unify([value, low], node))
        guard = guard.unless(call(pc.invert, above))
        high = self._second_operand(value, node.args["high"], guard)
        return call(pc.and_kleene, above, compare(exp.LTE, *unify([value, high], node)))

    def _connector(self, node: exp.Connector, guard: Guard) -> Value:
        """Return AND or OR: evaluation stops at the first false, or true."""
        is_and, booleans = isinstance(node, exp.And), []
        for each in node.flatten():
            booleans.append(self._boolean_value(each, guard))
            guard = guard.unless(call(pc.invert, booleans[-1]) if is_and else booleans[-1])
        return connect(booleans, pc.and_kleene if is_and else pc.or_kleene)

    def _not(self, node: exp.Not, guard: Guard) -> Value:
        return call(pc.invert, self._boolean_value(node.this, guard))

    def _is(self, node: exp.Is, guard: Guard) -> Value:
        if isinstance(node.expression, exp.Null):
            return call(pc.is_null, self._rounded_operand(node.this, guard))
        if isinstance(node.expression, exp.Boolean):
            truth = self._boolean_value(node.this, guard)
            wanted = truth if node.expression.this else call(pc.invert, truth)
            return call(pc.coalesce, wanted, False)
        raise sql_error(node, "IS goes with NULL, TRUE and FALSE")

    def _in(self, node: exp.In, guard: Guard) -> Value:
        if not node.expressions:
            raise sql_error(node, "IN takes a list of values")
        value = self.evaluate(node.this, guard)
        guard, each = guard.where(call(pc.is_valid, value)), []
        for part in node.expressions:
            each.append(self.evaluate(part, guard))
            if each[-1].literal is None:
                pair = unify([value, each[-1]], node)
                guard = guard.unless(compare(exp.EQ, *pair))
        value, *each = unify([value, *each], node)
        return self._is_in_list(value, each)

    def _is_in_list(self, value: Value, each: Sequence[Value]) -> Value:
        literal = [one.literal for one in each if one.literal is not None]
        booleans = [compare(exp.EQ, value, one) for one in each if one.literal is None]
        if types.is_null(value.dtype) or not literal:
            booleans = booleans or [compare(exp.EQ, value, each[0])]
        else:
            booleans.append(is_in(value, literal))
        if not all(one.is_valid for one in literal):
            booleans.append(self.columns.constant(null(pa.bool_())))
        return connect(booleans, pc.or_kleene)

    # ---- choices

    def _case(self, node: exp.Case, guard: Guard) -> Value:
        of = None if node.this is None else self.evaluate(node.this, guard)
        return self._first_true(node, of, node.args["ifs"], node.args.get("default"), guard)

    def _if(self, node: exp.If, guard: Guard) -> Value:
        if node.args.get("false") is None:
            raise sql_error(node, "IF takes a condition and two values")
        return self._first_true(node, None, [node], node.args["false"], guard)

    def _first_true(
        self,
        node: exp.Expr,
        of: Value | None,
        branches: Sequence[exp.If],
        default: exp.Expr | None,
        guard: Guard,
    ) -> Value:
        """Return the value of the first branch whose condition is true, or the default."""
        conditions, results = [], []
        for branch in branches:
            if of is None:
                condition = self._boolean_value(branch.this, guard)
            else:
                test = self._second_operand(of, branch.this, guard)
                condition = compare(exp.EQ, *unify([of, test], branch))
            conditions.append(condition)
            results.append(self.evaluate(branch.args["true"], guard.where(condition)))
            guard = guard.unless(condition)
        results.append(self.evaluate(default or exp.Null(), guard))
        return choose(node, conditions, results)

    def _coalesce(self, node: exp.Coalesce, guard: Guard) -> Value:
        each = []
        for part in (node.this, *node.expressions):
            each.append(self.evaluate(part, guard))
            guard = guard.where(call(pc.is_null, each[-1]))
        return call(pc.coalesce, *unify(each, node))

    def _nullif(self, node: exp.Nullif, guard: Guard) -> Value:
        one = self.evaluate(node.this, guard)
        other = self._second_operand(one, node.expression, guard)
        is_same = call(pc.coalesce, compare(exp.EQ, *unify([one, other], node)), False)
        return call(pc.if_else, is_same, null(one.dtype), one)

    # ---- casts and functions

    def _cast(self, node: exp.Cast, guard: Guard) -> Value:
        to, of = arrow_type(node), node.this
        is_time = types.is_timestamp(to) or types.is_date32(to)
        if is_time and isinstance(of, exp.Literal) and of.is_string:
            return self.columns.constant(parse_time(node, of.this, to))
        rounds = is_time or types.is_duration(to)
        value = self._rounded_operand(of, guard) if rounds else self.evaluate(of, guard)
        return casts.cast(node, value, to, guard)

    def _concat(self, node: exp.Expr, guard: Guard) -> Value:
        parts = node.expressions or [node.this, node.expression]
        values = [self.evaluate(part, guard) for part in parts]
        if types.is_list(values[0].dtype):
            return FUNCTIONS["CONCAT"].evaluate(node, "CONCAT", [guard.mask(e) for e in values])
        return strings.concat(node, values)

    def _field(self, node: exp.Dot, guard: Guard) -> Value:
        owner = self.evaluate(node.this, guard)  # no column, such as an element of a list
        return field_of(owner, excerpt(node.this), node.expression, node)[0]

    def _call(self, node: exp.Func, guard: Guard) -> Value:
        name, arguments = plain_call(node)
        given = [self.evaluate(each, guard) for each in arguments]
        if name == LIST_TO_TEXT:
            return strings.join_list(node, given)
        if name in OF_ONE_TYPE:
            given = unify(given, node)
        elif name == MAP_FUNCTION and len(given) % 2 == 0:
            pairs = zip(unify(given[::2], node), unify(given[1::2], node), strict=True)
            given = [each for pair in pairs for each in pair]
        is_plain = name not in RAISING
        masked = [e if e.literal is not None and is_plain else guard.mask(e) for e in given]
        return FUNCTIONS[name].evaluate(node, name, masked)

    def _make_interval(self, node: exp.MakeInterval, guard: Guard) -> Value:
        """Return durations of whole seconds."""
        second = node.args.get("second")
        if second is None or any(e.name != "0" for n, e in node.args.items() if n != "second"):
            raise sql_error(node, "over Arrow tables MAKE_INTERVAL takes seconds alone")
        seconds = guard.mask(self.evaluate(second, guard))
        if not types.is_integer(seconds.dtype):
            raise sql_error(node, "over Arrow tables MAKE_INTERVAL takes whole seconds")
        ticks = call(pc.multiply_checked, seconds.cast(pa.int64()), pa.scalar(1_000_000))
        return ticks.cast(pa.duration("us"))

    def _try_cast(self, node: exp.TryCast, guard: Guard) -> Value:
        to = arrow_type(node)
        return casts.try_cast(node, self.evaluate(node.this, guard), to, guard)


_E = Evaluator
_Maker = Callable[[Evaluator, Any, Guard], Value]


def _constant(make: Callable[[Any], pa.Scalar]) -> _Maker:
    return lambda self, node, guard: self.columns.constant(make(node))


def _of_text(make: Callable[[Any, Value], Value]) -> _Maker:
    return lambda self, node, guard: make(node, self.evaluate(node.this, guard))


def _of_number(make: Callable[[Any, Value], Value]) -> _Maker:
    return lambda self, node, guard: make(node, self._number(node.this, guard))


_MAKERS: Mapping[type[exp.Expr], _Maker] = {
    exp.Column: lambda self, node, guard: self.columns.column(node),
    exp.Dot: _E._field,
    exp.Literal: _constant(
        lambda node: pa.scalar(node.this) if node.is_string else parse_number(node, node.this)
    ),
    exp.Boolean: _constant(lambda node: pa.scalar(bool(node.this))),
    exp.Null: _constant(lambda node: null(pa.null())),
    exp.Interval: _constant(lambda node: pa.scalar(interval_ticks(node), pa.duration("us"))),
    exp.Paren: lambda self, node, guard: self.evaluate(node.this, guard),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv), _E._arithmetic),
    exp.Neg: _E._negative,
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        _E._compare,
    ),
    exp.Between: _E._between,
    exp.And: _E._connector,
    exp.Or: _E._connector,
    exp.Not: _E._not,
    exp.Is: _E._is,
    exp.In: _E._in,
    exp.Case: _E._case,
    exp.If: _E._if,
    exp.Coalesce: _E._coalesce,
    exp.Nullif: _E._nullif,
    exp.Cast: _E._cast,
    **dict.fromkeys((exp.Upper, exp.Lower), _of_text(strings.change_case)),
    exp.Length: _of_text(strings.length),
    exp.Like: _of_text(strings.like),
    exp.Abs: _of_number(lambda node, of: call(pc.abs_checked, of)),
    **dict.fromkeys((exp.Floor, exp.Ceil), _of_number(round_number)),
    exp.Concat: _E._concat,
    exp.DPipe: _E._concat,
    exp.MakeInterval: _E._make_interval,
    exp.TryCast: _E._try_cast,
    **dict.fromkeys((exp.Anonymous, exp.Substring, exp.Trim, exp.Extract, exp.Chr), _E._call),
}


def is_covered(node: exp.Expr) -> bool:
    """Whether there is an evaluation for a node, its parts aside."""
    if isinstance(node, exp.Anonymous):
        return is_covered_call(node)
    return type(node) in _MAKERS
