"""References of expressions to the rows of a match: FIRST and LAST of variables, aggregates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.functions.patterns.program import RowReference
from gpu_windows.rules.pattern_matching.layout import EVERY

#: Expressions that are null if a part is: they can be a column, which is null for a missing row.
_STRICT = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Paren,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Not, exp.Between, exp.In, exp.Like,
    exp.Cast, exp.DataType, exp.Upper, exp.Lower, exp.Length, exp.Abs, exp.Floor, exp.Ceil,
    exp.DPipe, exp.Concat, exp.Literal, exp.Boolean, exp.Null, exp.Interval, exp.Var,
    exp.Identifier,
)  # fmt: skip
#: The function that returns the time of a match, that of its last row.
ROWTIME = "MATCH_ROWTIME"
#: Maximum offset of FIRST and LAST.
_MAX_OFFSET = 2**31 - 1
_NAVIGATIONS: Mapping[type[exp.Expr], bool] = {exp.First: True, exp.Last: False}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_ELSEWHERE = {
    "PREV": "physical offsets are not covered: LAST(A.x, 1) is the row of A before its last one",
    "NEXT": "physical offsets are not covered: FIRST(A.x, 1) is the row of A after its first one",
    "CLASSIFIER": "a match is one row: use COUNT(A.x) for the number of rows of a variable",
    "MATCH_NUMBER": "matches have no numbers",
    "MATCH_PROCTIME": "matches are found in event time: use MATCH_ROWTIME",
}
#: Functions that are allowed in expressions over a match alone.
IN_PATTERNS = (ROWTIME, *_ELSEWHERE, "FIRST", "LAST")


@dataclass(frozen=True)
class RowExpression:
    """An expression over one row of a match.

    Parameters
    ----------
    row : RowReference, optional
        None if it references no row, and is the same for all.
    of : sqlglot.exp.Expr
        Over the columns of the row.
    """

    row: RowReference | None
    of: exp.Expr


@dataclass(frozen=True)
class AggregateArgument:
    """The rows of a variable that an aggregate takes, and its argument.

    Parameters
    ----------
    variable : int
    node : sqlglot.exp.Expr
        The aggregate.
    of : sqlglot.exp.Expr, optional
        Its argument over the columns of a row; None counts all rows.
    """

    variable: int
    node: exp.Expr
    of: exp.Expr | None


class Navigation:
    """Resolves the references of expressions to rows of a match.

    Parameters
    ----------
    pattern : Pattern
    time : str
        The event time column.
    """

    def __init__(self, pattern: Pattern, time: str) -> None:
        self._pattern, self._time = pattern, time

    def value(self, node: exp.Expr, candidate: int | None = None) -> RowExpression | None:
        """Return an expression that references one row at most; None for others.

        Parameters
        ----------
        node : sqlglot.exp.Expr
        candidate : int, optional
            The variable that the current row may be matched to: this row exists. Another row may be
            missing, and an expression that is not null then cannot be a column.

        Raises
        ------
        SqlError
            If it references a variable that does not exist.
        """
        if any(map(is_aggregate, node.walk())):
            return None
        rows: set[RowReference] = set()
        of = self._over_one_row(node, rows)
        if len(rows) > 1:
            return None
        current = EVERY if candidate is None else candidate
        is_there = rows <= {RowReference(EVERY), RowReference(current)}
        if not (is_there and candidate is not None) and not is_strict(node):
            return None
        return RowExpression(next(iter(rows), None), of)

    def _over_one_row(self, node: exp.Expr, rows: set[RowReference]) -> exp.Expr:
        """Return an expression over the columns of a row; add its references to ``rows``."""

        def over_row(each: exp.Expr) -> exp.Expr:
            if is_navigation(each):
                row, inner = self._navigation(each)
                rows.add(row)
                return inner
            if is_rowtime(each):
                rows.add(RowReference(EVERY))
                return column_of(self._time)
            if isinstance(each, exp.Column):
                rows.add(RowReference(self._variable(each)))
                return column_of(each.name)
            return each

        return replace_parts(node.copy(), over_row)

    def push_inwards(self, node: exp.Expr) -> exp.Expr | None:
        """Rewrite FIRST or LAST of an expression to an expression over FIRST or LAST of columns.

        None if it takes a column already, or may be not null for a missing row.
        """
        inner = node.this
        if isinstance(node, exp.Anonymous):
            inner, _ = node.expressions[0], _offset(node)
        if isinstance(inner, exp.Column) or is_rowtime(inner) or not is_strict(inner):
            return None
        if inner.find(exp.Column) is None:
            return None
        self._single_variable(node, inner)  # raises for several variables

        def navigate(each: exp.Expr) -> exp.Expr:
            if not (isinstance(each, exp.Column) or is_rowtime(each)):
                return each
            made = node.copy()
            if isinstance(made, exp.Anonymous):
                made.set("expressions", [each.copy(), made.expressions[1]])
            else:
                made.set("this", each.copy())
            return made

        return exp.Paren(this=replace_parts(inner.copy(), navigate))

    def _navigation(self, node: exp.Expr) -> tuple[RowReference, exp.Expr]:
        """Return the row that FIRST or LAST references, and the expression over it."""
        inner, offset = node.this, 0
        if isinstance(node, exp.Anonymous):
            inner, offset = node.expressions[0], _offset(node)
        first = _NAVIGATIONS.get(type(node), node.name.upper() == "FIRST")
        if not isinstance(inner, exp.Expr):
            raise sql_error(node, "FIRST and LAST take an expression")
        variable, of = self._single_variable(node, inner)
        return RowReference(variable, first, offset), of

    def rows(self, node: exp.Expr) -> AggregateArgument:
        """Return the rows and the argument of an aggregate.

        Raises
        ------
        SqlError
            If it is not covered.
        """
        if not isinstance(node, _AGGREGATES):
            rule = "the aggregates over rows of a match are SUM, COUNT, AVG, MIN and MAX"
            raise sql_error(node, rule)
        of = node.this
        if not isinstance(of, exp.Expr):
            raise sql_error(node, "an aggregate takes an expression, and COUNT also *")
        if isinstance(of, exp.Distinct):
            raise sql_error(node, "aggregates over the rows of a match take no DISTINCT")
        if isinstance(node, exp.Count) and node.expressions:
            raise sql_error(node, "COUNT takes one expression")
        if isinstance(of, exp.Star | exp.Literal):
            return AggregateArgument(EVERY, node, None if isinstance(node, exp.Count) else of)
        if isinstance(of, exp.Column) and isinstance(of.this, exp.Star):
            return AggregateArgument(self._variable(of), node, None)
        variable, argument = self._single_variable(node, of)
        return AggregateArgument(variable, node, argument)

    def _single_variable(self, node: exp.Expr, inner: exp.Expr) -> tuple[int, exp.Expr]:
        """Return the one variable of a part, and the part over the columns of a row."""
        if any(is_navigation(each) or is_aggregate(each) for each in inner.walk()):
            raise sql_error(node, "FIRST, LAST and aggregates cannot be nested")
        rows: set[RowReference] = set()
        of = self._over_one_row(inner, rows)
        if len(rows) > 1:
            raise sql_error(node, "this can take the rows of one variable")
        return next(iter(rows), RowReference(EVERY)).variable, of

    def _variable(self, column: exp.Column) -> int:
        if not column.table:
            return EVERY
        if len(column.parts) > 2:
            raise sql_error(column, "a column of a match takes one qualifier, its variable")
        index = self._pattern.index_of(column.table)
        if index is None:
            names = ", ".join(self._pattern.names)
            raise sql_error(column, f"there is no such variable in the pattern; there are {names}")
        return index


def is_strict(node: exp.Expr) -> bool:
    """Whether an expression is null if a row that it references is missing."""
    if is_navigation(node) or is_rowtime(node) or isinstance(node, exp.Column):
        return True
    return isinstance(node, _STRICT) and all(map(is_strict, node.iter_expressions()))


def replace_parts(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a tree with parts replaced, from the outermost on."""
    made = change(node)
    if made is not node:
        return made
    for name, each in [*node.args.items()]:
        if isinstance(each, exp.Expr):
            node.set(name, replace_parts(each, change))
        elif isinstance(each, list):
            parts = [replace_parts(p, change) if isinstance(p, exp.Expr) else p for p in each]
            node.set(name, parts)
    return node


