"""Reads the statements of a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from gpu_windows.sql.scripts.definitions import CreateTable, read_create_table
from gpu_windows.sql.scripts.lexer import Cursor, Excerpt, Token, split_statements
from gpu_windows.sql.scripts.option_hints import read_target_hint


@dataclass(frozen=True)
class CreateView:
    """CREATE VIEW.

    Parameters
    ----------
    name : str
    place : Token
        Of the name.
    columns : tuple of str
        New names of its columns; empty where they stay.
    query : Excerpt
    if_not_exists : bool
    """

    name: str
    place: Token
    columns: tuple[str, ...]
    query: Excerpt
    if_not_exists: bool


@dataclass(frozen=True)
class CreateFunction:
    """CREATE TEMPORARY FUNCTION, of a function in Python.

    Parameters
    ----------
    name : str
    place : Token
        Of the name.
    """

    name: str
    place: Token


@dataclass(frozen=True)
class Insert:
    """INSERT INTO a table, or INSERT OVERWRITE.

    Parameters
    ----------
    target : str
    place : Token
        Of the target.
    columns : tuple of str
        The columns that are given; empty for all.
    partition : mapping of str to Excerpt
        Columns that have one value.
    query : Excerpt
    overwrites : bool
        Whether results replace what the target has.
    options : mapping of str to str
        Of a hint of the target.
    """

    target: str
    place: Token
    columns: tuple[str, ...]
    partition: Mapping[str, Excerpt]
    query: Excerpt
    overwrites: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """A SELECT whose results are shown.

    Parameters
    ----------
    text : Excerpt
    """

    text: Excerpt


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of statements.

    Parameters
    ----------
    statements : tuple of Query or Insert
    """

    statements: tuple[Query | Insert, ...]


@dataclass(frozen=True)
class SetOption:
    """SET an option, or RESET it.

    Parameters
    ----------
    key : str, optional
        None: all options.
    value : str, optional
        None: back to the default.
    place : Token
    """

    key: str | None
    value: str | None
    place: Token


@dataclass(frozen=True)
class Drop:
    """DROP TABLE or VIEW.

    Parameters
    ----------
    name : str
    place : Token
    if_exists : bool
    """

    name: str
    place: Token
    if_exists: bool


Statement = CreateTable | CreateView | CreateFunction | Insert | Query | Explain | SetOption | Drop


@dataclass
class _StatementSet:
    """Whether statements of a set are being read."""

    begin: Token | None = None
    explain: list[Query | Insert] | None = None


def read_statements(script: str) -> tuple[Statement, ...]:
    """Return the statements of a script.

    Raises
    ------
    SqlError
        With the position of what cannot be read, or is not covered.
    """
    statements: list[Statement] = []
    block = _StatementSet()
    for cursor in split_statements(script):
        _begin_set(cursor, block)
        if cursor.is_at_end:
            continue
        if block.begin is not None and cursor.accept("END"):
            if not cursor.is_at_end:
                raise cursor.error("END of a statement set is followed by ;")
            if block.explain is not None:
                statements.append(Explain(tuple(block.explain)))
            block = _StatementSet()
            continue
        found = _read_statement(cursor, block.begin)
        if block.explain is not None and isinstance(found, Query | Insert):
            block.explain.append(found)
        elif found is not None:
            statements.append(found)
    if block.begin is not None:
        raise block.begin.error("a statement set has no END")
    return tuple(statements)


def _begin_set(cursor: Cursor, block: _StatementSet) -> None:
    """Read the beginning of a statement set, if one comes next."""
    place, explains = cursor.token, False
    if cursor.starts_with("EXPLAIN", "STATEMENT", "SET"):
        explains = cursor.accept("EXPLAIN")
    for words in (("EXECUTE", "STATEMENT", "SET", "BEGIN"), ("STATEMENT", "SET", "BEGIN"),
                  ("BEGIN", "STATEMENT", "SET")):  # fmt: skip
        if cursor.accept(*words):
            if block.begin is not None:
                raise place.error("a statement set within another")
            block.begin, block.explain = place, [] if explains else None
            return


def _read_statement(cursor: Cursor, begin: Token | None) -> Statement | None:
    """Read a statement; one that changes nothing here, such as USE, is None."""
    if begin is not None and not cursor.starts_with("INSERT"):
        raise cursor.error("a statement set has INSERT statements")
    if cursor.accept("EXECUTE") and not cursor.starts_with("INSERT"):
        raise cursor.error("EXECUTE takes an INSERT, or STATEMENT SET BEGIN ... END")
    for words, read in _READERS.items():
        if cursor.accept(*words):
            return read(cursor)
    if _begins_query(cursor):
        return Query(cursor.until())
    for words, rule in _REFUSED.items():
        if cursor.starts_with(*words):
            raise cursor.error(rule)
    raise cursor.error("this begins no statement that scripts can have")


def _read_create_view(cursor: Cursor) -> CreateView:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    place = cursor.token
    name = cursor.path("a view")
    columns = cursor.names("a column") if cursor.starts_with("(") else ()
    if cursor.accept("COMMENT"):
        cursor.string("a comment")
    cursor.expect("AS")
    return CreateView(name, place, columns, _read_query(cursor), if_not_exists)


