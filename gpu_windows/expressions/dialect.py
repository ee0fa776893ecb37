"""The SQL dialects: Flink's statements, and Spark's expressions.

Statements have ``TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES)``, also within
``TABLE(...)`` and with named arguments, interval precisions such as ``SECOND(2, 3)``, and
Flink's string literals, in which a backslash is an ordinary character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from gpu_windows.expressions.interval_precisions import without_precisions
from gpu_windows.expressions.json_calls import (
    JSON_FUNCTIONS,
    JsonCall,
    json_call_text,
    parse_json_call,
)

#: Functions that assign windows, to the rows of a table in FROM or by a time in GROUP BY.
WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


class WindowFunction(exp.Expression, exp.Func):
    """A call of one of `WINDOW_FUNCTIONS`: ``this`` is its name, ``expressions`` its arguments."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}
    _sql_names: ClassVar[list[str]] = []


class TableArgument(exp.Expression):
    """``TABLE t PARTITION BY a, b``: ``this`` is the table, ``partition_by`` its columns."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition_by": False}


class Descriptor(exp.Expression):
    """``DESCRIPTOR(ts)``: ``expressions`` are its columns."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class NamedArgument(exp.Expression):
    """``SIZE => INTERVAL '1' HOUR``: ``this`` is the name."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class MatchRecognize(exp.MatchRecognize):
    """``MATCH_RECOGNIZE (...)``, with ``within``, an interval."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.MatchRecognize.arg_types, "within": False}


def _percentile(arguments: list[Any]) -> exp.Expr:
    """Return ``PERCENTILE(x, fraction)``; keep calls of other arity, which the parser truncates."""
    if len(arguments) == 2:
        return exp.Quantile(this=arguments[0], quantile=arguments[1])
    return exp.Anonymous(this="PERCENTILE", expressions=arguments)


def _row_function(name: str) -> Callable[[list[Any]], exp.Expr]:
    """Return a builder of FIRST or LAST that keeps an offset, which the parser drops."""
    made: Callable[[list[Any]], exp.Expr] = SparkParser.FUNCTIONS[name]

    def build(arguments: list[Any]) -> exp.Expr:
        if len(arguments) < 2 or isinstance(arguments[1], exp.Boolean):
            return made(arguments)
        return exp.Anonymous(this=name, expressions=arguments)

    return build


#: Nodes whose strings come from the user; strings of other nodes are keywords.
_USER_STRINGS = (
    *(exp.Anonymous, exp.Identifier, exp.Literal, exp.Var, exp.HexString, exp.BitString),
    *(exp.ByteString, exp.RawString, exp.National, exp.UnicodeString, exp.Placeholder),
)


def upper_keywords(tree: exp.Expr) -> None:
    """Convert the keywords that the parser keeps as strings to upper case.

    ``rows between 1 preceding and current row`` then compares equal to its upper-case spelling.
    """
    for node in tree.walk():
        if not isinstance(node, _USER_STRINGS):
            for name, value in node.args.items():
                if isinstance(value, str):
                    node.set(name, value.upper())


