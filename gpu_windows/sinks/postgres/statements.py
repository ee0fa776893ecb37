"""SQL statements that create, check, append to and merge into tables of PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from gpu_windows.errors import OutputError, QueryError
from gpu_windows.functions.top_changes import Change
from gpu_windows.planning.own_columns import FIRING

#: Names with more are cut off by PostgreSQL.
MAX_NAME_BYTES = 63
_DELETED = Change.DELETE.name.lower()
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
#: The schema of a table that exists, else the one that it would be made in.
_SCHEMA = """
SELECT coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1)), current_schema())::text
"""
#: Columns of the unique indexes over a whole table in which nulls are equal or cannot be.
_UNIQUE = """
SELECT array_to_json(array_agg(a.attname ORDER BY a.attname))::text FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, to_jsonb(i) HAVING bool_and(a.attnotnull)
OR coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
"""


def quote(name: str) -> str:
    """Return a name of a column or a table as SQL has it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@dataclass(frozen=True)
class TableName:
    """A table.

    Parameters
    ----------
    schema : str
        Empty: the first of the search path.
    name : str
    """

    schema: str
    name: str

    @classmethod
    def parse(cls, text: Any) -> Self:
        """Read ``name`` or ``schema.name``.

        Raises
        ------
        QueryError
        """
        parts = text.split(".") if isinstance(text, str) else []
        sizes = [len(part.encode()) for part in parts]
        if len(parts) not in (1, 2) or not all(0 < size <= MAX_NAME_BYTES for size in sizes):
            rule = "a table of PostgreSQL is named by text: table, or schema.table, of 63 bytes"
            raise QueryError(rule, value=repr(text))
        return cls("" if len(parts) == 1 else parts[0], parts[-1])

    @property
    def sql(self) -> str:
        """The name as SQL has it."""
        return ".".join(quote(part) for part in (self.schema, self.name) if part)

    def sibling(self, name: str) -> TableName:
        """Return another table of the same schema."""
        return TableName(self.schema, name)


def locate(cursor: Any, table: TableName) -> TableName:
    """Return a table with its schema, which the search path says if its name does not.

    Raises
    ------
    OutputError
        If no schema of the search path exists.
    """
    if table.schema:
        return table
    cursor.execute(_SCHEMA, parameters=(table.sql,))
    (schema,) = cursor.fetchone()
    if schema is None:
        rule = "the search path of PostgreSQL has no schema: name the table as schema.table"
        raise OutputError(rule, value=table.sql)
    return TableName(schema, table.name)


def columns_of(cursor: Any, table: str) -> dict[str, str]:
    """Return the columns of a table with their types; none if it does not exist."""
    cursor.execute(_COLUMNS, parameters=(table,))
    return dict(cursor.fetchall())


def create_like(table: str, rows: str, without: str | None) -> list[str]:
    """Return statements that create a table for the rows of another one."""
    create = f"CREATE TABLE {table} AS TABLE {rows} WITH NO DATA"
    return [create] if without is None else [create, f"ALTER TABLE {table} DROP {quote(without)}"]


def unique_index(table: str, on: Sequence[str]) -> str:
    """Return the statement that makes rows unique by some columns, with nulls that are equal."""
    return f"CREATE UNIQUE INDEX ON {table} ({_list(on)}) NULLS NOT DISTINCT"


def unique_columns(cursor: Any, table: str) -> list[str]:
    """Return the columns of each unique index, sorted, as JSON."""
    cursor.execute(_UNIQUE, parameters=(table,))
    return [row[0] for row in cursor.fetchall()]


def append(table: str, rows: str, names: Sequence[str]) -> list[str]:
    """Return statements that add the rows of another table."""
    return [f"INSERT INTO {table} ({_list(names)}) SELECT {_list(names)} FROM {rows}"]


def merge(
    table: str,
    rows: str,
    names: Sequence[str],
    on: Sequence[str],
    *,
    change: str | None,
    fires: bool,
) -> list[str]:
    """Return statements that replace rows with the same values in some columns, and add others.

    Parameters
    ----------
    table, rows : str
        As SQL has them.
    names : sequence of str
        Of the columns that are written.
    on : sequence of str
        Names of the columns that identify rows; nulls are the same.
    change : str, optional
        The column of ``rows`` that marks deleted rows.
    fires : bool
        Whether the last firing of several counts.
    """
    latest = f"SELECT * FROM {rows}"
    if fires:
        order = f"{_list(on)}, {quote(FIRING[0].name)} DESC"
        latest = f"SELECT DISTINCT ON ({_list(on)}) * FROM {rows} ORDER BY {order}"
    statements, stays = [], ""
    if change is not None:
        gone = f"SELECT * FROM ({latest}) l WHERE {quote(change)} = '{_DELETED}'"
        same = " AND ".join(f"t.{quote(each)} = g.{quote(each)}" for each in on)
        # `=` is found by an index, which IS NOT DISTINCT FROM is not: that is for rows with nulls.
        alike = " AND ".join(f"t.{quote(each)} IS NOT DISTINCT FROM g.{quote(each)}" for each in on)
        null = " OR ".join(f"g.{quote(each)} IS NULL" for each in on)
        delete = f"DELETE FROM {table} t USING ({gone}) g WHERE "
        statements = [f"{delete}{same}", f"{delete}({null}) AND {alike}"]
        stays = f" WHERE {quote(change)} <> '{_DELETED}'"
    sets = ", ".join(f"{quote(n)} = EXCLUDED.{quote(n)}" for n in names if n not in on)
    return [
        *statements,
        f"INSERT INTO {table} ({_list(names)}) SELECT {_list(names)} FROM ({latest}) l{stays} "
        f"ON CONFLICT ({_list(on)}) DO {f'UPDATE SET {sets}' if sets else 'NOTHING'}",
    ]


def _list(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(map(quote, names))
