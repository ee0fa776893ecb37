"""Reads statements: trees that mean on both runners what their texts mean in Flink."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sqlglot import exp

from gpu_windows.errors import SqlError
from gpu_windows.expressions.dialect import (
    CALLED,
    CUT,
    Descriptor,
    WindowFunction,
    without_comments,
)
from gpu_windows.expressions.places import parsed, refused
from gpu_windows.functions.patterns.navigation import IN_PATTERNS
from gpu_windows.sql.functions import FUNCTIONS, SPECIAL, RefusedCallError
from gpu_windows.sql.results import SHOWN, name_of
from gpu_windows.sql.statement import NAMED, Item
from gpu_windows.sql.windows import AUXILIARY

_CODE = re.compile(r"[0-9A-Fa-f]{4}")


#: Calls that others read.
_ELSEWHERE = {*NAMED, *AUXILIARY, *IN_PATTERNS, "TABLE"}
_CLOCK = "a result would depend on when it is computed"
#: What is no function here, and what to do.
_INSTEAD = {
    **dict.fromkeys(
        ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME", "NOW",
         "UUID", "RAND", "RAND_INTEGER", "CURRENT_ROW_TIMESTAMP"),
        f"{_CLOCK}: add it as a column before, by with_columns",
    ),
    "PROCTIME": f"{_CLOCK}: ingestion_time() of a stream gives rows the time at which they came",
    **dict.fromkeys(
        [f"{kind}_PROCTIME" for kind in ("TUMBLE", "HOP", "SESSION")],
        "windows are of event time, or of ingestion_time(): take the ..._ROWTIME",
    ),
}  # fmt: skip
_OWN = (
    "another is added as a column before, by with_columns of a stream; an aggregate of your own "
    "is gw.user_aggregate of the API"
)
_CONSTRUCTED = ("MAP", "ARRAY")
#: Calls that are of no row alone, which others read or refuse.
_OF_OTHERS = (
    *(exp.AggFunc, exp.RowNumber, exp.Query, exp.SubqueryPredicate),
    *(WindowFunction, Descriptor),
)


def read_statement(text: str, *, on_arrow: bool = False) -> exp.Expr:
    """Return the tree of a statement, in which nodes have Flink's meaning.

    Parameters
    ----------
    text : str
    on_arrow : bool
        Whether it is over Arrow tables, for which fewer functions are computed.

    Raises
    ------
    SqlError
        With the place of what cannot be read, or has no such meaning here.
    """
    _check_is_query(text)
    tree = parsed(text)
    _note_names(tree)
    reader = _Reader(on_arrow)
    for node in reversed([*tree.walk(bfs=True)]):  # what is within others comes first
        found = reader.meaning(node)
        if found is not node:
            found.meta.update(node.meta)
            node.replace(found)
    return tree


_WRITES = "give its SELECT alone, and its .outputs() to write_stream"
#: What statements begin with that are no queries, and what to write.
_STATEMENTS = {
    "CREATE": "a table is gw.sql(text, name=gw.stream(rows).event_time(column, watermarks)), a "
    "view a query of WITH",
    "INSERT": _WRITES,
    **dict.fromkeys(("BEGIN", "EXECUTE"), _WRITES),
    **dict.fromkeys(("SET", "RESET"), "settings are .options(...) and those of the session"),
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "DESC", "SHOW"), ".explain() tells what a query is"),
    **dict.fromkeys(("DROP", "ALTER", "USE", "ADD", "LOAD"), "tables are given by name: t=..."),
}
_FIRST_WORD = re.compile(r"\s*(\w+)")


def _check_is_query(text: object) -> None:
    """Raise `SqlError` if a text is another statement than a query."""
    plain = without_comments(text) if isinstance(text, str) else ""
    word = _FIRST_WORD.match(plain)
    instead = None if word is None else _STATEMENTS.get(word[1].upper())
    if word is not None and instead is not None:
        line, before = plain.count("\n", 0, word.start(1)) + 1, plain.rfind("\n", 0, word.start(1))
        position = word.start(1) - before
        rule = f"a query is one SELECT: {instead}"
        raise SqlError(rule, value=word[1].upper(), line=line, position=position)


def _note_names(tree: exp.Expr) -> None:
    """Note what items without AS are called, which is of the text and not of its meaning."""
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                item.meta[SHOWN] = name_of(Item(item, None))


@dataclass(frozen=True)
class _Reader:
    """Gives nodes Flink's meaning."""

    on_arrow: bool

    def meaning(self, node: exp.Expr) -> exp.Expr:
        """Return a node that means in Spark what this one does in Flink."""
        rule = _RULES.get(type(node))
        if rule is not None:
            found = rule(node)
            is_element = isinstance(node, exp.Bracket)
            return self._on_runner(node, "an element", found) if is_element else found
        return self._read_call(node, node.meta[CALLED]) if CALLED in node.meta else node

    def _read_call(self, node: exp.Expr, name: str) -> exp.Expr:
        if isinstance(node, _OF_OTHERS):
            return node
        special = SPECIAL.get(type(node))
        try:
            if special is not None:
                return self._on_runner(node, name, special(node))
            if name.upper() in _ELSEWHERE or node.find_ancestor(exp.Version, exp.Hint) is not None:
                return node
            return self._look_up(node, name)
        except RefusedCallError as error:
            raise refused(node, f"{name.upper()} {error}") from None

    def _look_up(self, node: exp.Expr, name: str) -> exp.Expr:
        function = FUNCTIONS.get(name.upper())
        if function is None or not isinstance(node, exp.Anonymous):
            raise no_function(node, name)
        count = len(node.expressions)
        if not function.least <= count <= function.most:
            several = "" if function.least == function.most else f" to {function.most}"
            raise RefusedCallError(f"takes {function.least}{several} arguments, got {count}")
        if self.on_arrow and not function.on_arrow:
            raise _not_on_arrow(node, name)
        return function.make(*(each.copy() for each in node.expressions))

    def _on_runner(self, node: exp.Expr, name: str, found: exp.Expr) -> exp.Expr:
        if self.on_arrow and (not isinstance(found, _ON_ARROW) or isinstance(found, exp.TryCast)):
            raise _not_on_arrow(node, name)
        return found


