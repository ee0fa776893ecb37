"""Compiles the conditions of DEFINE to instructions; parts over one row become columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial, reduce
from math import ceil, floor
from typing import Any

import pyarrow as pa
from sqlglot import exp

from gpu_windows.expressions.arguments import check_arguments
from gpu_windows.expressions.sql_text import canonical_text, sql_error, to_spark_sql
from gpu_windows.functions.patterns.navigation import (
    AggregateArgument,
    Navigation,
    RowExpression,
    check_expression,
    column_of,
    is_aggregate,
    is_navigation,
)
from gpu_windows.functions.patterns.operands import (
    AGGREGATE_STATES,
    ARITHMETIC,
    COMPARISONS,
    MAY_FAIL,
    MIRRORED,
    Code,
    Columns,
    Constants,
    Operand,
    apply,
    as_float,
    check_number,
    is_literal,
    is_long,
    time_arithmetic,
)
from gpu_windows.functions.patterns.program import (
    Conditions,
    Instruction,
    RowReference,
    RunningAggregate,
)
from gpu_windows.functions.patterns.value_types import (
    BOOLEAN,
    DOUBLE,
    LONG,
    NULL,
    TypeClass,
    ValueType,
    value_type,
    wider_type,
)
from gpu_windows.rules.pattern_matching import layout


class Compiler:
    """Compiles conditions to instructions.

    Parameters
    ----------
    navigation : Navigation
    columns : Columns
    """

    def __init__(self, navigation: Navigation, columns: Columns) -> None:
        self._navigation, self._columns = navigation, columns
        self._read: dict[str, int] = {}
        self._ranked: set[int] = set()
        self._constants = Constants()
        self._running: dict[RunningAggregate, int] = {}
        self._programs: list[tuple[Instruction, ...]] = []
        self._texts: list[str] = []
        self._candidate = 0  # the variable whose condition is compiled
        self._whole: exp.Expr | None = None  # the whole condition: over one row, it is a column

    def add(self, variable: int, node: exp.Expr | None) -> None:
        """Compile the condition of the next variable; None is always true.

        Raises
        ------
        SqlError
            With the position of what is not covered.
        """
        self._programs.append(tuple(self._condition(variable, node)))
        self._texts.append("" if node is None else canonical_text(node))

    def conditions(self) -> Conditions:
        """Return the conditions of all variables."""
        return Conditions(
            programs=tuple(self._programs),
            texts=tuple(self._texts),
            columns=tuple(self._read),
            ranked=frozenset(self._ranked),
            constants=tuple(self._constants.values),
            aggregates=tuple(self._running),
        )

    def _condition(self, variable: int, node: exp.Expr | None) -> Code:
        if node is None:
            return []
        self._candidate, self._whole = variable, node
        check_expression(node)
        return self._boolean_operand(node).code

    def _compile(self, node: exp.Expr) -> Operand:
        value = self._navigation.value(node, self._candidate)
        if value is not None and not self._may_fail(node):
            return self._row_value(node, value)
        if is_aggregate(node):
            return self._aggregate(node)
        for kinds, make in _COMPILERS.items():
            if isinstance(node, kinds):
                check_arguments(node)
                if node.args.get("negate"):
                    return self._negate(node)
                return make(self, node)
        rule = (
            "between rows of a match there are comparisons, + - * / % DIV, AND, OR, NOT, IS NULL, "
            "BETWEEN, CASE and aggregates; other functions take columns of one row"
        )
        raise sql_error(node, rule)

    def _negate(self, node: exp.Expr) -> Operand:
        plain = node.copy()
        plain.set("negate", False)
        return apply(layout.NOT, BOOLEAN, self._compile(plain))

    # ---- values

    def _row_value(self, node: exp.Expr, value: RowExpression) -> Operand:
        if value.row is None and is_literal(value.of):
            return self._constants.of(node)
        column = self._columns.name(to_spark_sql(value.of))
        number = self._column(column)
        operand_type = self._value_type(node, self._columns.dtype(column))
        if operand_type.type_class is TypeClass.RANKED:
            self._ranked.add(number)
        row = value.row or RowReference(self._candidate)  # what is the same for all rows
        does = layout.FIRST if row.from_first else layout.LAST
        return Operand([Instruction(does, row.variable, row.offset, number)], operand_type)

    def _may_fail(self, node: exp.Expr) -> bool:
        """Whether a part that may fail must be compiled, so that it fails only if it is evaluated.

        That works if its own parts are numbers and booleans, and have instructions.
        """
        if node is self._whole or not any(isinstance(each, MAY_FAIL) for each in node.walk()):
            return False
        return self._is_compilable(node)

    def _is_compilable(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Literal):
            return not node.is_string and "." not in node.name  # quotients of decimals differ
        if is_navigation(node):
            node = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
            return isinstance(node, exp.Column) and self._is_compilable(node)
        if isinstance(node, exp.Column):
            operand_type = value_type(
                self._columns.dtype(self._columns.name(to_spark_sql(column_of(node.name))))
            )
            return operand_type in (BOOLEAN, DOUBLE) or (
                operand_type is not None and operand_type.type_class is TypeClass.INTEGER
            )
        leaf = isinstance(node, exp.Boolean | exp.Null)
        compiled = any(isinstance(node, kinds) for kinds in _COMPILERS) or isinstance(node, exp.If)
        return leaf or (compiled and all(map(self._is_compilable, node.iter_expressions())))

    def _column(self, name: str) -> int:
        return self._read.setdefault(name, len(self._read))

    @staticmethod
    def _value_type(node: exp.Expr, dtype: pa.DataType) -> ValueType:
        operand_type = value_type(dtype)
        if operand_type is None:
            raise sql_error(node, f"values of this type cannot be compared: {dtype}")
        return operand_type

    # ---- truth

    def _compare(self, node: exp.Binary) -> Operand:
        one, other = self._compile(node.this), self._compile(node.expression)
        does, swapped, inverted = COMPARISONS[type(node)]
        bounded = self._compare_to_decimal(type(node), one, other)
        if bounded is not None:
            return bounded
        one, other = self._constants.unify(node, one, other)
        pair = (other, one) if swapped else (one, other)
        found = apply(does, BOOLEAN, *pair, second=int(one.type.is_float))
        return apply(layout.NOT, BOOLEAN, found) if inverted else found

    def _compare_to_decimal(
        self, comparison: type[exp.Expr], one: Operand, other: Operand
    ) -> Operand | None:
        """Return an exact comparison of an integer with a literal that has a fraction."""
        if one.constant is not None and other.type.type_class is TypeClass.INTEGER:
            mirrored = MIRRORED.get(comparison, comparison)
            return self._compare_to_decimal(mirrored, other, one)
        if other.constant is None or one.type.type_class is not TypeClass.INTEGER:
            return None
        value = other.constant
        if value == int(value) or not is_long(Decimal(floor(value))):
            return None
        if comparison in (exp.EQ, exp.NEQ):  # never equal, and null where the other is
            same = apply(layout.EQUAL, BOOLEAN, one, one)
            return same if comparison is exp.NEQ else apply(layout.NOT, BOOLEAN, same)
        whole = floor(value) if comparison in (exp.LTE, exp.GT) else ceil(value)
        bound = self._constants.push(whole, 0.0, LONG)
        does, swapped, _ = COMPARISONS[comparison]
        return apply(does, BOOLEAN, *((bound, one) if swapped else (one, bound)))

    def _between(self, node: exp.Between) -> Operand:
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"])
        return self._compile(exp.And(this=low, expression=high))

    def _connector(self, node: exp.Connector) -> Operand:
        does = layout.AND if isinstance(node, exp.And) else layout.OR
        parts = map(self._boolean_operand, node.flatten())
        return reduce(partial(apply, does, BOOLEAN), parts)

    def _boolean_operand(self, node: exp.Expr) -> Operand:
        compiled = self._compile(node)
        is_truth = compiled.type.type_class in (TypeClass.BOOLEAN, TypeClass.NULL)
        if not is_truth or compiled.constant is not None:
            names = "a number" if compiled.constant is not None else compiled.type.describe()
            raise sql_error(node, f"this must be true or false, got {names}")
        return compiled

    def _not(self, node: exp.Not) -> Operand:
        return apply(layout.NOT, BOOLEAN, self._boolean_operand(node.this))

    def _is(self, node: exp.Is) -> Operand:
        if isinstance(node.expression, exp.Null):
            return apply(layout.IS_NULL, BOOLEAN, self._compile(node.this))
        if isinstance(node.expression, exp.Boolean):
            truth = self._boolean_operand(node.this)
            no = self._constants.push(0, 0.0, BOOLEAN)
            yes = truth if node.expression.this else apply(layout.NOT, BOOLEAN, truth)
            return apply(layout.CHOOSE, BOOLEAN, apply(layout.IS_NULL, BOOLEAN, truth), no, yes)
        raise sql_error(node, "IS takes NULL, TRUE or FALSE")

    def _case(self, node: exp.Case) -> Operand:
        if node.this is not None:
            raise sql_error(node, "between rows CASE takes conditions: CASE WHEN ... THEN ...")
        branches = [(each.this, each.args["true"]) for each in node.args["ifs"]]
        return self._choose(node, branches, node.args.get("default") or exp.Null())

    def _if(self, node: exp.If) -> Operand:
        if node.args.get("false") is None:
            raise sql_error(node, "IF takes a condition and two values")
        return self._choose(node, [(node.this, node.args["true"])], node.args["false"])

    def _coalesce(self, node: exp.Coalesce) -> Operand:
        found = self._compile(node.this)
        for each in node.expressions:
            found, other = self._constants.unify(node, found, self._compile(each))
            found = apply(layout.FILL, wider_type(found.type, other.type), found, other)
        return found

    def _choose(
        self, node: exp.Expr, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr
    ) -> Operand:
        found = self._compile(default)
        for condition, result in reversed(branches):
            truth = self._boolean_operand(condition)
            yes, found = self._constants.unify(node, self._compile(result), found)
            found = apply(layout.CHOOSE, wider_type(yes.type, found.type), truth, yes, found)
        return found

    # ---- numbers

    def _arithmetic(self, node: exp.Binary) -> Operand:
        one, other = self._compile(node.this), self._compile(node.expression)
        times = time_arithmetic(node, one, other)
        if times is not None:
            return times
        one, other = self._constants.convert_both(one, other)
        if NULL in (one.type, other.type):
            one, other = (
                Operand(e.code, DOUBLE if e.type == NULL else e.type) for e in (one, other)
            )
        for each in (one, other):
            check_number(node, each.type)
        does = ARITHMETIC[type(node)]
        if does == layout.DIVIDE or one.type.is_float or other.type.is_float:
            if does == layout.QUOTIENT:
                raise sql_error(node, "DIV takes integers")
            return apply(does, DOUBLE, as_float(one), as_float(other), second=1)
        bits = 64 if does == layout.QUOTIENT else max(one.type.bits, other.type.bits)
        return apply(does, ValueType(TypeClass.INTEGER, bits), one, other, first=bits)

    def _negative(self, node: exp.Neg) -> Operand:
        compiled = self._compile(node.this)
        check_number(node, compiled.type)
        bits, is_float = compiled.type.bits, int(compiled.type.is_float)
        return apply(layout.NEGATE, compiled.type, compiled, first=bits, second=is_float)

    # ---- aggregates

    def _aggregate(self, node: exp.Expr) -> Operand:
        rows = self._navigation.rows(node)
        if isinstance(node, exp.Count):
            column = -1 if rows.of is None else self._count_column(rows.of)
            return self._running_aggregate(
                RunningAggregate(rows.variable, layout.COUNT, column, is_float=False), LONG
            )
        return self._fold_aggregate(node, rows)

    def _count_column(self, of: exp.Expr) -> int:
        """Return a column that is null where an expression is: for numbers, its own."""
        name = self._columns.name(to_spark_sql(of))
        operand_type = value_type(self._columns.dtype(name))
        if operand_type is None or operand_type.type_class in (TypeClass.RANKED, TypeClass.NULL):
            is_there = exp.Not(this=exp.Is(this=of.copy(), expression=exp.Null()))
            name = self._columns.name(
                to_spark_sql(exp.Nullif(this=is_there, expression=exp.false()))
            )
        return self._column(name)

    def _fold_aggregate(self, node: exp.Expr, rows: AggregateArgument) -> Operand:
        assert rows.of is not None, "only COUNT takes no argument"
        name = self._columns.name(to_spark_sql(rows.of))
        function = AGGREGATE_STATES[type(node)]
        operand_type = self._value_type(node, self._columns.dtype(name))
        if function == layout.SUM or operand_type.type_class is TypeClass.RANKED:
            check_number(node, operand_type)
        if isinstance(node, exp.Avg) and not operand_type.is_float:
            name = self._columns.name(to_spark_sql(exp.cast(rows.of, "DOUBLE")))
            operand_type = DOUBLE
        if operand_type.is_float:
            operand_type = DOUBLE
        elif function == layout.SUM:
            operand_type = LONG
        column = self._column(name)
        found = self._running_aggregate(
            RunningAggregate(rows.variable, function, column, operand_type.is_float), operand_type
        )
        if not isinstance(node, exp.Avg):
            return found
        count = self._running_aggregate(
            RunningAggregate(rows.variable, layout.COUNT, column, is_float=False), LONG
        )
        zero = self._constants.push(0, 0.0, LONG)
        null = self._constants.push(0, 0.0, DOUBLE, is_null=True)
        mean = apply(layout.DIVIDE, DOUBLE, found, as_float(count), second=1)
        is_none = apply(layout.EQUAL, BOOLEAN, count, zero)
        return apply(layout.CHOOSE, DOUBLE, is_none, null, mean)

    def _running_aggregate(self, aggregate: RunningAggregate, operand_type: ValueType) -> Operand:
        number = self._running.setdefault(aggregate, len(self._running))
        return Operand([Instruction(layout.AGGREGATE, number)], operand_type)


_C = Compiler
_COMPILERS: Mapping[Any, Callable[[Compiler, Any], Operand]] = {
    exp.Paren: lambda self, node: self._compile(node.this),
    tuple(COMPARISONS): _C._compare,
    tuple(ARITHMETIC): _C._arithmetic,
    exp.Between: _C._between,
    (exp.And, exp.Or): _C._connector,
    exp.Not: _C._not,
    exp.Is: _C._is,
    exp.Case: _C._case,
    exp.If: _C._if,
    exp.Coalesce: _C._coalesce,
    exp.Neg: _C._negative,
}
