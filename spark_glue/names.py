"""Names of columns, as Spark's SQL has them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Quote a column's name for SQL."""
    return "`" + name.replace("`", "``") + "`"
