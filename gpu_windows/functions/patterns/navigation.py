"""What expressions over the rows of a match name: rows of variables, and aggregates over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from gpu_windows.expressions.places import refused
from gpu_windows.functions.patterns.pattern import Pattern
from gpu_windows.functions.patterns.program import Place
from gpu_windows.rules.pattern_matching.layout import EVERY

#: What is null where a part of it is: it may be computed beside the rows, and be null without one.
_STRICT = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Paren,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Not, exp.Between, exp.In, exp.Like,
    exp.Cast, exp.DataType, exp.Upper, exp.Lower, exp.Length, exp.Abs, exp.Floor, exp.Ceil,
    exp.DPipe, exp.Concat, exp.Literal, exp.Boolean, exp.Null, exp.Interval, exp.Var,
    exp.Identifier,
)  # fmt: skip
#: What gives the time of a match: of its last row.
ROWTIME = "MATCH_ROWTIME"
#: Rows that FIRST and LAST count at most.
_MOST_APART = 2**31 - 1
_NAVIGATIONS: Mapping[type[exp.Expr], bool] = {exp.First: True, exp.Last: False}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_ELSEWHERE = {
    "PREV": "rows outside of the variables are not named: LAST(A.x, 1) is the row of A before its "
    "last one",
    "NEXT": "rows outside of the variables are not named: FIRST(A.x, 1) is the row of A after its "
    "first one",
    "CLASSIFIER": "a match is one row: COUNT(A.x) tells how many rows a variable has",
    "MATCH_NUMBER": "matches have no numbers",
    "MATCH_PROCTIME": "matches are found in event time",
}
#: What is called in expressions over a match alone.
IN_PATTERNS = (ROWTIME, *_ELSEWHERE, "FIRST", "LAST")


@dataclass(frozen=True)
class Value:
    """An expression over one row of a match.

    Parameters
    ----------
    place : Place, optional
        None: it names no row, and is the same for all.
    of : sqlglot.exp.Expr
        Over the columns of the row.
    """

    place: Place | None
    of: exp.Expr


@dataclass(frozen=True)
class Rows:
    """The rows of a variable that an aggregate is over.

    Parameters
    ----------
    variable : int
    node : sqlglot.exp.Expr
        The aggregate.
    of : sqlglot.exp.Expr, optional
        Its argument over the columns of a row; None: it counts all rows.
    """

    variable: int
    node: exp.Expr
    of: exp.Expr | None


class Navigation:
    """Tells what parts of expressions mean.

    Parameters
    ----------
    pattern : Pattern
    time : str
        The event time column.
    """

    def __init__(self, pattern: Pattern, time: str) -> None:
        self._pattern, self._time = pattern, time

    def value(self, node: exp.Expr, candidate: int | None = None) -> Value | None:
        """Return a part of an expression that is over one row at most; None if it is not.

        Parameters
        ----------
        node : sqlglot.exp.Expr
        candidate : int, optional
            The variable that a row may be taken for: this row is there. Another one may be missing,
            and what is not null then is not of a row.

        Raises
        ------
        SqlError
            If it names what is not there.
        """
        places: set[Place] = set()
        of = self._over_one(node, places)
        if of is None or len(places) > 1:
            return None
        is_there = places <= {Place(EVERY), Place(EVERY if candidate is None else candidate)}
        if not (is_there and candidate is not None) and not is_strict(node):
            return None
        return Value(next(iter(places), None), of)

    def _over_one(self, node: exp.Expr, places: set[Place]) -> exp.Expr | None:
        """Return an expression over the columns of one row; ``places``: those that it names."""
        if aggregate_in(node):
            return None

        def over_row(each: exp.Expr) -> exp.Expr:
            if is_navigation(each):
                place, inner = self._navigated(each)
                places.add(place)
                return inner
            if is_rowtime(each):
                places.add(Place(EVERY))
                return column_of(self._time)
            if isinstance(each, exp.Column):
                places.add(Place(self._variable(each)))
                return column_of(each.name)
            return each

        return replaced(node.copy(), over_row)

    def inwards(self, node: exp.Expr) -> exp.Expr | None:
        """Return an expression over FIRST or LAST of columns for one of an expression over columns.

        None: it is of a column already, or is not null where there is no row.
        """
        inner = node.this
        if isinstance(node, exp.Anonymous):
            inner, _ = node.expressions[0], _offset(node)
        if isinstance(inner, exp.Column) or is_rowtime(inner) or not is_strict(inner):
            return None
        if inner.find(exp.Column) is None:
            return None
        self._of_one_variable(node, inner)  # it is refused for more

        def navigated(each: exp.Expr) -> exp.Expr:
            if not (isinstance(each, exp.Column) or is_rowtime(each)):
                return each
            made = node.copy()
            if isinstance(made, exp.Anonymous):
                made.set("expressions", [each.copy(), made.expressions[1]])
            else:
                made.set("this", each.copy())
            return made

        return exp.Paren(this=replaced(inner.copy(), navigated))

    def _navigated(self, node: exp.Expr) -> tuple[Place, exp.Expr]:
        """Return the row that FIRST or LAST means, and the expression over it."""
        inner, offset = node.this, 0
        if isinstance(node, exp.Anonymous):
            inner, offset = node.expressions[0], _offset(node)
        first = _NAVIGATIONS.get(type(node), node.name.upper() == "FIRST")
        if not isinstance(inner, exp.Expr):
            raise refused(node, "FIRST and LAST are of an expression")
        variable, of = self._of_one_variable(node, inner)
        return Place(variable, first, offset), of

    def rows(self, node: exp.Expr) -> Rows:
        """Return what an aggregate is over.

        Raises
        ------
        SqlError
            If it is not covered.
        """
        if not isinstance(node, _AGGREGATES):
            raise refused(node, "over the rows of a match there are SUM, COUNT, AVG, MIN and MAX")
        of = node.this
        if not isinstance(of, exp.Expr):
            raise refused(node, "an aggregate is over an expression, COUNT over * besides")
        if isinstance(of, exp.Distinct):
            raise refused(node, "aggregates over the rows of a match take no DISTINCT")
        if isinstance(node, exp.Count) and node.expressions:
            raise refused(node, "COUNT is over one expression")
        if isinstance(of, exp.Star | exp.Literal):
            return Rows(EVERY, node, None if isinstance(node, exp.Count) else of)
        if isinstance(of, exp.Column) and isinstance(of.this, exp.Star):
            return Rows(self._variable(of), node, None)
        variable, argument = self._of_one_variable(node, of)
        return Rows(variable, node, argument)

    def _of_one_variable(self, node: exp.Expr, inner: exp.Expr) -> tuple[int, exp.Expr]:
        """Return the variable that a part is over, and the part over the columns of a row."""
        if any(is_navigation(each) or is_aggregate(each) for each in inner.walk()):
            raise refused(node, "FIRST, LAST and aggregates are not within each other")
        variables = set()

        def over_row(each: exp.Expr) -> exp.Expr:
            if is_rowtime(each):
                variables.add(EVERY)
                return column_of(self._time)
            if isinstance(each, exp.Column):
                variables.add(self._variable(each))
                return column_of(each.name)
            return each

        of = replaced(inner.copy(), over_row)
        if len(variables) > 1:
            raise refused(node, "this is over the rows of one variable")
        return next(iter(variables), EVERY), of

    def _variable(self, column: exp.Column) -> int:
        if not column.table:
            return EVERY
        if len(column.parts) > 2:
            raise refused(column, "a column of a match is named by its variable and itself")
        place = self._pattern.place(column.table)
        if place is None:
            known = ", ".join(self._pattern.names)
            raise refused(column, f"there is no such variable in the pattern; there are {known}")
        return place


def is_strict(node: exp.Expr) -> bool:
    """Whether an expression is null where a row that it names is missing."""
    if is_navigation(node) or is_rowtime(node) or isinstance(node, exp.Column):
        return True
    return isinstance(node, _STRICT) and all(map(is_strict, node.iter_expressions()))


def replaced(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a tree with parts in place of others, from the outermost on."""
    made = change(node)
    if made is not node:
        return made
    for name, each in [*node.args.items()]:
        if isinstance(each, exp.Expr):
            node.set(name, replaced(each, change))
        elif isinstance(each, list):
            parts = [replaced(p, change) if isinstance(p, exp.Expr) else p for p in each]
            node.set(name, parts)
    return node


