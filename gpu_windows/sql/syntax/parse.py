"""Parses statements, and rewrites nodes so that they have Flink's meaning on both runners."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sqlglot import exp

from gpu_windows.errors import SqlError
from gpu_windows.expressions.dialect import (
    FUNCTION_NAME,
    MAX_LENGTH,
    PADDED_LENGTH,
    WRITTEN,
    Descriptor,
    WindowFunction,
    without_comments,
)
from gpu_windows.expressions.evaluator import is_covered
from gpu_windows.expressions.functions.call import count_rule
from gpu_windows.expressions.sql_text import (
    error_at,
    parse_tree,
    position_meta,
    sql_error,
    written_text,
)
from gpu_windows.functions.patterns.navigation import IN_PATTERNS
from gpu_windows.sql.syntax.functions.building import (
    TypedCall,
    UnsupportedCallError,
    call_errors,
    spark_function,
    typed_call,
)
from gpu_windows.sql.syntax.functions.json_texts import is_json
from gpu_windows.sql.syntax.functions.patterns import escape, like, similar_to
from gpu_windows.sql.syntax.functions.table import FUNCTIONS, SPECIAL
from gpu_windows.sql.syntax.hints import without_hints
from gpu_windows.sql.syntax.statement import (
    AGGREGATES_BY_NAME,
    USER_AGGREGATE,
    is_processing_time,
)
from gpu_windows.sql.syntax.window_functions import AUXILIARY_FUNCTIONS

#: Calls that readers of clauses handle.
_READ_ELSEWHERE = {*AGGREGATES_BY_NAME, *AUXILIARY_FUNCTIONS, *IN_PATTERNS, "TABLE"}
_CLOCK = "a result would depend on when it is computed"
#: Functions that are not covered, with advice.
_INSTEAD = {
    **dict.fromkeys(
        ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME", "NOW",
         "UUID", "RAND", "RAND_INTEGER", "CURRENT_ROW_TIMESTAMP"),
        f"{_CLOCK}: add it as a column before, using with_columns",
    ),
    "PROCTIME": f"{_CLOCK}: in a subquery, PROCTIME() AS p is for lookups, FOR SYSTEM_TIME AS OF "
    "p, and on streams it is the time at which rows arrive, of windows, OVER and ROW_NUMBER",
    **dict.fromkeys(
        [f"{kind}_PROCTIME" for kind in ("TUMBLE", "HOP", "SESSION")],
        "use the ..._END function",
    ),
}  # fmt: skip
_ADD_COLUMN = (
    "add the value as a column before, using with_columns of a stream; an aggregate of your own is "
    "given, as gw.sql(text, {'NAME': lambda column: gw.user_aggregate(...)}, ...)"
)
#: Calls that are not scalar, which readers of clauses handle or refuse.
_NOT_SCALAR = (
    *(exp.AggFunc, exp.RowNumber, exp.Query, exp.SubqueryPredicate),
    *(WindowFunction, Descriptor),
)


def parse_statement(
    text: str,
    *,
    on_arrow: bool = False,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    is_view: bool = False,
) -> exp.Expr:
    """Parse a statement to a tree whose nodes have Flink's meaning.

    Parameters
    ----------
    text : str
    on_arrow : bool
        Whether tables are Arrow tables, for which fewer functions are covered.
    functions : mapping of str to callable, optional
        The user's aggregates, by name in any case: see `gpu_windows.sql.query.SqlQuery.functions`.
    is_view : bool
        Whether others read it as a subquery.

    Raises
    ------
    SqlError
        With the position of what cannot be parsed, or is not covered.
    """
    _check_is_query(text)
    tree = parse_tree(without_hints(text))
    _add_from(tree)
    own = {name.upper(): each for name, each in (functions or {}).items()}
    rewriter = _Rewriter(on_arrow, own, is_view)
    for node in reversed([*tree.walk(bfs=True)]):  # inner nodes first
        found = rewriter.rewrite(node)
        if found is not node:
            found.meta.update({**node.meta, WRITTEN: written_text(node)})
            node.replace(found)
    return tree


_SCRIPT = "gw.sql_script(text, ...) runs scripts"
#: First words of statements that are not queries, with advice.
_STATEMENTS = {
    **dict.fromkeys(("CREATE", "INSERT", "BEGIN", "EXECUTE", "SET", "RESET", "DROP"), _SCRIPT),
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "DESC", "SHOW"), "use .explain()"),
    **dict.fromkeys(("ALTER", "USE", "ADD", "LOAD"), "give tables by name: t=..."),
}
_FIRST_WORD = re.compile(r"\s*(\w+)")


def _check_is_query(text: object) -> None:
    """Raise `SqlError` if a text is a statement other than a query."""
    plain = without_comments(text) if isinstance(text, str) else ""
    word = _FIRST_WORD.match(plain)
    instead = None if word is None else _STATEMENTS.get(word[1].upper())
    if word is not None and instead is not None:
        rule = f"a query must be one SELECT: {instead}"
        raise error_at(plain, word.start(1), rule, word[1].upper())


#: Metadata of nodes with their position.
_POSITION = ("line", "col", "start", "end")


def _add_from(tree: exp.Expr) -> None:
    """Give a SELECT without FROM one row that has no columns: VALUES without any."""
    for select in list(tree.find_all(exp.Select)):
        if select.args.get("from_") is None:
            row = exp.Values(expressions=[])
            row.meta.update({n: v for n, v in position_meta(select).items() if n in _POSITION})
            select.set("from_", exp.From(this=row))


@dataclass(frozen=True)
class _Rewriter:
    """Rewrites nodes to ones that have Flink's meaning in Spark."""

    on_arrow: bool
    functions: Mapping[str, Callable[..., Any]]
    is_view: bool

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        """Return a node whose meaning in Spark is that of the given one in Flink."""
        rule = _RULES.get(type(node))
        if isinstance(node, exp.Bracket):
            return self._check_runner(node, "an element", _element_at(node))
        if rule is not None:
            return rule(node)
        name = node.meta.get(FUNCTION_NAME)
        return node if name is None else self._rewrite_call(node, name)

    def _rewrite_call(self, node: exp.Expr, name: str) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and name.upper() in self.functions:
            node.meta[USER_AGGREGATE] = self.functions[name.upper()]
            return node
        if isinstance(node, _NOT_SCALAR):
            return node
        special = SPECIAL.get(type(node))
        with call_errors(node, name.upper()):
            if special is not None:
                return self._check_runner(node, name, special(node))
            if (
                name.upper() in _READ_ELSEWHERE
                or node.find_ancestor(exp.Version, exp.Hint) is not None
                or self._is_lookup_time(node)
            ):
                return node
            return self._look_up(node, name)

    def _is_lookup_time(self, node: exp.Expr) -> bool:
        """Whether it is PROCTIME() as an item of a subquery, or of a view."""
        item = node.parent if isinstance(node.parent, exp.Alias) else node
        select = item.parent
        is_inner = isinstance(select, exp.Select) and (self.is_view or select.parent is not None)
        return is_inner and item.arg_key == "expressions" and is_processing_time(node)

    def _look_up(self, node: exp.Expr, name: str) -> exp.Expr:
        function = FUNCTIONS.get(name.upper())
        if function is None or not isinstance(node, exp.Anonymous):
            raise unknown_function_error(node, name)
        arguments = [each.copy() for each in node.expressions]
        rule = count_rule(function.min_arguments, function.max_arguments, len(arguments))
        if rule is not None:
            raise UnsupportedCallError(rule)
        if self.on_arrow and function.on_arrow is not None:
            return spark_function(function.on_arrow)(*arguments)
        return self._check_runner(node, name, function.make(*arguments))

    def _check_runner(self, node: exp.Expr, name: str, found: exp.Expr) -> exp.Expr:
        """Return a call; refuse it over Arrow tables if a function of it is not covered there."""
        calls = found.find_all(exp.Func) if self.on_arrow else ()
        scalar = (each for each in calls if not _is_read_elsewhere(each))
        if not all(isinstance(each, TypedCall) or is_covered(each) for each in scalar):
            raise _not_on_arrow(node, name)
        return found


