"""Aggregates of SQL as calls of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

import gpu_windows.aggregates.built_in as gw
from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.sketches import approx_count_distinct
from gpu_windows.aggregates.user import UserAggregate
from gpu_windows.expressions.dialect import FUNCTION_NAME
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall, call_api
from gpu_windows.sql.syntax.statement import USER_AGGREGATE
from gpu_windows.sql.tables.columns import Columns

#: Aggregates of one column.
_ONE_COLUMN: Mapping[type[exp.Expr], Callable[..., Any]] = {
    exp.Sum: gw.sum_,
    exp.Avg: gw.mean,
    exp.Min: gw.min_,
    exp.Max: gw.max_,
    exp.Stddev: gw.stddev,
    exp.StddevSamp: gw.stddev,
    exp.StddevPop: gw.stddev,
    exp.Variance: gw.variance,
    exp.VariancePop: gw.variance,
    exp.LogicalAnd: gw.bool_and,
    exp.LogicalOr: gw.bool_or,
    exp.ArrayAgg: gw.collect_list,
    exp.Median: gw.median,
    exp.ApproxDistinct: approx_count_distinct,
    exp.First: gw.first,
    exp.FirstValue: gw.first,
    exp.Last: gw.last,
    exp.LastValue: gw.last,
}
#: Their other arguments; Flink computes FIRST_VALUE and LAST_VALUE of values that are not null.
_KEYWORDS: Mapping[type[exp.Expr], dict[str, Any]] = {
    exp.StddevPop: {"ddof": 0},
    exp.VariancePop: {"ddof": 0},
    exp.FirstValue: {"ignore_nulls": True},
    exp.LastValue: {"ignore_nulls": True},
}
_PICKS = (gw.first, gw.last)
_TWO_COLUMNS: Mapping[type[exp.Expr], Callable[..., Any]] = {
    exp.ArgMin: gw.arg_min,
    exp.ArgMax: gw.arg_max,
}
_BY_NAME: Mapping[str, type[exp.Expr]] = {
    "MEAN": exp.Avg,
    "EVERY": exp.LogicalAnd,
    "SOME": exp.LogicalOr,
    "STD": exp.Stddev,
}
#: Arguments of nodes that the parser adds.
_IMPLICIT = ("this", "big_int", "nulls_excluded")
_SUPPORTED = (
    "SUM, COUNT, AVG, MIN, MAX, STDDEV, STDDEV_POP, VARIANCE, VAR_POP, FIRST, LAST, MIN_BY, "
    "MAX_BY, BOOL_AND, BOOL_OR, COLLECT_LIST, MEDIAN, PERCENTILE, APPROX_COUNT_DISTINCT"
)


def build_aggregate(node: exp.Expr, columns: Columns) -> ApiCall:
    """Return an aggregate; expressions in it become added columns.

    Raises
    ------
    SqlError
        If it is not covered.
    """
    if isinstance(node, exp.Filter):
        condition = columns.name(node.expression.this)
        with errors_at(node):
            return build_aggregate(node.this, columns).call("filter", condition)
    with errors_at(node):
        return _without_filter(node, columns).on_one_line()


def build_list_aggregate(node: exp.Expr, columns: Columns) -> tuple[ApiCall, ApiCall, exp.Expr]:
    """Return what LISTAGG is made of: a list, its length and the separator.

    Raises
    ------
    SqlError
        If it is not ``LISTAGG(text)`` or ``LISTAGG(text, 'separator')``, maybe with DISTINCT and
        FILTER.
    """
    call = node.this if isinstance(node, exp.Filter) else node
    text, separator = call.this, call.args.get("separator") or exp.Literal.string(",")
    is_distinct = isinstance(text, exp.Distinct) and len(text.expressions) == 1
    if is_distinct:
        (text,) = text.expressions
    is_plain = not isinstance(text, exp.Distinct | exp.Order)
    if not is_plain or not isinstance(separator, exp.Literal) or not separator.is_string:
        raise sql_error(node, "LISTAGG takes a text and a literal between texts, without ORDER BY")
    condition: exp.Expr = exp.Not(this=exp.Is(this=text.copy(), expression=exp.Null()))
    if isinstance(node, exp.Filter):
        condition = exp.and_(condition, node.expression.this)
    with errors_at(node):
        of_rows = columns.name(condition)
        values = call_api(gw.collect_list, columns.name(text))
        if is_distinct:
            values = values.call("distinct")
        lists = values.call("filter", of_rows).on_one_line()
        count = call_api(gw.count).call("filter", of_rows).on_one_line()
    return lists, count, separator


def is_list_aggregate(node: exp.Expr) -> bool:
    """Whether it is LISTAGG, maybe with FILTER."""
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.GroupConcat)


_NO_NULLS = (
    "ARRAY_AGG keeps nulls, and lists here have none: COLLECT_LIST(x) has the values that are not "
    "null, and is empty where there are none"
)


def _without_filter(node: exp.Expr, columns: Columns) -> ApiCall:
    call = node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) else node
    if str(call.meta.get(FUNCTION_NAME)).upper() == "ARRAY_AGG":
        raise sql_error(node, _NO_NULLS, "ARRAY_AGG")
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        function = _ONE_COLUMN.get(type(node.this))
        if function not in _PICKS:
            raise sql_error(node, "IGNORE NULLS is allowed for FIRST and LAST alone")
        keywords = {"ignore_nulls": True} if isinstance(node, exp.IgnoreNulls) else {}
        return call_api(function, columns.name(node.this.this), **keywords)
    if isinstance(node, exp.Count):
        return _count(node, columns)
    if isinstance(node, exp.Anonymous):
        return _aggregate_by_name(node, columns)
    if isinstance(node, exp.CountIf):
        return call_api(gw.count).call("filter", columns.name(node.this))
    if isinstance(node, exp.Quantile):
        return _quantile(node, columns)
    argument, distinct = node.this, False
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1:
            raise sql_error(node, "DISTINCT takes one expression")
        argument, distinct = argument.expressions[0], True
    found = _aggregate_of_class(node, type(node), argument, columns)
    return found.call("distinct") if distinct else found


def _aggregate_of_class(
    node: exp.Expr, kind: type[exp.Expr], argument: exp.Expr, columns: Columns
) -> ApiCall:
    if kind in _TWO_COLUMNS:
        if node.args.get("count"):
            raise sql_error(node, "this returns one value: leave out the number of values")
        names = columns.name(argument), columns.name(node.expression)
        return call_api(_TWO_COLUMNS[kind], *names)
    if kind not in _ONE_COLUMN:
        raise sql_error(node, f"this aggregate is not covered; use {_SUPPORTED}")
    extra = [each for name, each in node.args.items() if name not in _IMPLICIT and each]
    if extra and not isinstance(node, exp.Anonymous):
        raise sql_error(node, "this aggregate takes one argument")
    return call_api(_ONE_COLUMN[kind], columns.name(argument), **_KEYWORDS.get(kind, {}))


def _count(node: exp.Count, columns: Columns) -> ApiCall:
    argument = node.this
    if argument is None or isinstance(argument, exp.Star | exp.Literal):
        return call_api(gw.count)
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1 or node.expressions:
            raise sql_error(node, "COUNT(DISTINCT ...) takes one expression")
        return call_api(gw.count_distinct, columns.name(argument.expressions[0]))
    if node.expressions:
        raise sql_error(node, "COUNT takes one expression")
    return call_api(gw.count, columns.name(argument))


def _quantile(node: exp.Quantile, columns: Columns) -> ApiCall:
    fraction = node.args["quantile"]
    if not fraction.is_number:
        raise sql_error(node, "the fraction of PERCENTILE must be a literal number")
    return call_api(gw.quantile, columns.name(node.this), float(fraction.name))


def _user_aggregate(node: exp.Anonymous, names: list[str]) -> ApiCall:
    """Return the aggregate that a function of the user's makes of columns."""
    try:
        made = node.meta[USER_AGGREGATE](*names)
    except TypeError as error:
        raise sql_error(node, f"the function {node.name} does not take this: {error}") from error
    if not isinstance(made, Aggregate | UserAggregate):
        rule = f"the function {node.name} returns an aggregate, such as gw.user_aggregate(...)"
        raise sql_error(node, rule, repr(made))
    return ApiCall(made, f"{node.name}({', '.join(map(repr, names))})")


def _aggregate_by_name(node: exp.Anonymous, columns: Columns) -> ApiCall:
    name, arguments = node.name.upper(), node.expressions
    if USER_AGGREGATE in node.meta:
        names = [columns.name(each) for each in arguments]
        return _user_aggregate(node, names)
    if name not in _BY_NAME or len(arguments) != 1:
        raise sql_error(node, f"this aggregate is not covered; use {_SUPPORTED}")
    return _aggregate_of_class(node, _BY_NAME[name], arguments[0], columns)
