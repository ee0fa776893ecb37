"""The grammar of JSON_VALUE, JSON_QUERY and JSON_EXISTS."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

#: Functions with this grammar.
JSON_FUNCTIONS = ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS")
_BEHAVIOURS = ("NULL", "ERROR", "TRUE", "FALSE", "UNKNOWN", "EMPTY ARRAY", "EMPTY OBJECT")


class JsonCall(exp.Expression, exp.Func):
    """A call: ``this`` is its name, ``expressions`` a document and a path.

    ``returning`` is a type, ``options`` are others as strings, such as ``NULL ON EMPTY``.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": True,
        "returning": False,
        "options": False,
    }
    _sql_names: ClassVar[list[str]] = []


def parse_json_call(parser: Any, name: str) -> JsonCall:
    """Parse the arguments of a call, after its opening parenthesis."""
    arguments = [parser._parse_disjunction()]
    while parser._match(TokenType.COMMA):
        arguments.append(parser._parse_disjunction())
    returning = parser._parse_types() if parser._match_text_seq("RETURNING") else None
    options: list[str] = []
    while not parser._match(TokenType.R_PAREN, advance=False):
        options.append(_parse_option(parser))
    return JsonCall(this=name, expressions=arguments, returning=returning, options=options)


def _parse_option(parser: Any) -> str:
    for first in ("WITHOUT", "WITH"):
        if parser._match_text_seq(first):
            words = [
                word
                for word in ("CONDITIONAL", "UNCONDITIONAL", "ARRAY")
                if parser._match_text_seq(word)
            ]
            if not parser._match_text_seq("WRAPPER"):
                parser.raise_error("Expecting WRAPPER")
            return " ".join((first, *words, "WRAPPER"))
    for behaviour in _BEHAVIOURS:
        if parser._match_text_seq(*behaviour.split()):
            return _parse_event(parser, behaviour)
    if parser._match_text_seq("DEFAULT"):
        parser._parse_disjunction()
        return _parse_event(parser, "DEFAULT")
    parser.raise_error("Expecting an option of a JSON function")
    return ""


def _parse_event(parser: Any, behaviour: str) -> str:
    for event in ("EMPTY", "ERROR"):
        if parser._match_text_seq("ON", event):
            return f"{behaviour} ON {event}"
    parser.raise_error("Expecting ON EMPTY or ON ERROR")
    return ""