def column_of(name: str) -> exp.Expr:
    """Return a column by its name alone."""
    column: exp.Expr = exp.column(exp.to_identifier(name, quoted=True))
    return column


def _offset(node: exp.Anonymous) -> int:
    number = node.expressions[1]
    if not (isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()):
        raise sql_error(node, "FIRST and LAST take a literal number of rows from 0")
    if int(number.name) > _MAX_OFFSET:
        raise sql_error(node, f"FIRST and LAST count up to {_MAX_OFFSET} rows")
    if len(node.expressions) > 2:
        raise sql_error(node, "FIRST and LAST take an expression and a number of rows")
    return int(number.name)


def is_navigation(node: exp.Expr) -> bool:
    """Whether it is FIRST or LAST."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper() in ("FIRST", "LAST") and len(node.expressions) > 1
    return isinstance(node, exp.First | exp.Last)


def is_rowtime(node: exp.Expr) -> bool:
    """Whether it is the time of the match."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == ROWTIME


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate; FIRST and LAST are not."""
    kinds = (exp.AggFunc, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
    return isinstance(node, kinds) and not is_navigation(node)


def check_expression(node: exp.Expr) -> None:
    """Raise `SqlError` if an expression has parts that are not covered over a match."""
    for each in node.walk():
        name = each.name.upper() if isinstance(each, exp.Anonymous) else ""
        if name in _ELSEWHERE:
            raise sql_error(each, _ELSEWHERE[name])
        if isinstance(each, exp.Query | exp.Window):
            raise sql_error(each, "subqueries and OVER are not allowed in expressions over a match")
        if name == ROWTIME and each.expressions:
            raise sql_error(each, f"{ROWTIME}() takes no arguments")
