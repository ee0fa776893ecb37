"""The conditions of DEFINE as instructions, and as columns of what is of one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import ceil, floor
from typing import Any

import pyarrow as pa
from sqlglot import exp

from gpu_windows.expressions.evaluated import check_read as check_read_whole
from gpu_windows.expressions.places import key_of, refused, written
from gpu_windows.functions.patterns.kinds import (
    DOUBLE,
    DURATION,
    FLAG,
    LONG,
    NOTHING,
    Kind,
    Meaning,
    kind_of,
    wider,
)
from gpu_windows.functions.patterns.navigation import (
    Navigation,
    Rows,
    Value,
    check_read,
    column_of,
    is_aggregate,
    is_navigation,
)
from gpu_windows.functions.patterns.operands import (
    COMPARED,
    COMPUTED,
    KEEPS,
    MAY_FAIL,
    MIRRORED,
    Code,
    Columns,
    Constants,
    Made,
    as_float,
    check_number,
    is_long,
    is_written,
)
from gpu_windows.functions.patterns.program import Conditions, Instruction, Kept, Place
from gpu_windows.rules.pattern_matching import layout


class Compiler:
    """Makes instructions of conditions.

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
        self._kept: dict[Kept, int] = {}
        self._of: list[tuple[Instruction, ...]] = []
        self._texts: list[str] = []
        self._candidate = 0  # the variable whose condition is made
        self._whole: exp.Expr | None = None  # which Spark evaluates as it is, if it is of one row

    def add(self, variable: int, node: exp.Expr | None) -> None:
        """Take the condition of the next variable; None: it is true.

        Raises
        ------
        SqlError
            With the place of what is not covered.
        """
        self._of.append(tuple(self._condition(variable, node)))
        self._texts.append("" if node is None else key_of(node))

    def conditions(self) -> Conditions:
        """Return the conditions of all variables."""
        return Conditions(
            of=tuple(self._of),
            texts=tuple(self._texts),
            columns=tuple(self._read),
            ranked=frozenset(self._ranked),
            constants=tuple(self._constants.known),
            kept=tuple(self._kept),
        )

    def _condition(self, variable: int, node: exp.Expr | None) -> Code:
        if node is None:
            return []
        self._candidate, self._whole = variable, node
        check_read(node)
        return self._truth(node).code

    def _made(self, node: exp.Expr) -> Made:
        value = self._navigation.value(node, self._candidate)
        if value is not None and not self._is_in_parts(node):
            return self._of_one_row(node, value)
        if is_aggregate(node):
            return self._aggregate(node)
        for kinds, make in _MAKERS.items():
            if isinstance(node, kinds):
                check_read_whole(node)
                if node.args.get("negate"):
                    return self._negated(node)
                return make(self, node)
        rule = (
            "between rows of a match there are comparisons, + - * / % DIV, AND, OR, NOT, IS NULL, "
            "BETWEEN, CASE and aggregates; other functions are of one row"
        )
        raise refused(node, rule)

    def _negated(self, node: exp.Expr) -> Made:
        plain = node.copy()
        plain.set("negate", False)
        return Made([*self._made(plain).code, Instruction(layout.NOT)], FLAG)

    # ---- values

    def _of_one_row(self, node: exp.Expr, value: Value) -> Made:
        if value.place is None and is_written(value.of):
            return self._constants.of(node)
        column = self._columns.name(written(value.of))
        number = self._column(column)
        kind = self._kind(node, self._columns.dtype(column))
        if kind.meaning is Meaning.RANKED:
            self._ranked.add(number)
        place = value.place or Place(self._candidate)  # what is the same for all rows
        does = layout.FIRST if place.from_first else layout.LAST
        return Made([Instruction(does, place.variable, place.offset, number)], kind)

    def _is_in_parts(self, node: exp.Expr) -> bool:
        """Whether a part that may have no value is computed of its own parts, when it is asked for.

        So it is if these are numbers and truths, and nothing but what there is between rows.
        """
        if node is self._whole or not any(isinstance(each, MAY_FAIL) for each in node.walk()):
            return False
        return self._is_made(node)

    def _is_made(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Literal):
            return not node.is_string and "." not in node.name  # decimals have other quotients
        if is_navigation(node):
            node = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
            return isinstance(node, exp.Column) and self._is_made(node)
        if isinstance(node, exp.Column):
            kind = kind_of(self._columns.dtype(self._columns.name(written(column_of(node.name)))))
            return kind in (FLAG, DOUBLE) or (kind is not None and kind.meaning is Meaning.WHOLE)
        leaf = isinstance(node, exp.Boolean | exp.Null)
        made = any(isinstance(node, kinds) for kinds in _MAKERS) or isinstance(node, exp.If)
        return leaf or (made and all(map(self._is_made, node.iter_expressions())))

    def _column(self, name: str) -> int:
        return self._read.setdefault(name, len(self._read))

    @staticmethod
    def _kind(node: exp.Expr, dtype: pa.DataType) -> Kind:
        kind = kind_of(dtype)
        if kind is None:
            raise refused(node, f"values of this type are not compared: {dtype}")
        return kind

    # ---- truth

    def _compared(self, node: exp.Binary) -> Made:
        one, other = self._made(node.this), self._made(node.expression)
        does, swapped, inverted = COMPARED[type(node)]
        bounded = self._beside_decimal(type(node), one, other)
        if bounded is not None:
            return bounded
        one, other = self._unified(node, one, other)
        first, second = (other, one) if swapped else (one, other)
        code = [*first.code, *second.code, Instruction(does, 0, int(one.kind.is_float))]
        return Made([*code, Instruction(layout.NOT)] if inverted else code, FLAG)

    def _beside_decimal(self, kind: type[exp.Expr], one: Made, other: Made) -> Made | None:
        """Return a comparison of a whole number with one that has a fraction; exactly."""
        if one.constant is not None and other.kind.meaning is Meaning.WHOLE:
            return self._beside_decimal(MIRRORED.get(kind, kind), other, one)
        if other.constant is None or one.kind.meaning is not Meaning.WHOLE:
            return None
        value = other.constant
        if value == int(value) or not is_long(Decimal(floor(value))):
            return None
        if kind in (exp.EQ, exp.NEQ):  # never equal, and null where the other is
            code = [*one.code, *one.code, Instruction(layout.EQUAL)]
            return Made(code if kind is exp.NEQ else [*code, Instruction(layout.NOT)], FLAG)
        whole = floor(value) if kind in (exp.LTE, exp.GT) else ceil(value)
        bound = self._constants.pushed(whole, 0.0, LONG)
        does, swapped, _ = COMPARED[kind]
        first, second = (bound, one) if swapped else (one, bound)
        return Made([*first.code, *second.code, Instruction(does)], FLAG)

    def _unified(self, node: exp.Expr, one: Made, other: Made) -> tuple[Made, Made]:
        """Return two operands that can be compared."""
        one, other = self._constants.both(one, other)
        if one.kind.is_number and other.kind.is_number:
            if one.kind.is_float or other.kind.is_float:
                return as_float(one), as_float(other)
            return one, other
        if NOTHING in (one.kind, other.kind):
            kind = other.kind if one.kind == NOTHING else one.kind
            return Made(one.code, kind), Made(other.code, kind)
        if (one.kind.meaning, one.kind.of) != (other.kind.meaning, other.kind.of):
            rule = (
                "rows are compared by values of one type: say CAST; these are "
                f"{one.kind.describe()} and {other.kind.describe()}"
            )
            raise refused(node, rule)
        return one, other

    def _between(self, node: exp.Between) -> Made:
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"])
        return self._made(exp.And(this=low, expression=high))

    def _connected(self, node: exp.Connector) -> Made:
        parts = [self._truth(each) for each in node.flatten()]
        does = layout.AND if isinstance(node, exp.And) else layout.OR
        code = [*parts[0].code]
        for each in parts[1:]:
            code += [*each.code, Instruction(does)]
        return Made(code, FLAG)

    def _truth(self, node: exp.Expr) -> Made:
        made = self._made(node)
        is_truth = made.kind.meaning in (Meaning.FLAG, Meaning.NOTHING)
        if not is_truth or made.constant is not None:
            shown = "a number" if made.constant is not None else made.kind.describe()
            raise refused(node, f"this is true or false, and here {shown}")
        return made

    def _not(self, node: exp.Not) -> Made:
        return Made([*self._truth(node.this).code, Instruction(layout.NOT)], FLAG)

    def _is(self, node: exp.Is) -> Made:
        if isinstance(node.expression, exp.Null):
            return Made([*self._made(node.this).code, Instruction(layout.IS_NULL)], FLAG)
        if isinstance(node.expression, exp.Boolean):
            truth = self._truth(node.this)
            no = self._constants.pushed(0, 0.0, FLAG)
            yes = truth if node.expression.this else Made(
                [*truth.code, Instruction(layout.NOT)], FLAG
            )  # fmt: skip
            code = [*truth.code, Instruction(layout.IS_NULL), *no.code, *yes.code]
            return Made([*code, Instruction(layout.CHOOSE)], FLAG)
        raise refused(node, "IS goes with NULL, TRUE and FALSE")

    def _case(self, node: exp.Case) -> Made:
        if node.this is not None:
            raise refused(node, "between rows CASE takes conditions: CASE WHEN ... THEN ...")
        branches = [(each.this, each.args["true"]) for each in node.args["ifs"]]
        return self._chosen(node, branches, node.args.get("default") or exp.Null())

    def _if(self, node: exp.If) -> Made:
        if node.args.get("false") is None:
            raise refused(node, "IF takes a condition and two values")
        return self._chosen(node, [(node.this, node.args["true"])], node.args["false"])

    def _coalesce(self, node: exp.Coalesce) -> Made:
        found = self._made(node.this)
        for each in node.expressions:
            found, other = self._unified(node, found, self._made(each))
            code = [*found.code, *other.code, Instruction(layout.FILL)]
            found = Made(code, wider(found.kind, other.kind))
        return found

    def _chosen(
        self, node: exp.Expr, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr
    ) -> Made:
        found = self._made(default)
        for condition, result in reversed(branches):
            truth = self._truth(condition)
            yes, found = self._unified(node, self._made(result), found)
            code = [*truth.code, *yes.code, *found.code, Instruction(layout.CHOOSE)]
            found = Made(code, wider(yes.kind, found.kind))
        return found

    # ---- numbers

    def _computed(self, node: exp.Binary) -> Made:
        one, other = self._made(node.this), self._made(node.expression)
        times = self._of_times(node, one, other)
        if times is not None:
            return times
        one, other = self._constants.both(one, other)
        if NOTHING in (one.kind, other.kind):
            one, other = (
                Made(e.code, DOUBLE if e.kind == NOTHING else e.kind) for e in (one, other)
            )
        for each in (one, other):
            check_number(node, each.kind)
        does = COMPUTED[type(node)]
        if does == layout.DIVIDE or one.kind.is_float or other.kind.is_float:
            if does == layout.QUOTIENT:
                raise refused(node, "DIV is of whole numbers")
            one, other = as_float(one), as_float(other)
            return Made([*one.code, *other.code, Instruction(does, 0, 1)], DOUBLE)
        bits = 64 if does == layout.QUOTIENT else max(one.kind.bits, other.kind.bits)
        code = [*one.code, *other.code, Instruction(does, bits)]
        return Made(code, Kind(Meaning.WHOLE, bits))

    def _of_times(self, node: exp.Binary, one: Made, other: Made) -> Made | None:
        """Return a difference of times, or a time before or after another; else None."""
        kinds = (one.kind.meaning, other.kind.meaning)
        is_sum, is_difference = isinstance(node, exp.Add), isinstance(node, exp.Sub)
        if not (is_sum or is_difference) or not {Meaning.TIME, Meaning.DURATION} & {*kinds}:
            return None
        if (
            kinds == (Meaning.TIME, Meaning.TIME) and is_difference and one.kind == other.kind
        ) or kinds == (Meaning.DURATION, Meaning.DURATION):
            kind = DURATION
        elif kinds == (Meaning.TIME, Meaning.DURATION):
            kind = one.kind
        elif kinds == (Meaning.DURATION, Meaning.TIME) and is_sum:
            kind = other.kind
        else:
            shown = f"{one.kind.describe()} and {other.kind.describe()}"
            raise refused(node, f"there is no sum or difference of {shown}")
        does = COMPUTED[type(node)]
        return Made([*one.code, *other.code, Instruction(does, 64)], kind)

    def _negative(self, node: exp.Neg) -> Made:
        made = self._made(node.this)
        check_number(node, made.kind)
        code = [*made.code, Instruction(layout.NEGATE, made.kind.bits, int(made.kind.is_float))]
        return Made(code, made.kind)

    # ---- aggregates

    def _aggregate(self, node: exp.Expr) -> Made:
        rows = self._navigation.rows(node)
        if isinstance(node, exp.Count):
            column = -1 if rows.of is None else self._counted(rows.of)
            return self._of_kept(Kept(rows.variable, layout.COUNT, column, is_float=False), LONG)
        return self._folded(node, rows)

    def _counted(self, of: exp.Expr) -> int:
        """Return a column that is null where an expression is: of numbers itself."""
        name = self._columns.name(written(of))
        kind = kind_of(self._columns.dtype(name))
        if kind is None or kind.meaning in (Meaning.RANKED, Meaning.NOTHING):
            is_there = exp.Not(this=exp.Is(this=of.copy(), expression=exp.Null()))
            name = self._columns.name(written(exp.Nullif(this=is_there, expression=exp.false())))
        return self._column(name)

    def _folded(self, node: exp.Expr, rows: Rows) -> Made:
        assert rows.of is not None, "only COUNT is over nothing"
        name = self._columns.name(written(rows.of))
        kind, keeps = self._kind(node, self._columns.dtype(name)), KEEPS[type(node)]
        if keeps == layout.SUM or kind.meaning is Meaning.RANKED:
            check_number(node, kind)
        if isinstance(node, exp.Avg) and not kind.is_float:
            name = self._columns.name(written(exp.cast(rows.of, "DOUBLE")))
            kind = DOUBLE
        if kind.is_float:
            kind = DOUBLE
        elif keeps == layout.SUM:
            kind = LONG
        column = self._column(name)
        found = self._of_kept(Kept(rows.variable, keeps, column, kind.is_float), kind)
        if not isinstance(node, exp.Avg):
            return found
        count = self._of_kept(Kept(rows.variable, layout.COUNT, column, is_float=False), LONG)
        zero = self._constants.pushed(0, 0.0, LONG)
        null = self._constants.pushed(0, 0.0, DOUBLE, is_null=True)
        mean = [*found.code, *as_float(count).code, Instruction(layout.DIVIDE, 0, 1)]
        is_none = [*count.code, *zero.code, Instruction(layout.EQUAL)]
        return Made([*is_none, *null.code, *mean, Instruction(layout.CHOOSE)], DOUBLE)

    def _of_kept(self, kept: Kept, kind: Kind) -> Made:
        number = self._kept.setdefault(kept, len(self._kept))
        return Made([Instruction(layout.AGGREGATE, number)], kind)


_C = Compiler
_MAKERS: Mapping[Any, Callable[[Compiler, Any], Made]] = {
    exp.Paren: lambda self, node: self._made(node.this),
    tuple(COMPARED): _C._compared,
    tuple(COMPUTED): _C._computed,
    exp.Between: _C._between,
    (exp.And, exp.Or): _C._connected,
    exp.Not: _C._not,
    exp.Is: _C._is,
    exp.Case: _C._case,
    exp.If: _C._if,
    exp.Coalesce: _C._coalesce,
    exp.Neg: _C._negative,
}
