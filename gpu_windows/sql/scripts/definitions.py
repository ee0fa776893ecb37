"""Reads CREATE TABLE: columns, watermark, primary key and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyarrow import types

from gpu_windows.expressions.types import flink_name
from gpu_windows.sql.scripts.flink_types import read_type
from gpu_windows.sql.scripts.lexer import Cursor, Excerpt, Token

_PARTS = ("OPTIONS", "GENERATED", "WATERMARKS", "CONSTRAINTS", "PARTITIONS", "METADATA")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
    place : Token
        Of the name.
    dtype : pyarrow.DataType, optional
        None of a computed column, whose type is that of its expression.
    is_nullable : bool
    expression : Excerpt, optional
        Of a computed column.
    metadata : str, optional
        What a connector calls the value, if it is metadata of the row.
    is_virtual : bool
        Whether a sink does not take the column.
    """

    name: str
    place: Token
    dtype: pa.DataType | None = None
    is_nullable: bool = True
    expression: Excerpt | None = None
    metadata: str | None = None
    is_virtual: bool = False

    @property
    def is_written(self) -> bool:
        """Whether an INSERT gives values of it."""
        return self.expression is None and not self.is_virtual


@dataclass(frozen=True)
class Watermark:
    """WATERMARK FOR a column.

    Parameters
    ----------
    column : str
    place : Token
        Of the column.
    expression : Excerpt
    """

    column: str
    place: Token
    expression: Excerpt


@dataclass(frozen=True)
class TableDefinition:
    """A table of CREATE TABLE.

    Parameters
    ----------
    name : str
    place : Token
        Of the name.
    columns : tuple of Column
    watermark : Watermark, optional
    primary_key : tuple of str
    partitions : tuple of str
        PARTITIONED BY.
    options : mapping of str to str
        WITH.
    """

    name: str
    place: Token
    columns: tuple[Column, ...] = ()
    watermark: Watermark | None = None
    primary_key: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def connector(self) -> str | None:
        """The name of its connector."""
        return self.options.get("connector")

    @property
    def event_time(self) -> Column | None:
        """The column of WATERMARK FOR; None without one."""
        name = None if self.watermark is None else self.watermark.column.lower()
        return next((each for each in self.columns if each.name.lower() == name), None)

    def event_time_error(self, dtype: pa.DataType) -> str | None:
        """Return the rule that a type of the column of WATERMARK FOR breaks; None for a time."""
        if types.is_timestamp(dtype):
            return None
        assert self.watermark is not None, "a table with an event time has a watermark"
        column, used = self.watermark.column, {each.name.lower() for each in self.columns}
        name = next(n for n in ("ts", "ts2", "ts3", f"{column}_ts") if n.lower() not in used)
        values = {"STRING": f"TO_TIMESTAMP({column})", "DATE": f"CAST({column} AS TIMESTAMP(3))"}
        kind = flink_name(dtype)
        value = values.get(kind, f"TO_TIMESTAMP_LTZ({column}, 3)")
        rule = f"WATERMARK FOR takes a TIMESTAMP or TIMESTAMP_LTZ, and {column} is {kind}"
        if kind not in values and not types.is_integer(dtype):
            return f"{rule}: name a column of one of these types"
        return f"{rule}: add `{name} AS {value}` to the table, and write WATERMARK FOR {name}"

    @property
    def written_columns(self) -> tuple[Column, ...]:
        """The columns that an INSERT gives, in order."""
        return tuple(each for each in self.columns if each.is_written)

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns that are stored as such: neither computed nor metadata."""
        return pa.schema(
            [
                pa.field(each.name, each.dtype, each.is_nullable)
                for each in self.columns
                if each.dtype is not None and each.metadata is None
            ]
        )


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE.

    Parameters
    ----------
    table : TableDefinition
    like : tuple of str and Token, optional
        The name of the table of LIKE, and where it is.
    excludes : frozenset of str
        The parts of that table that LIKE does not take: ``OPTIONS``, ``GENERATED``,
        ``WATERMARKS``, ``CONSTRAINTS``, ``PARTITIONS``, ``METADATA``.
    query : Excerpt, optional
        The query of CREATE TABLE ... AS, whose results are written.
    if_not_exists : bool
    """

    table: TableDefinition
    like: tuple[str, Token] | None = None
    excludes: frozenset[str] = frozenset()
    query: Excerpt | None = None
    if_not_exists: bool = False