def column_of(name: str) -> exp.Expr:
    """Return a column by its name alone."""
    column: exp.Expr = exp.column(exp.to_identifier(name, quoted=True))
    return column


def _offset(node: exp.Anonymous) -> int:
    number = node.expressions[1]
    if not (isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()):
        raise refused(node, "FIRST and LAST take a number of rows that is written out, from 0 on")
    if int(number.name) > _MOST_APART:
        raise refused(node, f"FIRST and LAST count up to {_MOST_APART} rows")
    if len(node.expressions) > 2:
        raise refused(node, "FIRST and LAST take an expression and a number of rows")
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
    """Whether it is an aggregate, and neither FIRST nor LAST."""
    kinds = (exp.AggFunc, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
    return isinstance(node, kinds) and not is_navigation(node)


def aggregate_in(node: exp.Expr) -> bool:
    """Whether there is an aggregate in an expression."""
    return any(map(is_aggregate, node.walk()))


def check_read(node: exp.Expr) -> None:
    """Raise `SqlError` if an expression over a match has what none has."""
    for each in node.walk():
        name = each.name.upper() if isinstance(each, exp.Anonymous) else ""
        if name in _ELSEWHERE:
            raise refused(each, _ELSEWHERE[name])
        if isinstance(each, exp.Query | exp.Window):
            raise refused(each, "queries and OVER do not stand in expressions over a match")
        if name == ROWTIME and each.expressions:
            raise refused(each, f"{ROWTIME}() takes nothing")
