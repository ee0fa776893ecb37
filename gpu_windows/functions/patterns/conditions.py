"""The conditions of DEFINE as instructions, and as columns of what is of one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.arrow import compute
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
)
from gpu_windows.functions.patterns.navigation import (
    Navigation,
    Rows,
    Value,
    check_read,
    is_aggregate,
)
from gpu_windows.functions.patterns.program import Conditions, Instruction, Kept
from gpu_windows.rules.pattern_matching import layout


class Columns(Protocol):
    """Columns of the input, to which expressions over a row are added."""

    def name(self, text: str) -> str:
        """Return the name of the column of an expression."""

    def dtype(self, name: str) -> pa.DataType:
        """Return the type of a column."""


_COMPARED: Mapping[type[exp.Expr], tuple[int, bool, bool]] = {  # whether swapped, and inverted
    exp.EQ: (layout.EQUAL, False, False),
    exp.NEQ: (layout.EQUAL, False, True),
    exp.LT: (layout.LESS, False, False),
    exp.LTE: (layout.LESS_OR_EQUAL, False, False),
    exp.GT: (layout.LESS, True, False),
    exp.GTE: (layout.LESS_OR_EQUAL, True, False),
}
_MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}
_COMPUTED: Mapping[type[exp.Expr], int] = {
    exp.Add: layout.ADD,
    exp.Sub: layout.SUBTRACT,
    exp.Mul: layout.MULTIPLY,
    exp.Div: layout.DIVIDE,
    exp.Mod: layout.MODULO,
    exp.IntDiv: layout.QUOTIENT,
}
_KEEPS: Mapping[type[exp.Expr], int] = {
    exp.Sum: layout.SUM,
    exp.Avg: layout.SUM,
    exp.Min: layout.LEAST,
    exp.Max: layout.GREATEST,
}

Code = list[Instruction]


@dataclass(frozen=True)
class Made:
    """Instructions, and what they leave on the stack.

    Parameters
    ----------
    code : list of Instruction
    kind : Kind
    constant : decimal.Decimal, optional
        A number with a point that is written out, which is made what the other operand is.
    """

    code: Code
    kind: Kind
    constant: Decimal | None = None


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
        self._constants: list[tuple[int, float, bool]] = []
        self._kept: dict[Kept, int] = {}
        self._candidate = 0  # the variable whose condition is made

    def conditions(self, nodes: Sequence[exp.Expr | None]) -> Conditions:
        """Return the conditions of all variables; None: it is true.

        Raises
        ------
        SqlError
            With the place of what is not covered.
        """
        of = tuple(tuple(self._condition(*each)) for each in enumerate(nodes))
        return Conditions(
            of=of,
            texts=tuple("" if node is None else key_of(node) for node in nodes),
            columns=tuple(self._read),
            ranked=frozenset(self._ranked),
            constants=tuple(self._constants),
            kept=tuple(self._kept),
        )

    def _condition(self, variable: int, node: exp.Expr | None) -> Code:
        if node is None:
            return []
        self._candidate = variable
        check_read(node)
        made = self._made(node)
        if made.kind.meaning not in (Meaning.FLAG, Meaning.NOTHING):
            raise refused(node, f"a condition is true or false, and this is {made.kind.describe()}")
        return made.code

    def _made(self, node: exp.Expr) -> Made:
        value = self._navigation.value(node, self._candidate)
        if value is not None:
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
        if value.place is None:
            return self._constant(node)
        column = self._columns.name(written(value.of))
        number = self._column(column)
        kind = self._kind(node, self._columns.dtype(column))
        if kind.meaning is Meaning.RANKED:
            self._ranked.add(number)
        place = value.place
        does = layout.FIRST if place.from_first else layout.LAST
        return Made([Instruction(does, place.variable, place.offset, number)], kind)

    def _column(self, name: str) -> int:
        return self._read.setdefault(name, len(self._read))

    @staticmethod
    def _kind(node: exp.Expr, dtype: pa.DataType) -> Kind:
        kind = kind_of(dtype)
        if kind is None:
            raise refused(node, f"values of this type are not compared: {dtype}")
        return kind

    def _constant(self, node: exp.Expr) -> Made:
        found = compute(node, pa.table({"one": [0]}))[0]
        if types.is_decimal(found.type) and found.is_valid:
            return Made([], NOTHING, found.as_py())
        kind = self._kind(node, found.type)
        if kind.meaning is Meaning.RANKED:
            raise refused(node, "this is compared with values of one row alone")
        if not found.is_valid:
            return self._pushed(0, 0.0, kind, is_null=True)
        if kind.is_float:
            return self._pushed(0, float(found.as_py()), kind)
        integers = pa.int32() if found.type.bit_width == 32 else pa.int64()
        whole = found.cast(pa.int64()) if kind.meaning is Meaning.FLAG else found
        if kind.meaning in (Meaning.TIME, Meaning.DURATION):
            unit = pa.timestamp("us", found.type.tz) if kind.meaning is Meaning.TIME else None
            whole = found.cast(unit or pa.duration("us")).cast(integers)
        return self._pushed(int(whole.as_py()), 0.0, kind)

    def _pushed(self, whole: int, real: float, kind: Kind, *, is_null: bool = False) -> Made:
        self._constants.append((whole, real, is_null))
        return Made([Instruction(layout.CONSTANT, len(self._constants) - 1)], kind)

    def _settled(self, made: Made, other: Kind) -> Made:
        """Return what a number with a point is beside another operand."""
        if made.constant is None:
            return made
        if other.meaning is Meaning.WHOLE and made.constant == int(made.constant):
            return self._pushed(int(made.constant), 0.0, LONG)
        return self._pushed(0, float(made.constant), DOUBLE)

    # ---- truth

    def _compared(self, node: exp.Binary) -> Made:
        one, other = self._made(node.this), self._made(node.expression)
        does, swapped, inverted = _COMPARED[type(node)]
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
            return self._beside_decimal(_MIRRORED.get(kind, kind), other, one)
        if other.constant is None or one.kind.meaning is not Meaning.WHOLE:
            return None
        value = other.constant
        if value == int(value):
            return None
        if kind in (exp.EQ, exp.NEQ):  # never equal, and null where the other is
            code = [*one.code, *one.code, Instruction(layout.EQUAL)]
            return Made(code if kind is exp.NEQ else [*code, Instruction(layout.NOT)], FLAG)
        bound = self._pushed(floor(value) if kind in (exp.LTE, exp.GT) else ceil(value), 0.0, LONG)
        does, swapped, _ = _COMPARED[kind]
        first, second = (bound, one) if swapped else (one, bound)
        return Made([*first.code, *second.code, Instruction(does)], FLAG)

    def _unified(self, node: exp.Expr, one: Made, other: Made) -> tuple[Made, Made]:
        """Return two operands that can be compared."""
        one, other = self._settled(one, other.kind), self._settled(other, one.kind)
        if one.kind.is_number and other.kind.is_number:
            if one.kind.is_float or other.kind.is_float:
                return _as_float(one), _as_float(other)
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
        if made.kind.meaning not in (Meaning.FLAG, Meaning.NOTHING):
            raise refused(node, f"this is true or false, and here {made.kind.describe()}")
        return made

    def _not(self, node: exp.Not) -> Made:
        return Made([*self._truth(node.this).code, Instruction(layout.NOT)], FLAG)

    def _is(self, node: exp.Is) -> Made:
        if isinstance(node.expression, exp.Null):
            return Made([*self._made(node.this).code, Instruction(layout.IS_NULL)], FLAG)
        if isinstance(node.expression, exp.Boolean):
            truth = self._truth(node.this)
            no = self._pushed(0, 0.0, FLAG)
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
        *first, last = (node.this, *node.expressions)
        branches = [(exp.Not(this=exp.Is(this=e, expression=exp.Null())), e) for e in first]
        return self._chosen(node, branches, last)

    def _chosen(
        self, node: exp.Expr, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr
    ) -> Made:
        found = self._made(default)
        for condition, result in reversed(branches):
            truth = self._truth(condition)
            yes, found = self._unified(node, self._made(result), found)
            code = [*truth.code, *yes.code, *found.code, Instruction(layout.CHOOSE)]
            found = Made(code, yes.kind)
        return found

    # ---- numbers

    def _computed(self, node: exp.Binary) -> Made:
        one, other = self._made(node.this), self._made(node.expression)
        times = self._of_times(node, one, other)
        if times is not None:
            return times
        one, other = self._settled(one, other.kind), self._settled(other, one.kind)
        if NOTHING in (one.kind, other.kind):
            one, other = (
                Made(e.code, DOUBLE if e.kind == NOTHING else e.kind) for e in (one, other)
            )
        for each in (one, other):
            _check_number(node, each.kind)
        does = _COMPUTED[type(node)]
        if does == layout.DIVIDE or one.kind.is_float or other.kind.is_float:
            if does == layout.QUOTIENT:
                raise refused(node, "DIV is of whole numbers")
            one, other = _as_float(one), _as_float(other)
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
        does = _COMPUTED[type(node)]
        return Made([*one.code, *other.code, Instruction(does, 64)], kind)

    def _negative(self, node: exp.Neg) -> Made:
        made = self._made(node.this)
        _check_number(node, made.kind)
        code = [*made.code, Instruction(layout.NEGATE, made.kind.bits, int(made.kind.is_float))]
        return Made(code, made.kind)

    # ---- aggregates

    def _aggregate(self, node: exp.Expr) -> Made:
        rows = self._navigation.rows(node)
        if isinstance(node, exp.Count):
            column = -1 if rows.of is None else self._column(self._columns.name(written(rows.of)))
            return self._of_kept(Kept(rows.variable, layout.COUNT, column, is_float=False), LONG)
        return self._folded(node, rows)

    def _folded(self, node: exp.Expr, rows: Rows) -> Made:
        assert rows.of is not None, "only COUNT is over nothing"
        name = self._columns.name(written(rows.of))
        kind, keeps = self._kind(node, self._columns.dtype(name)), _KEEPS[type(node)]
        if keeps == layout.SUM or kind.meaning is Meaning.RANKED:
            _check_number(node, kind)
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
        zero, null = self._pushed(0, 0.0, LONG), self._pushed(0, 0.0, DOUBLE, is_null=True)
        mean = [*found.code, *_as_float(count).code, Instruction(layout.DIVIDE, 0, 1)]
        is_none = [*count.code, *zero.code, Instruction(layout.EQUAL)]
        return Made([*is_none, *null.code, *mean, Instruction(layout.CHOOSE)], DOUBLE)

    def _of_kept(self, kept: Kept, kind: Kind) -> Made:
        number = self._kept.setdefault(kept, len(self._kept))
        return Made([Instruction(layout.AGGREGATE, number)], kind)


def _as_float(made: Made) -> Made:
    if made.kind.is_float:
        return made
    return Made([*made.code, Instruction(layout.TO_FLOAT)], DOUBLE)


def _check_number(node: exp.Expr, kind: Kind) -> None:
    if not kind.is_number:
        raise refused(node, f"rows are computed with by numbers, and this is {kind.describe()}")
    if kind.is_float and kind.bits < 64:
        raise refused(node, "rows are computed with by DOUBLE, and this is FLOAT: say CAST")


_C = Compiler
_MAKERS: Mapping[Any, Callable[[Compiler, Any], Made]] = {
    exp.Paren: lambda self, node: self._made(node.this),
    tuple(_COMPARED): _C._compared,
    tuple(_COMPUTED): _C._computed,
    exp.Between: _C._between,
    (exp.And, exp.Or): _C._connected,
    exp.Not: _C._not,
    exp.Is: _C._is,
    exp.Case: _C._case,
    exp.If: _C._if,
    exp.Coalesce: _C._coalesce,
    exp.Neg: _C._negative,
}
