"""Quotes names and strings for Spark's SQL; every statement is built with these."""

from __future__ import annotations

import re

from gpu_windows.errors import QueryError

#: A part of a table's name: quote_name, or without a dot and a backtick.
_PART = r"(?:`(?:[^`]|``)+`|[^.`]+)"
_TABLE, _PARTS = re.compile(rf"{_PART}(?:\.{_PART})*"), re.compile(_PART)


def quote_name(name: str) -> str:
    """Quote a column's name for SQL."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(identifier: str) -> str:
    """Quote each part of a table's name for SQL: ``a.`b c``` becomes ```a`.`b c```.

    Raises
    ------
    QueryError
        If it is not a name, or several with dots between them.
    """
    if not _TABLE.fullmatch(identifier):
        rule = "a table is named by one name, or by several with dots between them, quoted or not"
        raise QueryError(rule, value=identifier)
    parts = _PARTS.findall(identifier)
    return ".".join(part if part.startswith("`") else quote_name(part) for part in parts)


def quote_text(text: str) -> str:
    """Write a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
