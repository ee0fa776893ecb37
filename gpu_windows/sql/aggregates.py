"""Aggregates of SQL, by the API's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.inputs import Columns
from gpu_windows.sql.said import Said, made

#: Aggregates of one column.
_OF_ONE: Mapping[type[exp.Expr], tuple[str, Callable[..., Any]]] = {
    exp.Sum: ("gw.sum", gw.sum_),
    exp.Avg: ("gw.mean", gw.mean),
    exp.Min: ("gw.min", gw.min_),
    exp.Max: ("gw.max", gw.max_),
    exp.Stddev: ("gw.stddev", gw.stddev),
    exp.StddevSamp: ("gw.stddev", gw.stddev),
    exp.Variance: ("gw.variance", gw.variance),
    exp.LogicalAnd: ("gw.bool_and", gw.bool_and),
    exp.LogicalOr: ("gw.bool_or", gw.bool_or),
    exp.ArrayAgg: ("gw.collect_list", gw.collect_list),
    exp.Median: ("gw.median", gw.median),
    exp.ApproxDistinct: ("gw.approx_count_distinct", gw.approx_count_distinct),
}
_POPULATION: Mapping[type[exp.Expr], tuple[str, Callable[..., Any]]] = {
    exp.StddevPop: ("gw.stddev", gw.stddev),
    exp.VariancePop: ("gw.variance", gw.variance),
}
_PICKS: Mapping[type[exp.Expr], tuple[str, Callable[..., Any]]] = {
    exp.First: ("gw.first", gw.first),
    exp.FirstValue: ("gw.first", gw.first),
    exp.Last: ("gw.last", gw.last),
    exp.LastValue: ("gw.last", gw.last),
}
_OF_TWO: Mapping[type[exp.Expr], tuple[str, Callable[..., Any]]] = {
    exp.ArgMin: ("gw.arg_min", gw.arg_min),
    exp.ArgMax: ("gw.arg_max", gw.arg_max),
}
_NAMED: Mapping[str, type[exp.Expr]] = {
    "MEAN": exp.Avg,
    "EVERY": exp.LogicalAnd,
    "SOME": exp.LogicalOr,
    "STD": exp.Stddev,
}
#: Arguments of nodes that a text does not say.
_SILENT = ("this", "big_int", "nulls_excluded")
_KNOWN = (
    "SUM, COUNT, AVG, MIN, MAX, STDDEV, STDDEV_POP, VARIANCE, VAR_POP, FIRST, LAST, MIN_BY, "
    "MAX_BY, BOOL_AND, BOOL_OR, COLLECT_LIST, MEDIAN, PERCENTILE, APPROX_COUNT_DISTINCT"
)


def aggregate(node: exp.Expr, columns: Columns) -> Said:
    """Return an aggregate; expressions in it become columns.

    Raises
    ------
    SqlError
        If it is not covered.
    """
    if isinstance(node, exp.Filter):
        condition = columns.name(node.expression.this)
        with placed(node):
            return aggregate(node.this, columns).call("filter", condition)
    with placed(node):
        return _on_one_line(_unfiltered(node, columns))


def _on_one_line(said: Said) -> Said:
    return Said(said.value, "".join(part.strip() for part in said.text.splitlines()))


def _unfiltered(node: exp.Expr, columns: Columns) -> Said:
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        text, function = _PICKS.get(type(node.this), (None, None))
        if text is None:
            raise refused(node, "IGNORE NULLS goes with FIRST and LAST")
        skips = isinstance(node, exp.IgnoreNulls)
        named = {"ignore_nulls": True} if skips else {}
        return made(text, function, columns.name(node.this.this), **named)
    if isinstance(node, exp.Count):
        return _count(node, columns)
    if isinstance(node, exp.Anonymous):
        return _by_name(node, columns)
    if isinstance(node, exp.CountIf):
        return made("gw.count", gw.count).call("filter", columns.name(node.this))
    if isinstance(node, exp.Quantile):
        return _quantile(node, columns)
    argument, distinct = node.this, False
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1:
            raise refused(node, "DISTINCT is over one expression")
        argument, distinct = argument.expressions[0], True
    found = _of_class(node, type(node), argument, columns)
    return found.call("distinct") if distinct else found


def _of_class(node: exp.Expr, kind: type[exp.Expr], argument: exp.Expr, columns: Columns) -> Said:
    if kind in _OF_TWO:
        if node.args.get("count"):
            raise refused(node, "it gives one value: leave the number of values out")
        text, function = _OF_TWO[kind]
        return made(text, function, columns.name(argument), columns.name(node.expression))
    known = {**_OF_ONE, **_POPULATION, **_PICKS}
    if kind not in known:
        raise refused(node, f"this aggregate is not covered; {_KNOWN} are")
    extra = [each for name, each in node.args.items() if name not in _SILENT and each]
    if extra and not isinstance(node, exp.Anonymous):
        raise refused(node, "over one expression, it takes no more")
    text, function = known[kind]
    named = {"ddof": 0} if kind in _POPULATION else {}
    return made(text, function, columns.name(argument), **named)


def _count(node: exp.Count, columns: Columns) -> Said:
    of = node.this
    if of is None or isinstance(of, exp.Star | exp.Literal):
        return made("gw.count", gw.count)
    if isinstance(of, exp.Distinct):
        if len(of.expressions) != 1 or node.expressions:
            raise refused(node, "COUNT(DISTINCT ...) is over one expression")
        return made("gw.count_distinct", gw.count_distinct, columns.name(of.expressions[0]))
    if node.expressions:
        raise refused(node, "COUNT is over one expression")
    return made("gw.count", gw.count, columns.name(of))


def _quantile(node: exp.Quantile, columns: Columns) -> Said:
    fraction = node.args["quantile"]
    if not fraction.is_number:
        raise refused(node, "the fraction of PERCENTILE is a number that is written out")
    return made("gw.quantile", gw.quantile, columns.name(node.this), float(fraction.name))


def _by_name(node: exp.Anonymous, columns: Columns) -> Said:
    name, arguments = node.name.upper(), node.expressions
    if name not in _NAMED or len(arguments) != 1:
        raise refused(node, f"this aggregate is not covered; {_KNOWN} are")
    return _of_class(node, _NAMED[name], arguments[0], columns)