class FlinkParser(SparkParser):
    """Parses Spark's SQL with Flink's window functions."""

    STRICT_CAST = True  # CAST and TRY_CAST are two
    _within: Any = None
    FUNC_TOKENS: ClassVar = {*SparkParser.FUNC_TOKENS, TokenType.SESSION}
    FUNCTIONS: ClassVar = {
        **SparkParser.FUNCTIONS,
        "PERCENTILE": _percentile,
        "FIRST": _row_function("FIRST"),
        "LAST": _row_function("LAST"),
    }
    FUNCTION_PARSERS: ClassVar = {
        **{n: parse for n, parse in SparkParser.FUNCTION_PARSERS.items() if n != "PERCENTILE"},
        **{
            name: (lambda self, name=name: self._parse_window_function(name))
            for name in WINDOW_FUNCTIONS
        },
    }

    def parse(self, raw_tokens: list[Token], sql: str) -> Any:
        """Parse tokens, without the precisions of intervals."""
        return super().parse(without_precisions(raw_tokens), sql)

    def parse_into(self, types: Any, raw_tokens: list[Token], sql: str | None = None) -> Any:
        """Parse an expression without its comments."""
        for token in raw_tokens:
            token.comments = []
        return super().parse_into(types, raw_tokens, sql)

    def _find_sql(self, start: Token, end: Token) -> str:
        """Return the text between two tokens with whitespace collapsed."""
        return " ".join(super()._find_sql(start, end).split())

    def _match_text_seq(self, *texts: str, **options: Any) -> Any:
        """Match words; before DEFINE of MATCH_RECOGNIZE, also read WITHIN."""
        if texts == ("DEFINE",) and super()._match_text_seq("WITHIN"):
            self._within = self._parse_interval() or self._parse_unary()
        if texts == ("TO", "LAST") and self._next and self._next.text.upper() != "LAST":
            return super()._match_text_seq("TO")  # SKIP TO a variable: to its last row
        return super()._match_text_seq(*texts, **options)

    def _parse_partition_by(self) -> Any:
        """Parse the columns of PARTITION BY; the parser would accept an empty list."""
        index = self._index
        found = super()._parse_partition_by()
        if self._index != index and not found:
            self.raise_error("Expecting columns after PARTITION BY")
        return found

    def _parse_match_recognize(self) -> Any:
        self._within = None
        found = super()._parse_match_recognize()
        if found is None:
            return None
        args = {**found.args, "define": found.args.get("define") or [], "within": self._within}
        return MatchRecognize(**args)

    def _parse_window_function(self, name: str) -> WindowFunction:
        arguments = self._parse_csv(self._parse_window_argument)
        return WindowFunction(this=name, expressions=arguments)

    def _parse_window_argument(self) -> Any:
        following = self._next
        if following.token_type == TokenType.FARROW:
            name = self._curr.text.upper()
            self._advance(2)
            return NamedArgument(this=name, expression=self._parse_window_argument())
        if self._match(TokenType.TABLE):
            return self._parse_table_argument()
        if self._match_text_seq("DESCRIPTOR"):
            return Descriptor(expressions=self._parse_wrapped_csv(self._parse_column))
        if self._match(TokenType.L_PAREN, advance=False) and following.token_type in (
            TokenType.SELECT,
            TokenType.WITH,
        ):
            return TableArgument(this=self._parse_wrapped(self._parse_select))
        return self._parse_disjunction()

    def _parse_table_argument(self) -> TableArgument:
        if self._match(TokenType.L_PAREN, advance=False):
            table = self._parse_wrapped(self._parse_select)
        else:
            table = self._parse_table_parts()
        # one column, or several in parentheses, so that the comma after it is not of the list
        by = None
        if self._match_text_seq("PARTITION", "BY") or self._match(TokenType.PARTITION_BY):
            wrapped = self._match(TokenType.L_PAREN, advance=False)
            by = self._parse_wrapped_csv(self._parse_column) if wrapped else self._parse_partition()
        return TableArgument(this=table, partition_by=by)

    def _parse_partition(self) -> Any:
        """Return the columns of ``PARTITION BY a, b, DESCRIPTOR(ts)``: until the descriptor."""
        columns = [self._parse_column()]
        while True:
            index = self._index
            is_last = self._next.text.upper() == "DESCRIPTOR"
            if is_last or not self._match(TokenType.COMMA):
                self._retreat(index)
                return columns
            if self._next.token_type == TokenType.FARROW:
                self._retreat(index)
                return columns
            columns.append(self._parse_column())


