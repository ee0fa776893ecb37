"""Goes through an expression, and asks each part for the rows for which Spark asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.errors import ExpressionError, GpuWindowsError
from gpu_windows.expressions import casts, instants, texts
from gpu_windows.expressions.columns import names_of
from gpu_windows.expressions.comparisons import among, compared, connected, unified
from gpu_windows.expressions.intervals import ticks_of
from gpu_windows.expressions.numbers import computed, number, whole
from gpu_windows.expressions.places import refused, shown
from gpu_windows.expressions.types import arrow_type, as_in_spark
from gpu_windows.expressions.values import Guard, Value, call, null_of

#: Parts that the condition of a join has at most, as Arrow goes through them one within the other.
_LONGEST = 5_000
_ALL = Guard()


@dataclass(frozen=True)
class Evaluator:
    """Computes expressions over the rows of a table.

    Parameters
    ----------
    table : pyarrow.Table
    builds : bool
        Whether expressions of Arrow's are made of them, too.
    """

    table: pa.Table
    builds: bool = False

    def of(self, node: exp.Expr, guard: Guard = _ALL) -> Value:
        """Return the values of an expression; those of other rows than the guard's are any.

        Raises
        ------
        SqlError
            If it is not computed here.
        ExpressionError
            If it has no value for a row.
        """
        make = _MAKERS.get(type(node))
        if make is None:
            called = node.name if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
            rule = (
                f"{called} is not computed over Arrow tables: add it as a column before, or ask "
                "over a Spark DataFrame"
            )
            raise refused(node, rule)
        check_read(node)
        try:
            found = make(self, node, guard)
            if node.args.get("negate"):
                found = call(pc.invert, found)
        except pa.ArrowException as error:
            raise self._failure(node, error) from None
        if found.parts > _LONGEST:
            rule = f"a condition of a join has up to {_LONGEST} parts: add a column before"
            raise refused(node, rule)
        return found

    def _failure(self, node: exp.Expr, error: pa.ArrowException) -> GpuWindowsError:
        said = str(error).partition("\n")[0]
        if not len(self.table):
            return refused(node, f"an expression must be one that Arrow computes: {said}")
        rule = "an expression has a value for each row"
        return ExpressionError(rule, value=f"{said}: {shown(node)}")

    # ---- values

    def _constant(self, value: pa.Scalar) -> Value:
        # of no rows it is no value, too, so that nothing can fail there
        rows = value if len(self.table) else pa.array([], value.type)
        expression = pc.scalar(value) if self.builds else None
        return Value(rows, expression, int(self.builds), value)

    def _column(self, node: exp.Column, guard: Guard) -> Value:
        del guard
        return self._as_in_spark(node)

    def _rounded_operand(self, node: exp.Expr, guard: Guard) -> Value:
        """Return an operand of which nothing is asked that is finer than a microsecond."""
        of = node.unnest()
        if not isinstance(of, exp.Column):
            return self.of(node, guard)
        return self._as_in_spark(of, rounds=True)

    def _as_in_spark(self, node: exp.Column, *, rounds: bool = False) -> Value:
        """Return a column, or a field of one, with the type that Spark has for it."""
        if node.args.get("db"):
            raise refused(node, "over Arrow tables a field of a field is not read: add a column")
        owner = node.args.get("table")
        name = names_of(self.table.column_names).of(node if owner is None else owner)
        column = Value(self.table.column(name), pc.field(name) if self.builds else None, 1)
        if owner is None:
            return as_in_spark(column, name, rounds=rounds)
        if not types.is_struct(column.dtype):
            raise refused(node, f"{name} is a column and has no fields", str(column.dtype))
        field = names_of(each.name for each in column.dtype).of(node)
        at = column.dtype.get_field_index(field)
        value = call(pc.struct_field, column, indices=[at])
        return as_in_spark(value, field, of=name, rounds=rounds)

    def _literal(self, node: exp.Literal, guard: Guard) -> Value:
        del guard
        return self._constant(pa.scalar(node.this) if node.is_string else number(node, node.this))

    def _boolean(self, node: exp.Boolean, guard: Guard) -> Value:
        del guard
        return self._constant(pa.scalar(bool(node.this)))

    def _null(self, node: exp.Null, guard: Guard) -> Value:
        del node, guard
        return self._constant(null_of(pa.null()))

    def _paren(self, node: exp.Paren, guard: Guard) -> Value:
        return self.of(node.this, guard)

    def _interval(self, node: exp.Interval, guard: Guard) -> Value:
        del guard
        return self._constant(pa.scalar(ticks_of(node), pa.duration("us")))

    # ---- numbers

    def _after(self, first: Value, node: exp.Expr, guard: Guard) -> Value:
        """Return the second operand, which is not asked where the first is null."""
        if isinstance(node, exp.Column | exp.Literal):
            return self.of(node, guard)
        return self.of(node, guard.where(call(pc.is_valid, first)))

    def _arithmetic(self, node: exp.Binary, guard: Guard) -> Value:
        if isinstance(node, exp.Div | exp.Mod | exp.IntDiv):
            other = self.of(node.expression, guard)
            return computed(node, self._after(other, node.this, guard), other, guard)
        one = self.of(node.this, guard)
        return computed(node, one, self._after(one, node.expression, guard), guard)

    def _negative(self, node: exp.Neg, guard: Guard) -> Value:
        of = node.this
        if isinstance(of, exp.Literal) and not of.is_string:
            return self._constant(number(node, f"-{of.this}"))
        return call(pc.negate_checked, guard.masked(self._number(of, guard)))

    def _number(self, node: exp.Expr, guard: Guard) -> Value:
        """Return an operand; NULL alone is DOUBLE."""
        of = self.of(node, guard)
        return of.cast(pa.float64()) if types.is_null(of.dtype) else of

    # ---- truth

    def _truth(self, node: exp.Expr, guard: Guard) -> Value:
        found = self.of(node, guard)
        if types.is_null(found.dtype):
            return found.cast(pa.bool_())
        if not types.is_boolean(found.dtype):
            raise refused(node, f"this is true or false in Spark, and here {found.dtype}")
        return found

    def _compared(self, node: exp.Binary, guard: Guard) -> Value:
        one = self.of(node.this, guard)
        if isinstance(node, exp.NullSafeEQ):
            other = self.of(node.expression, guard)
        else:
            other = self._after(one, node.expression, guard)
        return compared(type(node), *unified([one, other], node))

    def _between(self, node: exp.Between, guard: Guard) -> Value:
        value = self.of(node.this, guard)
        low = self._after(value, node.args["low"], guard)
        above = compared(exp.GTE, *unified([value, low], node))
        guard = guard.unless(call(pc.invert, above))
        high = self._after(value, node.args["high"], guard)
        return call(pc.and_kleene, above, compared(exp.LTE, *unified([value, high], node)))

    def _both(self, node: exp.Connector, guard: Guard) -> Value:
        """Return AND and OR: what comes after false, or after true, is not asked."""
        is_and, truths = isinstance(node, exp.And), []
        for each in node.flatten():
            truths.append(self._truth(each, guard))
            guard = guard.unless(call(pc.invert, truths[-1]) if is_and else truths[-1])
        return connected(truths, pc.and_kleene if is_and else pc.or_kleene)

    def _not(self, node: exp.Not, guard: Guard) -> Value:
        return call(pc.invert, self._truth(node.this, guard))

    def _is(self, node: exp.Is, guard: Guard) -> Value:
        if isinstance(node.expression, exp.Null):
            return call(pc.is_null, self._rounded_operand(node.this, guard))
        if isinstance(node.expression, exp.Boolean):
            truth = self._truth(node.this, guard)
            wanted = truth if node.expression.this else call(pc.invert, truth)
            return call(pc.coalesce, wanted, False)
        raise refused(node, "IS goes with NULL, TRUE and FALSE")

    def _in(self, node: exp.In, guard: Guard) -> Value:
        if not node.expressions:
            raise refused(node, "IN takes a list of values")
        value, guard = self.of(node.this, guard), guard
        guard, each = guard.where(call(pc.is_valid, value)), []
        for part in node.expressions:
            each.append(self.of(part, guard))
            if each[-1].written is None:
                pair = unified([value, each[-1]], node)
                guard = guard.unless(compared(exp.EQ, *pair))
        value, *each = unified([value, *each], node)
        return self._listed(value, each)

    def _listed(self, value: Value, each: Sequence[Value]) -> Value:
        written = [one.written for one in each if one.written is not None]
        truths = [compared(exp.EQ, value, one) for one in each if one.written is None]
        if types.is_null(value.dtype) or not written:
            truths = truths or [compared(exp.EQ, value, each[0])]
        else:
            truths.append(among(value, written))
        if not all(one.is_valid for one in written):
            truths.append(self._constant(null_of(pa.bool_())))
        return connected(truths, pc.or_kleene)

    # ---- choices

    def _case(self, node: exp.Case, guard: Guard) -> Value:
        of = None if node.this is None else self.of(node.this, guard)
        conditions, results = [], []
        for branch in node.args["ifs"]:
            if of is None:
                condition = self._truth(branch.this, guard)
            else:
                test = self._after(of, branch.this, guard)
                condition = compared(exp.EQ, *unified([of, test], branch))
            conditions.append(condition)
            results.append(self.of(branch.args["true"], guard.where(condition)))
            guard = guard.unless(condition)
        results.append(self.of(node.args.get("default") or exp.Null(), guard))
        return _chosen(node, conditions, results)

    def _if(self, node: exp.If, guard: Guard) -> Value:
        if node.args.get("false") is None:
            raise refused(node, "IF takes a condition and two values")
        condition = self._truth(node.this, guard)
        one = self.of(node.args["true"], guard.where(condition))
        other = self.of(node.args["false"], guard.unless(condition))
        return _chosen(node, [condition], [one, other])

    def _coalesce(self, node: exp.Coalesce, guard: Guard) -> Value:
        each = []
        for part in (node.this, *node.expressions):
            each.append(self.of(part, guard))
            guard = guard.where(call(pc.is_null, each[-1]))
        return call(pc.coalesce, *unified(each, node))

    def _nullif(self, node: exp.Nullif, guard: Guard) -> Value:
        one = self.of(node.this, guard)
        other = self._after(one, node.expression, guard)
        is_same = call(pc.coalesce, compared(exp.EQ, *unified([one, other], node)), False)
        return call(pc.if_else, is_same, null_of(one.dtype), one)

    # ---- casts and functions

    def _cast(self, node: exp.Cast, guard: Guard) -> Value:
        to, of = arrow_type(node), node.this
        is_time = types.is_timestamp(to) or types.is_date32(to)
        if is_time and isinstance(of, exp.Literal) and of.is_string:
            return self._constant(instants.written_time(node, of.this, to))
        rounds = is_time or types.is_duration(to)
        value = self._rounded_operand(of, guard) if rounds else self.of(of, guard)
        return casts.cast(node, value, to, guard)

    def _in_case(self, node: exp.Func, guard: Guard) -> Value:
        return texts.in_case(node, self.of(node.this, guard), upper=isinstance(node, exp.Upper))

    def _length(self, node: exp.Length, guard: Guard) -> Value:
        return texts.length(node, self.of(node.this, guard))

    def _absolute(self, node: exp.Abs, guard: Guard) -> Value:
        return call(pc.abs_checked, guard.masked(self._number(node.this, guard)))

    def _whole(self, node: exp.Func, guard: Guard) -> Value:
        of = self._number(node.this, guard)
        if not types.is_floating(of.dtype):
            raise refused(node, f"over Arrow tables it takes floats, and this is {of.dtype}")
        return whole(guard.masked(of), up=isinstance(node, exp.Ceil))

    def _joined(self, node: exp.Expr, guard: Guard) -> Value:
        parts = node.expressions or [node.this, node.expression]
        return texts.joined(node, [self.of(part, guard) for part in parts])

    def _like(self, node: exp.Like, guard: Guard) -> Value:
        return texts.like(node, self.of(node.this, guard))


def _chosen(node: exp.Expr, conditions: Sequence[Value], results: Sequence[Value]) -> Value:
    *values, chosen = unified(results, node)
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        chosen = call(pc.if_else, call(pc.coalesce, condition, False), value, chosen)
    return chosen


#: What is read of a part of an expression; else it is refused, and not left out.
_READ: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset(("this", "table", "db")),
    exp.Literal: frozenset(("this", "is_string")),
    exp.Interval: frozenset(("this", "unit")),
    exp.Between: frozenset(("this", "low", "high", "negate")),
    exp.In: frozenset(("this", "expressions", "negate")),
    exp.Like: frozenset(("this", "expression", "negate")),
    exp.Is: frozenset(("this", "expression", "negate")),
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.If: frozenset(("this", "true", "false")),
    exp.Coalesce: frozenset(("this", "expressions")),
    exp.Cast: frozenset(("this", "to")),
    exp.Concat: frozenset(("expressions", "safe")),
    exp.DPipe: frozenset(("this", "expression", "safe")),
    exp.Div: frozenset(("this", "expression", "typed", "safe")),
}
_TWO = frozenset(("this", "expression"))


def check_read(node: exp.Expr) -> None:
    """Raise `SqlError` if a part of an expression says what is not read."""
    read = _READ.get(type(node), _TWO)
    for name, value in node.args.items():
        if name not in read and value not in (None, False, []):
            rule = f"over Arrow tables {type(node).__name__.upper()} takes no {name}"
            raise refused(node, rule)


_E = Evaluator
_MAKERS: Mapping[type[exp.Expr], Callable[[Evaluator, Any, Guard], Value]] = {
    exp.Column: _E._column,
    exp.Literal: _E._literal,
    exp.Boolean: _E._boolean,
    exp.Null: _E._null,
    exp.Paren: _E._paren,
    exp.Interval: _E._interval,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv), _E._arithmetic),
    exp.Neg: _E._negative,
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ), _E._compared
    ),
    exp.Between: _E._between,
    exp.And: _E._both,
    exp.Or: _E._both,
    exp.Not: _E._not,
    exp.Is: _E._is,
    exp.In: _E._in,
    exp.Case: _E._case,
    exp.If: _E._if,
    exp.Coalesce: _E._coalesce,
    exp.Nullif: _E._nullif,
    exp.Cast: _E._cast,
    exp.Upper: _E._in_case,
    exp.Lower: _E._in_case,
    exp.Length: _E._length,
    exp.Abs: _E._absolute,
    exp.Floor: _E._whole,
    exp.Ceil: _E._whole,
    exp.Concat: _E._joined,
    exp.DPipe: _E._joined,
    exp.Like: _E._like,
}
