"""Precisions of intervals, ``INTERVAL '1' SECOND(2, 3)``, which change no value."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

#: Interval units that may be followed by a precision in parentheses.
_UNITS = {
    f"{unit}{s}" for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND") for s in ("", "S")
}


def without_precisions(tokens: list[Token]) -> list[Token]:
    """Return the tokens without ``(2, 3)`` after the unit of an interval."""
    remaining: list[Token] = []
    place, is_interval = 0, False
    while place < len(tokens):
        token = tokens[place]
        if token.token_type == TokenType.INTERVAL:
            is_interval = True
        elif is_interval and token.text.upper() in _UNITS and _is_precision(tokens, place + 1):
            remaining.append(token)
            place = next(
                i for i in range(place, len(tokens)) if tokens[i].token_type == TokenType.R_PAREN
            )
            place, is_interval = place + 1, _continues_span(tokens, place + 1)
            continue
        elif token.text.upper() not in _UNITS and token.token_type not in (
            TokenType.STRING,
            TokenType.NUMBER,
            TokenType.DASH,
        ):
            is_interval = token.text.upper() == "TO"
        remaining.append(token)
        place += 1
    return remaining


def _is_precision(tokens: list[Token], place: int) -> bool:
    """Whether one or two numbers in parentheses, closed again, begin here."""
    kinds = [token.token_type for token in tokens[place : place + 5]]
    one = [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]
    two = [*one[:2], TokenType.COMMA, *one[1:]]
    return kinds[:3] == one or kinds == two


def _continues_span(tokens: list[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].text.upper() == "TO"
