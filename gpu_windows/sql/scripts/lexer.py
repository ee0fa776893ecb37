"""Splits scripts into tokens and statements; positions are those of the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpu_windows.errors import SqlError
from gpu_windows.expressions.sql_text import error_at

_TOKEN = re.compile(
    r"(?P<skipped>\s+|--[^\n]*|/\*(?!\+).*?\*/|\ufeff)"
    r"|(?P<hint>/\*\+.*?\*/)"
    r"|(?P<string>'(?:[^']|'')*')"
    r"|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<symbol>=>|<>|.)",
    re.DOTALL,
)
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Token:
    """A token of a script.

    Parameters
    ----------
    kind : str
        ``word``, ``quoted`` (a name in backquotes), ``string``, ``number``, ``hint``, ``symbol``,
        or ``end`` behind the last one.
    text : str
        As it is written.
    start, end : int
        Offsets in the script.
    script : str
        The whole text.
    """

    kind: str
    text: str
    start: int
    end: int
    script: str = field(repr=False)  # it may have passwords

    def is_word(self, word: str) -> bool:
        """Whether it is a keyword, in any case."""
        return self.kind == "word" and self.text.upper() == word

    @property
    def is_name(self) -> bool:
        """Whether it may be the name of a table or a column."""
        return self.kind in ("word", "quoted")

    @property
    def value(self) -> str:
        """The name or string that it stands for, without quotes."""
        quote = {"quoted": "`", "string": "'"}.get(self.kind)
        return self.text if quote is None else self.text[1:-1].replace(quote * 2, quote)

    def error(self, rule: str, value: str | None = None) -> SqlError:
        """Return an error with its position; the value defaults to its text."""
        text = self.text or "the end of the statement"
        return error_at(self.script, self.start, rule, text if value is None else value)


@dataclass(frozen=True)
class Excerpt:
    """A part of a script.

    Parameters
    ----------
    script : str
        The whole text.
    start, end : int
        Offsets.
    """

    script: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """The part as it is written."""
        return self.script[self.start : self.end]

    @property
    def in_place(self) -> str:
        """The part with the text before it blanked out, so that positions are the script's."""
        return re.sub(r"[^\n]", " ", self.script[: self.start]) + self.text


class Cursor:
    """Reads the tokens of a statement, one after another.

    Parameters
    ----------
    script : str
    tokens : list of Token
    end : int
        Offset behind the statement.
    """

    def __init__(self, script: str, tokens: list[Token], end: int) -> None:
        self.script = script
        self._tokens = [*tokens, Token("end", "", end, end, script)]
        self._place = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._place]

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens were read."""
        return self.token.kind == "end"

    def next(self) -> Token:
        """Read a token."""
        token = self.token
        if token.kind != "end":
            self._place += 1
        return token

    def starts_with(self, *words: str) -> bool:
        """Whether these keywords or symbols come next."""
        following = self._tokens[self._place : self._place + len(words)]
        return len(following) == len(words) and all(
            token.is_word(word) or (token.kind == "symbol" and token.text == word)
            for token, word in zip(following, words, strict=True)
        )

    def accept(self, *words: str) -> bool:
        """Read these keywords or symbols if they come next; return whether they did."""
        if not self.starts_with(*words):
            return False
        self._place += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these keywords or symbols.

        Raises
        ------
        SqlError
            If something else comes next.
        """
        for word in words:
            if not self.accept(word):
                raise self.error(f"{word} is missing here")

    def name(self, role: str) -> str:
        """Read a name."""
        if not self.token.is_name:
            raise self.error(f"the name of {role} is missing here")
        return self.next().value

    def path(self, role: str) -> str:
        """Read a name that may be qualified by catalog and database, and return its last part."""
        found = self.name(role)
        while self.accept("."):
            found = self.name(role)
        return found

    def names(self, role: str) -> tuple[str, ...]:
        """Read names in parentheses."""
        self.expect("(")
        found = [self.name(role)]
        while self.accept(","):
            found.append(self.name(role))
        self.expect(")")
        return tuple(found)

    def string(self, role: str) -> str:
        """Read a string."""
        if self.token.kind != "string":
            raise self.error(f"{role} is a string in single quotes")
        return self.next().value

    def integer(self) -> int:
        """Read a whole number."""
        if self.token.kind != "number" or not self.token.text.isdigit():
            raise self.error("a whole number is missing here")
        return int(self.next().text)

    def until(self, *words: str) -> Excerpt:
        """Read to the next of some keywords or symbols outside of parentheses, or to the end."""
        start, end, depth = self.token.start, self.token.start, 0
        while not self.is_at_end:
            if depth == 0 and any(self.starts_with(word) for word in words):
                break
            token = self.next()
            end = token.end
            if token.kind == "symbol":
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
        return Excerpt(self.script, start, end)

    def error(self, rule: str) -> SqlError:
        """Return an error at the next token."""
        return self.token.error(rule)


def split_statements(script: str) -> Iterator[Cursor]:
    """Yield a cursor for each statement that has tokens.

    Raises
    ------
    SqlError
        If a string, a name or a comment does not end.
    """
    tokens: list[Token] = []
    for found in _TOKEN.finditer(script):
        kind, text = str(found.lastgroup), found[0]
        if kind == "skipped":
            continue
        if kind == "symbol" and (text in "'`" or script.startswith("/*", found.start())):
            raise error_at(script, found.start(), "this does not end", script[found.start() :][:20])
        if (kind, text) == ("symbol", ";"):
            if tokens:
                yield Cursor(script, tokens, found.start())
            tokens = []
        else:
            tokens.append(Token(kind, text, *found.span(), script))
    if tokens:
        yield Cursor(script, tokens, len(script))
