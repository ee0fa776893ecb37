"""The texts of the corpus: statements by kind, and scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.sql.corpus.ddl import Table, insert_targets, read_tables, without_comments

FOLDER = Path(__file__).parent
TABLES = FOLDER / "tables.sql"
_HEADER = re.compile(r"^--! *(\w+)(.*)\n", re.M)
#: Kinds whose statements Flink runs in batch mode: their rows do not depend on an order in time.
_BATCH = ("stateless", "order_limit")


@dataclass(frozen=True)
class Text:
    """A statement or a script.

    Parameters
    ----------
    name : str
        ``kind/name``; it names its recording too.
    kind : str
    sql : str
        As it is written.
    tables : tuple of Table
        The tables that it reads.
    mode : str
        Of Flink: ``batch`` or ``streaming``.
    created : str
        The CREATE TABLE of its tables, if the text has none.
    differs : str
        What differs from Flink as docs/sql.md says: ``average`` of integers is not cut.
        ``ordered a b``: rows come in the order of columns.
    """

    name: str
    kind: str
    sql: str
    tables: tuple[Table, ...]
    mode: str
    created: str = ""
    differs: str = ""


def statements() -> Iterator[Text]:
    """Return the statements: of a file for each kind, under a line ``--! name``."""
    tables = {table.name: table for table in read_tables(TABLES.read_text())}
    created = _created()
    for file in sorted((FOLDER / "statements").glob("*.sql")):
        kind = re.sub(r"_\d+$", "", file.stem)
        parts = _HEADER.split(file.read_text())
        for name, differs, sql in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            words = set(re.findall(r"\w+", without_comments(sql).lower()))
            read = tuple(table for key, table in tables.items() if key.lower() in words)
            ddl = ";\n".join(created[table.name] for table in read) + ";\n"
            mode = "batch" if kind in _BATCH else "streaming"
            yield Text(
                f"{kind}/{name}", kind, sql.strip("\n"), read, mode, ddl, differs.strip(" |")
            )


@cache
def _created() -> dict[str, str]:
    """Return CREATE TABLE by name."""
    parts = [part.strip() for part in TABLES.read_text().split(";")]
    return {read_tables(part)[0].name: part for part in parts if part}


def scripts() -> Iterator[Text]:
    """Return the scripts: a file each."""
    for file in sorted((FOLDER / "scripts").glob("*.sql")):
        sql = file.read_text()
        targets = {name.lower() for name in insert_targets(sql)}
        read = tuple(table for table in read_tables(sql) if table.name.lower() not in targets)
        batch = re.search(r"'execution\.runtime-mode'\s*=\s*'batch'", sql, re.I)
        mode = "batch" if batch else "streaming"
        yield Text(f"scripts/{file.stem}", "scripts", sql, read, mode)