def _read_create_function(cursor: Cursor) -> CreateFunction:
    cursor.accept("IF", "NOT", "EXISTS")
    place = cursor.token
    name = cursor.path("a function")
    cursor.expect("AS")
    cursor.string("the name of a class")
    if cursor.accept("LANGUAGE") and not cursor.accept("PYTHON"):
        raise cursor.error("a function is one of Python's: LANGUAGE PYTHON")
    return CreateFunction(name, place)


def _read_insert(cursor: Cursor, *, overwrites: bool = False) -> Insert:
    place = cursor.token
    target = cursor.path("a table")
    options = read_target_hint(cursor)
    partition: dict[str, Excerpt] = {}
    if cursor.accept("PARTITION"):
        cursor.expect("(")
        while not cursor.accept(")"):
            name = cursor.name("a column")
            cursor.expect("=")
            partition[name] = cursor.until(",", ")")
            if not cursor.starts_with(")"):
                cursor.expect(",")
    has_columns = cursor.starts_with("(") and not _begins_query(cursor, "(")
    columns = cursor.names("a column") if has_columns else ()
    query = _read_query(cursor)
    return Insert(target, place, columns, partition, query, overwrites=overwrites, options=options)


def _read_query(cursor: Cursor) -> Excerpt:
    if not _begins_query(cursor):
        raise cursor.error("a query is missing here")
    return cursor.until()


def _begins_query(cursor: Cursor, *before: str) -> bool:
    """Whether a query comes next, maybe after some symbols."""
    return any(cursor.starts_with(*before, each) for each in ("SELECT", "WITH", "(", "VALUES"))


def _read_explain(cursor: Cursor) -> Explain:
    cursor.accept("PLAN", "FOR")
    while not (cursor.is_at_end or _begins_query(cursor) or cursor.starts_with("INSERT")):
        cursor.next()  # ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN
    if cursor.accept("INSERT", "INTO") or cursor.accept("INSERT", "OVERWRITE"):
        return Explain((_read_insert(cursor),))
    return Explain((Query(_read_query(cursor)),))


def _read_set(cursor: Cursor) -> SetOption | None:
    place = cursor.token
    if cursor.is_at_end:  # SET alone lists options
        return None
    if place.kind == "string":
        key = cursor.next().value
    else:  # names of options without quotes, as older versions write them
        key = cursor.until("=").text.strip()
    cursor.expect("=")
    value = cursor.until().text.strip()
    if value.startswith("'"):
        value = value[1:-1].replace("''", "'")
    return SetOption(key, value, place)


def _read_reset(cursor: Cursor) -> SetOption:
    key = None if cursor.is_at_end else cursor.token.value
    return SetOption(key, None, cursor.next())


def _read_drop(cursor: Cursor) -> Drop:
    if_exists = cursor.accept("IF", "EXISTS")
    place = cursor.token
    return Drop(cursor.path("a table or view"), place, if_exists)


def _read_nothing(cursor: Cursor) -> None:
    """Read a statement that shows something, or names a catalog: queries do not depend on it."""
    cursor.until()


_READERS: Mapping[tuple[str, ...], Callable[[Cursor], Statement | None]] = {
    **{
        ("CREATE", *temporary, "TABLE"): read_create_table
        for temporary in ((), ("TEMPORARY",), ("OR", "REPLACE"))
    },
    **{
        ("CREATE", *replaces, *temporary, "VIEW"): _read_create_view
        for replaces in ((), ("OR", "REPLACE"))  # which Flink refuses where a view exists
        for temporary in ((), ("TEMPORARY",))
    },
    **{
        ("CREATE", *kind, "FUNCTION"): _read_create_function
        for kind in ((), ("TEMPORARY",), ("TEMPORARY", "SYSTEM"))
    },
    ("INSERT", "INTO"): _read_insert,
    ("INSERT", "OVERWRITE"): partial(_read_insert, overwrites=True),
    ("EXPLAIN",): _read_explain,
    ("SET",): _read_set,
    ("RESET",): _read_reset,
    **{
        ("DROP", *temporary, kind): _read_drop
        for temporary in ((), ("TEMPORARY",))
        for kind in ("TABLE", "VIEW")
    },
    **{(word,): _read_nothing for word in ("USE", "SHOW", "DESCRIBE", "DESC", "QUIT", "EXIT")},
    ("CREATE", "DATABASE"): _read_nothing,
    **{("DROP", *kind): _read_nothing for kind in (("DATABASE",), ("FUNCTION",),
                                                   ("TEMPORARY", "FUNCTION"))},
}  # fmt: skip
#: Statements that are not covered, with advice.
_REFUSED: Mapping[tuple[str, ...], str] = {
    ("CREATE", "CATALOG"): "catalogs are not covered: create tables, or give streams by name",
    **dict.fromkeys(
        (("ADD",), ("REMOVE",), ("LOAD",), ("UNLOAD",)),
        "jars and modules are not loaded: register a function in Python",
    ),
    **dict.fromkeys((("DELETE",), ("UPDATE",), ("TRUNCATE",), ("CALL",), ("ANALYZE",), ("ALTER",)),
                    "a script creates tables and views, and inserts into tables"),
}  # fmt: skip