def read_create_table(cursor: Cursor) -> CreateTable:
    """Read what follows CREATE TABLE.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    place = cursor.token
    table = TableDefinition(cursor.path("a table"), place)
    if cursor.accept("("):
        table = _read_columns(cursor, table)
    if cursor.accept("COMMENT"):
        cursor.string("a comment")
    if cursor.accept("DISTRIBUTED"):
        raise cursor.error("DISTRIBUTED is not covered")
    if cursor.accept("PARTITIONED", "BY"):
        table = replace(table, partitions=cursor.names("a column"))
    if cursor.accept("WITH"):
        table = replace(table, options=read_options(cursor))
    like, excludes, query = None, frozenset[str](), None
    if cursor.accept("LIKE"):
        place = cursor.token
        like = cursor.path("a table"), place
        if cursor.accept("("):
            excludes = _read_excluded_parts(cursor)
    elif cursor.accept("AS"):
        query = cursor.until()
    if not cursor.is_at_end:
        raise cursor.error("CREATE TABLE ends here")
    return CreateTable(table, like, excludes, query, if_not_exists)


def read_options(cursor: Cursor) -> dict[str, str]:
    """Read ``('key' = 'value', ...)``."""
    cursor.expect("(")
    options: dict[str, str] = {}
    while not cursor.accept(")"):
        key = cursor.token
        name = cursor.string("the name of an option")
        if name in options:
            raise key.error("this option is given twice")
        options[name] = _read_value(cursor, name)
    return options


def _read_value(cursor: Cursor, option: str) -> str:
    """Read ``= 'value'`` and a comma; errors have no more than the key, as of a password."""
    if not cursor.accept("="):
        raise cursor.token.error("= is missing here", option)
    if cursor.token.kind != "string":
        raise cursor.token.error("the value of an option is a string in single quotes", option)
    value = cursor.next().value
    if not cursor.starts_with(")") and not cursor.accept(","):
        raise cursor.token.error(", or ) is missing here", option)
    return value


def merge_tables(
    one: TableDefinition, other: TableDefinition, excludes: frozenset[str]
) -> TableDefinition:
    """Return a table with the columns of another one before its own: LIKE.

    ``excludes``: see `CreateTable`.
    """
    own = {each.name.lower() for each in one.columns}
    first = tuple(
        each
        for each in other.columns
        if each.name.lower() not in own
        and not ("GENERATED" in excludes and each.expression is not None)
        and not ("METADATA" in excludes and each.metadata is not None)
    )
    watermark = None if "WATERMARKS" in excludes else other.watermark
    key = () if "CONSTRAINTS" in excludes else other.primary_key
    partitions = () if "PARTITIONS" in excludes else other.partitions
    options = {} if "OPTIONS" in excludes else other.options
    return replace(
        one,
        columns=(*first, *one.columns),
        watermark=one.watermark or watermark,
        primary_key=one.primary_key or key,
        partitions=one.partitions or partitions,
        options={**options, **one.options},
    )


def _read_excluded_parts(cursor: Cursor) -> frozenset[str]:
    """Read the options of LIKE; return the parts that it excludes."""
    excluded: set[str] = set()
    while not cursor.accept(")"):
        excludes = cursor.accept("EXCLUDING")
        if not excludes and not cursor.accept("INCLUDING") and not cursor.accept("OVERWRITING"):
            raise cursor.error("LIKE takes INCLUDING, EXCLUDING or OVERWRITING a part of a table")
        part = cursor.token.text.upper()
        if part not in ("ALL", *_PARTS):
            raise cursor.error(f"a part of a table is one of ALL, {', '.join(_PARTS)}")
        cursor.next()
        parts = set(_PARTS if part == "ALL" else (part,))
        excluded = excluded | parts if excludes else excluded - parts
    return frozenset(excluded)


def _read_columns(cursor: Cursor, table: TableDefinition) -> TableDefinition:
    names: set[str] = set()
    while True:
        if cursor.starts_with("WATERMARK", "FOR"):
            table = _read_watermark(cursor, table)
        elif cursor.starts_with("CONSTRAINT") or cursor.starts_with("PRIMARY", "KEY"):
            table = _read_primary_key(cursor, table)
        else:
            column = _read_column(cursor)
            if column.name.lower() in names:
                raise column.place.error("two columns have the same name")
            names.add(column.name.lower())
            table = replace(table, columns=(*table.columns, column))
            if cursor.accept("PRIMARY", "KEY"):
                cursor.expect("NOT", "ENFORCED")
                table = replace(table, primary_key=(column.name,))
        if cursor.accept(")"):
            return table
        cursor.expect(",")


def _read_watermark(cursor: Cursor, table: TableDefinition) -> TableDefinition:
    if table.watermark is not None:
        raise cursor.error("a table has one watermark")
    cursor.expect("WATERMARK", "FOR")
    place = cursor.token
    column = cursor.name("a column")
    cursor.expect("AS")
    return replace(table, watermark=Watermark(column, place, cursor.until(",", ")")))


def _read_primary_key(cursor: Cursor, table: TableDefinition) -> TableDefinition:
    if cursor.accept("CONSTRAINT"):
        cursor.name("a constraint")
    cursor.expect("PRIMARY", "KEY")
    key = cursor.names("a column")
    cursor.expect("NOT", "ENFORCED")
    return replace(table, primary_key=key)


def _read_column(cursor: Cursor) -> Column:
    place = cursor.token
    name = cursor.name("a column")
    if cursor.accept("AS"):
        column = Column(name, place, expression=cursor.until(",", ")", "COMMENT"))
    else:
        dtype, nullable = read_type(cursor)
        column = Column(name, place, dtype, nullable)
        if cursor.accept("METADATA"):
            key = cursor.string("the name of metadata") if cursor.accept("FROM") else name
            column = replace(column, metadata=key, is_virtual=cursor.accept("VIRTUAL"))
    if cursor.accept("COMMENT"):
        cursor.string("a comment")
    return column