def _is_read_elsewhere(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, or another call that is not evaluated for a row."""
    name = str(node.meta.get(FUNCTION_NAME, ""))
    return isinstance(node, _NOT_SCALAR) or name.upper() in _READ_ELSEWHERE


def _not_on_arrow(node: exp.Expr, name: str) -> SqlError:
    rule = f"{name} is not covered over Arrow tables: add it as a column before, or query "
    return sql_error(node, f"{rule}a Spark DataFrame")


def unknown_function_error(node: exp.Expr, name: str) -> SqlError:
    """Return the error for a function that is not covered, with advice."""
    upper = name.upper()
    if upper in _INSTEAD:
        return sql_error(node, _INSTEAD[upper], name)
    near = get_close_matches(upper, [*FUNCTIONS, *_READ_ELSEWHERE, *AGGREGATE_NAMES], 1, 0.75)
    hint = f"did you mean {near[0]}? " if near else ""
    return sql_error(node, f"no function of this name is covered: {hint}{_ADD_COLUMN}", name)


#: Names of aggregates to suggest.
AGGREGATE_NAMES = (
    *("SUM", "COUNT", "AVG", "MIN", "MAX", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP"),
    *("FIRST_VALUE", "LAST_VALUE", "MIN_BY", "MAX_BY", "BOOL_AND", "BOOL_OR", "COLLECT_LIST"),
    *("MEDIAN", "PERCENTILE", "APPROX_COUNT_DISTINCT", "ROW_NUMBER", "LAG", "LEAD"),
)


def _refuse_clock(node: exp.Expr) -> exp.Expr:
    name = node.meta.get(FUNCTION_NAME) or node.sql()
    raise unknown_function_error(node, name.removesuffix("()"))


#: Functions that are called without parentheses; `proctime` without them is a column.
_WORDS = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME")


def _check_word(node: exp.Column) -> exp.Expr:
    """Return a column; refuse words that are functions without parentheses."""
    word = node.name.upper()
    is_word = not node.table and isinstance(node.this, exp.Identifier) and not node.this.quoted
    if is_word and word in _WORDS:
        raise unknown_function_error(node, node.name)
    return node


def _element_at(node: exp.Bracket) -> exp.Expr:
    """Return ``list[1]``, the first element, or ``map['key']``; NULL if it does not exist."""
    owner, keys = node.this, node.expressions
    is_word = isinstance(owner, exp.Column) and not owner.this.quoted
    if is_word and owner.name.upper() == "MAP":
        if len(keys) % 2:
            raise sql_error(node, "MAP[...] takes keys and values in turn")
        return spark_function("MAP")(*(each.copy() for each in keys))
    key = keys[0].unnest() if len(keys) == 1 else exp.Null()
    if isinstance(key, exp.Literal) and (key.is_string or (key.is_int and int(key.name) > 0)):
        return spark_function("TRY_ELEMENT_AT")(owner.copy(), key.copy())
    if isinstance(key, exp.Literal | exp.Neg | exp.Null):
        raise sql_error(node, "an element takes an index from 1, or a key")
    return typed_call("ELEMENT", owner.copy(), key.copy())


def _array(node: exp.Array) -> exp.Expr:
    if not node.expressions:
        raise sql_error(node, "ARRAY[...] takes a value at least")
    return spark_function("ARRAY")(*(each.copy() for each in node.expressions))


def _refuse_constructor(node: exp.Map | exp.Struct) -> exp.Expr:
    raise sql_error(node, "write MAP[key, value, ...] for a map, and ROW(...) for a row")


def _between(node: exp.Between) -> exp.Expr:
    if not node.args.get("symmetric"):
        return node
    low, high = node.args["low"], node.args["high"]
    either = [exp.Between(this=node.this.copy(), low=a.copy(), high=b.copy())
              for a, b in ((low, high), (high, low))]  # fmt: skip
    return exp.Paren(this=exp.or_(*either))


def _cast(node: exp.Cast) -> exp.Expr:
    """Return a cast; strings of a length are cut, and padded."""
    if node.to.this == exp.DType.TIME:
        if isinstance(node.parent, exp.Cast) and node.parent.to.this == exp.DType.TEXT:
            return typed_call("DATE_FORMAT", node.this.copy(), exp.Literal.string("HH:mm:ss"))
        raise sql_error(node, "the type TIME is not covered: use DATE_FORMAT(time, 'HH:mm:ss')")
    size = node.to.meta.get(MAX_LENGTH) or node.to.meta.get(PADDED_LENGTH)
    if size is None:
        return node
    text = type(node)(this=node.this.copy(), to=exp.DataType(this=exp.DType.TEXT))
    length = exp.Literal.number(size)
    if PADDED_LENGTH in node.to.meta:
        return spark_function("RPAD")(text, length, exp.Literal.string(" "))
    return spark_function("LEFT")(text, length)


def _is(node: exp.Is) -> exp.Expr:
    if not isinstance(node.expression, exp.JSON):
        return node
    with call_errors(node, "IS JSON"):
        return is_json(node)


def _similar_to(node: exp.SimilarTo) -> exp.Expr:
    with call_errors(node, "SIMILAR TO", ": use REGEXP(text, pattern)"):
        return similar_to(node)


def _unicode_string(node: exp.UnicodeString) -> exp.Expr:
    """Return a literal with code points, ``U&'...'``, as a string literal."""
    escape = (node.args.get("escape") or exp.Literal.string("\\")).name
    if not re.fullmatch(r"[^0-9A-Fa-f\s+\"']", escape):
        rule = "UESCAPE takes one character, no hexadecimal digit, space, plus sign or quote"
        raise sql_error(node, rule, escape)

    def decode(found: re.Match[str]) -> str:
        if found[1] == escape:
            return escape
        if found[1] is None:
            rule = f"in U&'...' four hexadecimal digits must follow {escape}"
            raise sql_error(node, rule, str(node.this))
        return chr(int(found[1], 16))

    mark = re.escape(escape)
    text = re.sub(f"{mark}({mark}|[0-9A-Fa-f]{{4}})?", decode, str(node.this))
    try:  # characters beyond 16 bits are surrogate pairs
        return exp.Literal.string(text.encode("utf-16", "surrogatepass").decode("utf-16"))
    except UnicodeDecodeError as error:
        raise sql_error(node, "half of a surrogate pair is not a character", node.name) from error


_RULES: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.UnicodeString: _unicode_string,
    exp.Like: like,
    exp.Escape: escape,
    **dict.fromkeys((exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime), _refuse_clock),
    exp.Column: _check_word,
    exp.Array: _array,
    **dict.fromkeys((exp.Map, exp.VarMap, exp.Struct), _refuse_constructor),
    exp.Between: _between,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.SimilarTo: _similar_to,
    exp.Is: _is,
}