#: Functions that keep a node class: those with a grammar of their own, row functions, aggregates.
_OWN_GRAMMAR = tuple("CAST TRY_CAST CEIL FLOOR EXTRACT POSITION SUBSTRING TRIM OVERLAY".split())
_ROW_FUNCTIONS = tuple("ROW_NUMBER RANK DENSE_RANK LAG LEAD GROUPING GROUPING_ID".split())
_AGGREGATES = tuple(
    "COLLECT_LIST COLLECT_SET PERCENTILE LISTAGG STRING_AGG MAX_BY ARG_MAX ARGMAX MIN_BY ARG_MIN "
    "ARGMIN".split()
)
#: Metadata of a call: the function's name as written.
FUNCTION_NAME = "called"
#: Metadata of a node that a rule has made: the text of the one that was written.
WRITTEN = "written"
#: Metadata of a string type: the length to which values are cut, or cut and padded.
MAX_LENGTH, PADDED_LENGTH = "max_length", "padded_length"


#: What parses the functions with a grammar of their own.
_FUNCTION_PARSERS = {
    name: parse
    for name, parse in FlinkParser.FUNCTION_PARSERS.items()
    if name in (*WINDOW_FUNCTIONS, *_OWN_GRAMMAR, *_AGGREGATES)
}


def _is_over_rows(name: str) -> bool:
    """Whether a function is an aggregate or a row function."""
    kind = exp.FUNCTION_BY_NAME.get(name)
    is_aggregate = kind is not None and issubclass(kind, exp.AggFunc)
    return is_aggregate or name in (*_ROW_FUNCTIONS, *_AGGREGATES)


#: Functions of expressions that keep a node class.
_NODES = tuple(
    "UPPER UCASE LOWER LCASE LENGTH LEN CHAR_LENGTH CHARACTER_LENGTH ABS FLOOR CEIL CEILING CONCAT "
    "COALESCE IFNULL NVL NULLIF IF CHR CHAR MAKE_INTERVAL".split()
)


class ExpressionParser(FlinkParser):
    """Parses Spark's expressions; calls stay anonymous, but for those that nodes stand for."""

    FUNCTIONS: ClassVar = {
        name: make
        for name, make in FlinkParser.FUNCTIONS.items()
        if name in (*_NODES, "FIRST", "LAST") or _is_over_rows(name)
    }
    FUNCTION_PARSERS: ClassVar = _FUNCTION_PARSERS


class StatementParser(FlinkParser):
    """Parses statements; calls of scalar functions stay anonymous, by the name that is written."""

    FUNCTIONS: ClassVar = {
        name: make for name, make in FlinkParser.FUNCTIONS.items() if _is_over_rows(name)
    }
    FUNCTION_PARSERS: ClassVar = {
        **_FUNCTION_PARSERS,
        **{n: (lambda self, n=n: parse_json_call(self, n)) for n in JSON_FUNCTIONS},
    }

    def _parse_function_call(self, *arguments: Any, **options: Any) -> Any:
        """Parse a call, and store its name and position as metadata."""
        token = self._curr
        found = super()._parse_function_call(*arguments, **options)
        call = found
        while isinstance(call, _AROUND_CALLS):
            call = call.this
        if isinstance(call, exp.Expr) and FUNCTION_NAME not in call.meta:
            call.update_positions(token)
            call.meta[FUNCTION_NAME] = token.text
        return found

    def _parse_types(self, *arguments: Any, **options: Any) -> Any:
        """Parse a type, and store as metadata whether strings are cut or padded to a length."""
        first = self._index
        found = super()._parse_types(*arguments, **options)
        if isinstance(found, exp.DataType):
            name, *following = (each.text.upper() for each in self._tokens[first : first + 3])
            length = following[1] if following[:1] == ["("] else _ANY_LENGTH
            if name in ("CHAR", "CHARACTER"):
                found.meta[PADDED_LENGTH] = 1 if length == _ANY_LENGTH else int(length)
            elif name == "VARCHAR" and length != _ANY_LENGTH:
                found.meta[MAX_LENGTH] = int(length)
        return found


#: Flink writes STRING as a VARCHAR of this length: such a cast cuts nothing.
_ANY_LENGTH = "2147483647"
#: Nodes that wrap a call: OVER, FILTER and the like.
_AROUND_CALLS = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


