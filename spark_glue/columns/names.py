"""Names and texts as Spark's SQL has them: what becomes part of a statement goes through here."""

from __future__ import annotations

import re

from gpu_windows.errors import QueryError

#: A part of a table's name: quoted, or without a dot and a backtick.
_PART = r"(?:`(?:[^`]|``)+`|[^.`]+)"
_TABLE, _PARTS = re.compile(rf"{_PART}(?:\.{_PART})*"), re.compile(_PART)


def quoted(name: str) -> str:
    """Quote a column's name for SQL."""
    return "`" + name.replace("`", "``") + "`"


def quoted_table(identifier: str) -> str:
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
    return ".".join(part if part.startswith("`") else quoted(part) for part in parts)


def quoted_text(text: str) -> str:
    """Write a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
