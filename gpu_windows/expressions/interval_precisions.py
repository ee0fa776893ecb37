"""Precisions of intervals, ``INTERVAL '1' SECOND(2, 3)``, which change no value."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

#: Interval units that may be followed by a precision in parentheses.
_UNITS = {
    f"{unit}{s}" for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND") for s in ("", "S")
}
#: Tokens of the value of an interval.
_OF_VALUES = (TokenType.STRING, TokenType.NUMBER, TokenType.DASH)


def without_precisions(tokens: list[Token]) -> list[Token]:
    """Return the tokens without ``(2, 3)`` after the unit of an interval."""
    remaining: list[Token] = []
    place, is_interval = 0, False
    while place < len(tokens):
        token, word = tokens[place], tokens[place].text.upper()
        remaining.append(token)
        place += 1
        if token.token_type == TokenType.INTERVAL:
            is_interval = True
        elif is_interval and word in _UNITS and (length := _precision_length(tokens, place)):
            place += length
            is_interval = place < len(tokens) and tokens[place].text.upper() == "TO"
        elif word not in _UNITS and token.token_type not in _OF_VALUES:
            is_interval = word == "TO"
    return remaining


def _precision_length(tokens: list[Token], place: int) -> int:
    """Return the number of tokens of one or two numbers in parentheses that begin here, or 0."""
    kinds = [token.token_type for token in tokens[place : place + 5]]
    one = [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]
    two = [*one[:2], TokenType.COMMA, *one[1:]]
    return next((len(each) for each in (one, two) if kinds[: len(each)] == each), 0)