class FlinkGenerator(SparkGenerator):
    """Formats the same SQL, for error messages: what was rewritten, as it was written."""

    def sql(self, expression: Any, key: str | None = None, *arguments: Any, **options: Any) -> str:
        """Return the text of a node, or of one of its arguments."""
        if key is None and isinstance(expression, exp.Expr) and WRITTEN in expression.meta:
            return str(expression.meta[WRITTEN])
        return super().sql(expression, key, *arguments, **options)

    TYPE_MAPPING: ClassVar = {
        **SparkGenerator.TYPE_MAPPING,
        exp.DType.TIME: "TIME",
        exp.DType.TEXT: "STRING",
        exp.DType.TIMESTAMP: "TIMESTAMP",
        exp.DType.TIMESTAMPLTZ: "TIMESTAMP_LTZ",
    }
    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        exp.Version: lambda self, node: _version(self, node),
        WindowFunction: lambda self, node: self.func(node.this, *node.expressions),
        TableArgument: lambda self, node: _table_argument(self, node),
        Descriptor: lambda self, node: self.func("DESCRIPTOR", *node.expressions),
        JsonCall: json_call_text,
        NamedArgument: lambda self, node: f"{node.this} => {self.sql(node.expression)}",
    }


def _version(generator: FlinkGenerator, node: exp.Version) -> str:
    what = "FOR SYSTEM_TIME" if node.this == "TIMESTAMP" else node.this
    return f"{what} {node.args['kind']} {generator.sql(node, 'expression')}"


def _table_argument(generator: FlinkGenerator, node: TableArgument) -> str:
    table = f"TABLE {generator.sql(node.this)}"
    by = node.args.get("partition_by")
    return f"{table} PARTITION BY {', '.join(map(generator.sql, by))}" if by else table


_KEYWORDS = {"MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE}


class ExpressionDialect(Spark):
    """Spark's expressions, as strings in calls of the API."""

    class Tokenizer(Spark.Tokenizer):
        """Also reads a doubled quote as a quote."""

        STRING_ESCAPES: ClassVar = ["'", '"', "\\"]
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, **_KEYWORDS}

    Parser = ExpressionParser
    Generator = FlinkGenerator


class FlinkDialect(Spark):
    """Flink's statements: strings in single quotes, with a doubled quote for a quote."""

    class Tokenizer(Spark.Tokenizer):
        """Reads backslashes as ordinary characters, and ``U&'...'`` as code points."""

        QUOTES: ClassVar = ["'"]
        STRING_ESCAPES: ClassVar = ["'"]
        RAW_STRINGS: ClassVar = []
        VAR_SINGLE_TOKENS: ClassVar = {"$"}  # of names: EXPR$1
        UNICODE_STRINGS: ClassVar = [("U&'", "'"), ("u&'", "'")]
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, **_KEYWORDS}

    Parser = StatementParser
    Generator = FlinkGenerator


#: Strings, quoted names and comments of a statement; hints are not comments.
_QUOTED = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*(?!\+).*?\*/", re.DOTALL)


def without_comments(text: str) -> str:
    """Return a statement with its comments blanked out, so that positions stay the same."""
    text = " " + text[1:] if text.startswith("\ufeff") else text  # a byte order mark
    return _QUOTED.sub(
        lambda found: found[0] if found[0][0] in "'`" else blank_text(found[0]), text
    )


def without_quoted(text: str) -> str:
    """Return a statement with its strings, quoted names and comments blanked out."""
    return _QUOTED.sub(lambda found: blank_text(found[0]), text)


def double_quote(text: str) -> int | None:
    """Return the offset of a double quote outside of strings, names and comments; None if none."""
    place = without_quoted(text).find('"')
    return None if place < 0 else place


def blank_text(part: str) -> str:
    """Return spaces of the length of a text, with its line ends."""
    return re.sub(r"[^\n]", " ", part)
