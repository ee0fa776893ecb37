"""The SQL that is read: Spark's, with the words that Flink's window queries have besides.

``TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES)``, also within ``TABLE(...)`` and with
named arguments; precisions of intervals, as in ``SECOND(2, 3)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

#: Functions that put rows into windows: of a table, or of a time in GROUP BY.
WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
#: Units whose precision may stand behind them, in parentheses.
_UNITS = {f"{unit}{s}" for unit in ("DAY", "HOUR", "MINUTE", "SECOND") for s in ("", "S")}


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
    """Return ``PERCENTILE(x, fraction)``; of more arguments the parser would drop some."""
    if len(arguments) == 2:
        return exp.Quantile(this=arguments[0], quantile=arguments[1])
    return exp.Anonymous(this="PERCENTILE", expressions=arguments)


def _navigated(name: str) -> Callable[[list[Any]], exp.Expr]:
    """Return what makes FIRST or LAST; with a number of rows, which the parser would drop."""
    made: Callable[[list[Any]], exp.Expr] = SparkParser.FUNCTIONS[name]

    def navigated(arguments: list[Any]) -> exp.Expr:
        if len(arguments) < 2 or isinstance(arguments[1], exp.Boolean):
            return made(arguments)
        return exp.Anonymous(this=name, expressions=arguments)

    return navigated


class FlinkParser(SparkParser):
    """Reads Spark's SQL, and Flink's window functions."""

    STRICT_CAST = True  # CAST and TRY_CAST are two
    _within: Any = None
    FUNC_TOKENS: ClassVar = {*SparkParser.FUNC_TOKENS, TokenType.SESSION}
    FUNCTIONS: ClassVar = {
        **SparkParser.FUNCTIONS,
        "PERCENTILE": _percentile,
        "FIRST": _navigated("FIRST"),
        "LAST": _navigated("LAST"),
    }
    FUNCTION_PARSERS: ClassVar = {
        **{n: parse for n, parse in SparkParser.FUNCTION_PARSERS.items() if n != "PERCENTILE"},
        **{
            name: (lambda self, name=name: self._parse_window_function(name))
            for name in WINDOW_FUNCTIONS
        },
    }

    def parse(self, raw_tokens: list[Token], sql: str) -> Any:
        """Parse what is left without the precisions of intervals."""
        return super().parse(_without_precisions(raw_tokens), sql)

    def _match_text_seq(self, *texts: str, **options: Any) -> Any:
        """Match words; before DEFINE of MATCH_RECOGNIZE stands WITHIN, which is kept."""
        if texts == ("DEFINE",) and super()._match_text_seq("WITHIN"):
            self._within = self._parse_interval() or self._parse_unary()
        if texts == ("TO", "LAST") and self._next and self._next.text.upper() != "LAST":
            return super()._match_text_seq("TO")  # SKIP TO a variable: to its last row
        return super()._match_text_seq(*texts, **options)

    def _parse_partition_by(self) -> Any:
        """Parse the columns of PARTITION BY; without any it would be left out."""
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
            named = self._curr.text.upper()
            self._advance(2)
            return NamedArgument(this=named, expression=self._parse_window_argument())
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
            named = self._next.text.upper() == "DESCRIPTOR"
            if named or not self._match(TokenType.COMMA):
                self._retreat(index)
                return columns
            if self._next.token_type == TokenType.FARROW:
                self._retreat(index)
                return columns
            columns.append(self._parse_column())


class FlinkGenerator(SparkGenerator):
    """Writes the same, for messages."""

    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        WindowFunction: lambda self, node: self.func(node.this, *node.expressions),
        TableArgument: lambda self, node: _table_argument(self, node),
        Descriptor: lambda self, node: self.func("DESCRIPTOR", *node.expressions),
        NamedArgument: lambda self, node: f"{node.this} => {self.sql(node.expression)}",
    }


def _table_argument(generator: FlinkGenerator, node: TableArgument) -> str:
    table = f"TABLE {generator.sql(node.this)}"
    by = node.args.get("partition_by")
    return f"{table} PARTITION BY {', '.join(map(generator.sql, by))}" if by else table


class Flink(Spark):
    """Spark's SQL, and Flink's windows."""

    class Tokenizer(Spark.Tokenizer):
        """A quote in a text is written twice, too."""

        STRING_ESCAPES: ClassVar = ["'", '"', "\\"]
        KEYWORDS: ClassVar = {
            **Spark.Tokenizer.KEYWORDS,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
        }

    Parser = FlinkParser
    Generator = FlinkGenerator


def _without_precisions(tokens: list[Token]) -> list[Token]:
    """Return the tokens without ``(2, 3)`` behind the unit of an interval."""
    kept: list[Token] = []
    place, is_interval = 0, False
    while place < len(tokens):
        token = tokens[place]
        if token.token_type == TokenType.INTERVAL:
            is_interval = True
        elif is_interval and token.text.upper() in _UNITS and _opens(tokens, place + 1):
            kept.append(token)
            place = next(
                i for i in range(place, len(tokens)) if tokens[i].token_type == TokenType.R_PAREN
            )
            place, is_interval = place + 1, _goes_on(tokens, place + 1)
            continue
        elif token.text.upper() not in _UNITS and token.token_type not in (
            TokenType.STRING,
            TokenType.NUMBER,
            TokenType.DASH,
        ):
            is_interval = token.text.upper() == "TO"
        kept.append(token)
        place += 1
    return kept


def _opens(tokens: list[Token], place: int) -> bool:
    """Whether a number in parentheses begins here that ends, too."""
    kinds = [token.token_type for token in tokens[place : place + 5]]
    one = [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]
    two = [*one[:2], TokenType.COMMA, *one[1:]]
    return kinds[:3] == one or kinds == two


def _goes_on(tokens: list[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].text.upper() == "TO"