#: Calls with a grammar of their own that are computed over Arrow tables.
_ON_ARROW = (exp.Floor, exp.Ceil, exp.If, exp.Case, exp.Cast)


def _not_on_arrow(node: exp.Expr, name: str) -> SqlError:
    rule = f"{name} is not computed over Arrow tables: add it as a column before, or ask "
    return refused(node, f"{rule}over a Spark DataFrame")


def no_function(node: exp.Expr, name: str) -> SqlError:
    """Return what is said of a call that is none of a known function."""
    upper = name.upper()
    if upper in _INSTEAD:
        return refused(node, _INSTEAD[upper], name)
    near = get_close_matches(upper, [*FUNCTIONS, *_ELSEWHERE, *AGGREGATES], 1, 0.75)
    hint = f"did you mean {near[0]}? " if near else ""
    return refused(node, f"no function of this name is covered: {hint}{_OWN}", name)


#: Names of aggregates that are near to what people write.
AGGREGATES = (
    *("SUM", "COUNT", "AVG", "MIN", "MAX", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP"),
    *("FIRST_VALUE", "LAST_VALUE", "MIN_BY", "MAX_BY", "BOOL_AND", "BOOL_OR", "COLLECT_LIST"),
    *("MEDIAN", "PERCENTILE", "APPROX_COUNT_DISTINCT", "ROW_NUMBER", "LAG", "LEAD"),
)


def _clock(node: exp.Expr) -> exp.Expr:
    name = node.meta.get(CALLED) or node.sql()
    raise no_function(node, name.removesuffix("()"))


def _check_word(node: exp.Column) -> exp.Expr:
    """Return a column; words that are functions without parentheses are none."""
    word = node.name.upper()
    is_word = not node.table and isinstance(node.this, exp.Identifier) and not node.this.quoted
    if is_word and word in _INSTEAD:
        raise no_function(node, node.name)
    return node


def _element(node: exp.Bracket) -> exp.Expr:
    """Return ``list[1]``, its first element, or ``map['key']``; NULL where there is none."""
    of, keys = node.this, node.expressions
    if isinstance(of, exp.Column) and of.name.upper() in _CONSTRUCTED and not of.this.quoted:
        raise refused(node, f"{of.name.upper()}[...] is not covered: add it as a column before")
    key = keys[0] if len(keys) == 1 else None
    is_place = isinstance(key, exp.Literal) and (key.is_string or int(key.name) > 0)
    if not is_place:
        raise refused(node, "elements are counted from 1, and named by a key, written out")
    return exp.Anonymous(this="TRY_ELEMENT_AT", expressions=[of.copy(), keys[0].copy()])


def _refuse_constructor(node: exp.Array | exp.Map | exp.Struct) -> exp.Expr:
    name = type(node).__name__.upper()
    raise refused(node, f"{name}[...] is not covered: add it as a column before")


def _between(node: exp.Between) -> exp.Expr:
    if not node.args.get("symmetric"):
        return node
    low, high = node.args["low"], node.args["high"]
    either = [exp.Between(this=node.this.copy(), low=a.copy(), high=b.copy())
              for a, b in ((low, high), (high, low))]  # fmt: skip
    return exp.Paren(this=exp.or_(*either))


def _cast(node: exp.Cast) -> exp.Expr:
    """Return a cast; those to texts of a length, which cut and fill up, are refused."""
    if CUT in node.to.meta:
        rule = "CHAR(n) and VARCHAR(n) cut and fill up: cast AS STRING, and take LEFT(text, n)"
        raise refused(node, rule)
    if node.to.this == exp.DType.TIME:
        raise refused(node, "there is no type TIME here: DATE_FORMAT(time, 'HH:mm:ss')")
    return node


def _similar(node: exp.SimilarTo) -> exp.Expr:
    raise refused(node, "SIMILAR TO is not covered: REGEXP(text, pattern), or LIKE")


def _unicode(node: exp.UnicodeString) -> exp.Expr:
    """Return a literal of code points as the text that it is."""
    escape = node.args.get("escape") or exp.Literal.string("\\")
    text, rest = "", str(node.this)
    while rest:
        before, mark, rest = rest.partition(escape.name)
        text += before
        if rest.startswith(escape.name):
            text, rest = text + mark, rest[1:]
        elif mark:
            code = _CODE.match(rest)
            if code is None:
                rule = f"in U&'...' four hexadecimal digits stand behind {escape.name}"
                raise refused(node, rule, str(node.this))
            text, rest = text + chr(int(code[0], 16)), rest[4:]
    try:  # characters beyond 16 bits are pairs of surrogates
        return exp.Literal.string(text.encode("utf-16", "surrogatepass").decode("utf-16"))
    except UnicodeDecodeError as error:
        raise refused(node, "half of a pair of surrogates is no character", node.name) from error


def _like(node: exp.Like) -> exp.Expr:
    """Return LIKE with a pattern in which a backslash is one: Flink has no escape by default."""
    if isinstance(node.parent, exp.Escape):
        return node
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        return _with_pattern(node, str(pattern.this).replace("\\", "\\\\"))
    backslash, two = exp.Literal.string("\\"), exp.Literal.string("\\\\")
    plain = exp.Anonymous(this="REPLACE", expressions=[pattern.copy(), backslash, two])
    return exp.Like(**{**node.args, "expression": plain})


def _escape(node: exp.Escape) -> exp.Expr:
    """Return ``LIKE pattern ESCAPE character`` as LIKE with backslashes."""
    like, escape = node.this, node.expression
    if not isinstance(like, exp.Like) or not isinstance(like.expression, exp.Literal):
        raise refused(node, "ESCAPE goes with LIKE and a pattern that is written out")
    if not isinstance(escape, exp.Literal) or len(escape.name) != 1:
        raise refused(node, "ESCAPE is one character", escape.name)
    return _with_pattern(like, _escape_pattern(node, like.expression.name, escape.name))


def _escape_pattern(node: exp.Expr, pattern: str, escape: str) -> str:
    found, rest = "", pattern
    while rest:
        one, rest = rest[0], rest[1:]
        if one != escape:
            found += "\\\\" if one == "\\" else one
            continue
        if not rest or rest[0] not in ("%", "_", escape):
            rule = f"in a pattern {escape} stands before %, _ or itself, as ESCAPE says"
            raise refused(node, rule, pattern)
        found += "\\\\" if rest[0] == "\\" else rest[0] if rest[0] == escape else f"\\{rest[0]}"
        rest = rest[1:]
    return found


def _with_pattern(node: exp.Like, pattern: str) -> exp.Expr:
    return exp.Like(**{**node.args, "expression": exp.Literal.string(pattern)})


_RULES: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.UnicodeString: _unicode,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.CurrentTimestamp: _clock,
    exp.CurrentDate: _clock,
    exp.CurrentTime: _clock,
    exp.Column: _check_word,
    exp.Bracket: _element,
    exp.Array: _refuse_constructor,
    exp.Map: _refuse_constructor,
    exp.VarMap: _refuse_constructor,
    exp.Struct: _refuse_constructor,
    exp.Between: _between,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.SimilarTo: _similar,
}
