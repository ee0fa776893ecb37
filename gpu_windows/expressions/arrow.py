"""Expressions over Arrow tables: those of Spark's SQL that Arrow computes alike.

Nulls, NaN (greater than all numbers, and equal to itself), the types of results and what is an
error are Spark's, in ANSI mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.errors import ColumnTypeError
from gpu_windows.expressions.columns import Names, names_of
from gpu_windows.expressions.intervals import ticks_of
from gpu_windows.expressions.numbers import (
    Typed,
    compared,
    computed,
    evaluated,
    number,
    typed,
    unified,
)
from gpu_windows.expressions.places import parsed_expression, refused
from gpu_windows.expressions.types import arrow_type

#: Where a column of an expression comes from: its place in the text to its name in the table.
Resolve = Callable[[exp.Column], str]


def compute(text: str | exp.Expr, table: pa.Table) -> pa.ChunkedArray:
    """Return the values of an expression for the rows of a table.

    Raises
    ------
    SqlError
        If it cannot be read, or is not among those that are computed here.
    ColumnNotFoundError
        If it names a column that is not there.
    ExpressionError
        If it has no value for a row.
    """
    translated = ArrowExpressions(table.schema).typed(text)
    with_rows = evaluated(translated.expression, table)
    return with_rows.cast(translated.dtype)


def holds(text: str, schema: pa.Schema) -> pc.Expression:
    """Return a condition as an expression of Arrow.

    Raises
    ------
    SqlError, ColumnNotFoundError
        See `compute`.
    ColumnTypeError
        If it is neither true nor false.
    """
    found = ArrowExpressions(schema).typed(text)
    if types.is_null(found.dtype):
        return pc.scalar(pa.scalar(None, pa.bool_()))
    if not types.is_boolean(found.dtype):
        rule = f"a condition is true or false: {text}"
        raise ColumnTypeError(rule, value=str(found.dtype))
    return found.expression


@dataclass(frozen=True)
class ArrowExpressions:
    """Makes expressions of Arrow over the columns of a schema.

    Parameters
    ----------
    schema : pyarrow.Schema
    resolve : callable, optional
        Returns the name in the schema of a column in the text; default: by `Names`.
    """

    schema: pa.Schema
    resolve: Resolve | None = None
    _names: Names = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", names_of(self.schema.names))

    def typed(self, text: str | exp.Expr) -> Typed:
        """Return an expression and its type."""
        return self._of(parsed_expression(text) if isinstance(text, str) else text)

    def _of(self, node: exp.Expr) -> Typed:
        make = _MAKERS.get(type(node))
        if make is None:
            called = node.name if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
            rule = (
                f"{called} is not computed over Arrow tables: add it as a column before, or ask "
                "over a Spark DataFrame"
            )
            raise refused(node, rule)
        try:
            return make(self, node)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            said = str(error).partition("\n")[0]
            raise refused(node, f"an expression must be one that Arrow computes: {said}") from None

    # ---- values

    def _column(self, node: exp.Column) -> Typed:
        name = self._names.of(node) if self.resolve is None else self.resolve(node)
        return Typed(pc.field(name), self.schema.field(name).type)

    def _literal(self, node: exp.Literal) -> Typed:
        if node.is_string:
            return Typed(pc.scalar(node.this), pa.string())
        return number(node)

    def _boolean(self, node: exp.Boolean) -> Typed:
        return Typed(pc.scalar(bool(node.this)), pa.bool_())

    def _null(self, node: exp.Null) -> Typed:
        del node
        return Typed(pc.scalar(None), pa.null())

    def _paren(self, node: exp.Paren) -> Typed:
        return self._of(node.this)

    def _interval(self, node: exp.Interval) -> Typed:
        value = pa.scalar(ticks_of(node), pa.duration("us"))
        return Typed(pc.scalar(value), value.type)

    # ---- numbers

    def _arithmetic(self, node: exp.Binary) -> Typed:
        return computed(node, self._of(node.this), self._of(node.expression), self.schema)

    def _negative(self, node: exp.Neg) -> Typed:
        of = self._of(node.this)
        return typed(pc.negate_checked(of.expression), self.schema)

    def _compared(self, node: exp.Binary) -> Typed:
        one, other = unified([self._of(node.this), self._of(node.expression)], node)
        return Typed(compared(type(node), one, other), pa.bool_())

    def _between(self, node: exp.Between) -> Typed:
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return self._both(exp.And(this=low, expression=high))

    # ---- truth

    def _truth(self, node: exp.Expr) -> pc.Expression:
        found = self._of(node)
        if types.is_null(found.dtype):
            return pc.scalar(pa.scalar(None, pa.bool_()))
        if not types.is_boolean(found.dtype):
            raise refused(node, f"this is true or false in Spark, and here {found.dtype}")
        return found.expression

    def _both(self, node: exp.Connector) -> Typed:
        together = pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene
        sides = self._truth(node.this), self._truth(node.expression)
        return Typed(together(*sides), pa.bool_())

    def _not(self, node: exp.Not) -> Typed:
        return Typed(pc.invert(self._truth(node.this)), pa.bool_())

    def _is(self, node: exp.Is) -> Typed:
        of = self._of(node.this)
        if isinstance(node.expression, exp.Null):
            return Typed(pc.is_null(of.expression), pa.bool_())
        if isinstance(node.expression, exp.Boolean):
            truth = self._truth(node.this)
            wanted = truth if node.expression.this else pc.invert(truth)
            return Typed(pc.coalesce(wanted, pc.scalar(False)), pa.bool_())
        raise refused(node, "IS goes with NULL, TRUE and FALSE")

    def _in(self, node: exp.In) -> Typed:
        if not node.expressions:
            raise refused(node, "IN takes a list of values")
        tests = [exp.EQ(this=node.this.copy(), expression=v.copy()) for v in node.expressions]
        found = self._of(tests[0])
        for test in tests[1:]:
            either = pc.or_kleene(found.expression, self._of(test).expression)
            found = Typed(either, pa.bool_())
        return found

    # ---- choices

    def _case(self, node: exp.Case) -> Typed:
        conditions = []
        for branch in node.args["ifs"]:
            test = branch.this
            if node.this is not None:
                test = exp.EQ(this=node.this.copy(), expression=test.copy())
            conditions.append(self._truth(test))
        results = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default") or exp.Null()
        return self._chosen(node, conditions, [*results, default])

    def _if(self, node: exp.If) -> Typed:
        default = node.args.get("false") or exp.Null()
        return self._chosen(node, [self._truth(node.this)], [node.args["true"], default])

    def _chosen(
        self, node: exp.Expr, conditions: Sequence[pc.Expression], results: Sequence[exp.Expr]
    ) -> Typed:
        *values, last = unified([self._of(each) for each in results], node)
        chosen = last.expression
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            is_true = pc.coalesce(condition, pc.scalar(False))
            chosen = pc.if_else(is_true, value.expression, chosen)
        return Typed(chosen, last.dtype)

    def _coalesce(self, node: exp.Coalesce) -> Typed:
        each = unified([self._of(one) for one in (node.this, *node.expressions)], node)
        return Typed(pc.coalesce(*(one.expression for one in each)), each[0].dtype)

    def _nullif(self, node: exp.Nullif) -> Typed:
        one = self._of(node.this)
        test = self._of(exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
        null = pc.scalar(pa.scalar(None, one.dtype))
        is_true = pc.coalesce(test.expression, pc.scalar(False))
        return Typed(pc.if_else(is_true, null, one.expression), one.dtype)

    # ---- casts and functions

    def _cast(self, node: exp.Cast) -> Typed:
        found, to = self._of(node.this), arrow_type(node)
        by_text = types.is_string(to) and (
            types.is_floating(found.dtype) or types.is_timestamp(found.dtype)
        )
        of_zone = types.is_string(found.dtype) and types.is_timestamp(to)
        if of_zone and not isinstance(node.this, exp.Literal):
            by_text = True
        if by_text:
            rule = f"{found.dtype} AS {to} is written otherwise by Arrow: cast it before"
            raise refused(node, rule)
        if of_zone:
            return _instant(node, to)
        has_parts = types.is_floating(found.dtype) or types.is_decimal(found.dtype)
        truncates = has_parts and types.is_integer(to)
        value = pc.trunc(found.expression) if truncates else found.expression
        return Typed(value.cast(to), to)

    def _function(self, node: exp.Func) -> Typed:
        make = _FUNCTIONS[type(node)]
        return typed(make(self._of(node.this).expression), self.schema)

    def _whole(self, node: exp.Func) -> Typed:
        down = pc.floor if isinstance(node, exp.Floor) else pc.ceil
        of = self._of(node.this)
        if not types.is_floating(of.dtype):
            raise refused(node, f"over Arrow tables it takes floats, and this is {of.dtype}")
        return Typed(down(of.expression).cast(pa.int64()), pa.int64())

    def _joined(self, node: exp.Expr) -> Typed:
        parts = node.expressions or [node.this, node.expression]
        texts = [self._of(part) for part in parts]
        if not all(types.is_string(each.dtype) for each in texts):
            raise refused(node, "over Arrow tables only texts are put together: cast the others")
        return Typed(
            pc.binary_join_element_wise(*(each.expression for each in texts), ""), pa.string()
        )

    def _like(self, node: exp.Like) -> Typed:
        if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
            raise refused(node, "LIKE takes a pattern that is written out")
        of = self._of(node.this)
        return Typed(pc.match_like(of.expression, node.expression.this), pa.bool_())


def _instant(node: exp.Cast, to: pa.DataType) -> Typed:
    """Return a written instant; without a zone it would be in that of the session."""
    text = node.this.this
    try:
        value = pc.strptime(text.replace("T", " ").removesuffix("Z"), _FORMAT, "us")
    except pa.ArrowInvalid:
        raise refused(node, "an instant is written as '2024-12-31 23:59:59', in UTC") from None
    return Typed(pc.scalar(pa.scalar(value.value, pa.int64()).cast(to)), to)


_FORMAT = "%Y-%m-%d %H:%M:%S"

_E = ArrowExpressions
_FUNCTIONS: Mapping[type[exp.Expr], Callable[[pc.Expression], pc.Expression]] = {
    exp.Upper: pc.utf8_upper,
    exp.Lower: pc.utf8_lower,
    exp.Length: pc.utf8_length,
    exp.Abs: pc.abs_checked,
}
_MAKERS: Mapping[type[exp.Expr], Callable[[ArrowExpressions, Any], Typed]] = {
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
    **dict.fromkeys(_FUNCTIONS, _E._function),
    exp.Floor: _E._whole,
    exp.Ceil: _E._whole,
    exp.Concat: _E._joined,
    exp.DPipe: _E._joined,
    exp.Like: _E._like,
}
