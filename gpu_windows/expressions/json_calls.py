"""The grammar of JSON_VALUE, JSON_QUERY, JSON_EXISTS, JSON_OBJECT and JSON_ARRAY."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

#: Functions that make a document of values.
_MAKERS = ("JSON_OBJECT", "JSON_ARRAY")
#: Functions with this grammar.
JSON_FUNCTIONS = ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", *_MAKERS)
_BEHAVIOURS = ("NULL", "ABSENT", "ERROR", "TRUE", "FALSE", "UNKNOWN", "EMPTY ARRAY", "EMPTY OBJECT")
_EVENTS = ("EMPTY", "ERROR", "NULL")
#: What is done if there is no value, or a value cannot be had: a value of its own.
DEFAULT = "DEFAULT"


class JsonCall(exp.Expression, exp.Func):
    """A call: ``this`` is its name, ``expressions`` its arguments, of JSON_OBJECT keys and values.

    ``returning`` is a type, ``options`` are others as strings, such as ``NULL ON EMPTY``;
    ``default_on_empty`` and ``default_on_error`` are the values of ``DEFAULT ON EMPTY`` and
    ``DEFAULT ON ERROR``.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": False,
        "returning": False,
        "options": False,
        "default_on_empty": False,
        "default_on_error": False,
    }
    _sql_names: ClassVar[list[str]] = []


def parse_json_call(parser: Any, name: str) -> JsonCall:
    """Parse the arguments of a call, after its opening parenthesis."""
    arguments = _parse_arguments(parser, name)
    returning = parser._parse_types() if parser._match_text_seq("RETURNING") else None
    options: list[str] = []
    defaults: dict[str, Any] = {}
    while not parser._match(TokenType.R_PAREN, advance=False):
        option, value = _parse_option(parser)
        options.append(option)
        if value is not None:
            defaults[option.lower().replace(" ", "_")] = value
    return JsonCall(
        this=name, expressions=arguments, returning=returning, options=options, **defaults
    )


def _parse_arguments(parser: Any, name: str) -> list[Any]:
    if name in _MAKERS and _is_at_end(parser):
        return []
    arguments: list[Any] = []
    while True:
        if name == "JSON_OBJECT":
            parser._match_text_seq("KEY")
            arguments.append(parser._parse_primary())
            if not parser._match_text_seq("VALUE"):
                parser.raise_error("Expecting VALUE after a key")
        arguments.append(parser._parse_disjunction())
        if not parser._match(TokenType.COMMA):
            return arguments


def _is_at_end(parser: Any) -> bool:
    """Whether a call has no arguments."""
    following = (parser._curr.text.upper(), parser._next.text.upper() if parser._next else "")
    is_closed = parser._match(TokenType.R_PAREN, advance=False)
    return bool(is_closed) or following in (("NULL", "ON"), ("ABSENT", "ON"))


def _parse_option(parser: Any) -> tuple[str, Any]:
    for first in ("WITHOUT", "WITH"):
        if parser._match_text_seq(first):
            words = [
                word
                for word in ("CONDITIONAL", "UNCONDITIONAL", "ARRAY")
                if parser._match_text_seq(word)
            ]
            if not parser._match_text_seq("WRAPPER"):
                parser.raise_error("Expecting WRAPPER")
            return " ".join((first, *words, "WRAPPER")), None
    for behaviour in _BEHAVIOURS:
        if parser._match_text_seq(*behaviour.split()):
            return _parse_event(parser, behaviour), None
    if parser._match_text_seq(DEFAULT):
        value = parser._parse_disjunction()
        return _parse_event(parser, DEFAULT), value
    parser.raise_error("Expecting an option of a JSON function")
    return "", None


def _parse_event(parser: Any, behaviour: str) -> str:
    for event in _EVENTS:
        if parser._match_text_seq("ON", event):
            return f"{behaviour} ON {event}"
    parser.raise_error("Expecting ON EMPTY, ON ERROR or ON NULL")
    return ""


def json_call_text(generator: Any, node: JsonCall) -> str:
    """Return a call as it is written."""
    arguments = [generator.sql(each) for each in node.expressions]
    if node.name == "JSON_OBJECT":
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        arguments = [f"{key} VALUE {value}" for key, value in pairs]
    parts = [", ".join(arguments)]
    if node.args.get("returning") is not None:
        parts.append(f"RETURNING {generator.sql(node.args['returning'])}")
    for option in node.args.get("options") or ():
        value = node.args.get(option.lower().replace(" ", "_"))
        written = "" if value is None else f"{DEFAULT} {generator.sql(value)}"
        parts.append(option if value is None else option.replace(DEFAULT, written, 1))
    return f"{node.name}({' '.join(parts)})"
