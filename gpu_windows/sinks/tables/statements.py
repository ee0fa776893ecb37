"""SQL statements that create, check, append to and merge into tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from gpu_windows.errors import OutputError
from gpu_windows.functions.top_changes import Change
from gpu_windows.spark_glue.columns.names import quote_name, quote_table, quote_text

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame, SparkSession, StructType

#: What Delta says of a path without a table of its own.
_NO_DELTA_TABLE = "DELTA_MISSING_DELTA_TABLE"
_DELETED = Change.DELETE.name.lower()


def exists(session: SparkSession, identifier: str) -> bool:
    """Whether a table exists."""
    from pyspark.errors import AnalysisException

    try:
        return session.catalog.tableExists(quote_table(identifier))
    except AnalysisException as error:
        if error.getCondition() != _NO_DELTA_TABLE:
            raise
        return False


def create(session: SparkSession, identifier: str, schema: StructType, format_: str) -> None:
    """Create a table unless it exists, with nullable columns."""
    if not exists(session, identifier):
        session.createDataFrame([], schema).writeTo(quote_table(identifier)).using(format_).create()


def properties(session: SparkSession, identifier: str) -> Mapping[str, str]:
    """Return the properties of a table."""
    rows = session.sql(f"SHOW TBLPROPERTIES {quote_table(identifier)}").collect()
    return {row[0]: row[1] for row in rows}


def unset_property(session: SparkSession, identifier: str, name: str) -> None:
    """Remove a property of a table, if it is there."""
    table, key = quote_table(identifier), quote_text(name)
    session.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({key})")


def set_property(session: SparkSession, identifier: str, name: str, value: str) -> None:
    """Set a property of a table."""
    table, key = quote_table(identifier), quote_text(name)
    session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({key} = {quote_text(value)})")


def check_columns(session: SparkSession, identifier: str, schema: StructType) -> None:
    """Raise `OutputError` for a table without the columns of an output; it may have more.

    Raises
    ------
    OutputError
        With the columns as SQL has them.
    """
    found = {
        field.name.lower(): field.dataType
        for field in session.table(quote_table(identifier)).schema
    }
    for field in schema:
        there = found.get(field.name.lower())
        if there is None or there.simpleString() != field.dataType.simpleString():
            wanted = ", ".join(f"{quote_name(f.name)} {f.dataType.simpleString()}" for f in schema)
            rule = f"the table {identifier} must have the columns {wanted}"
            value = "no such column" if there is None else there.simpleString()
            raise OutputError(rule, value=value, column=field.name)


def append(rows: DataFrame, identifier: str, options: Mapping[str, str]) -> None:
    """Append rows to a table, by names of columns; its other columns are null."""
    rows.writeTo(quote_table(identifier)).options(**options).append()


def merge(
    rows: DataFrame,
    identifier: str,
    on: Sequence[str],
    *,
    change: str | None,
    within: Iterable[str] = (),
) -> None:
    """Replace the rows of a table that have the same values in some columns, and add the others.

    Parameters
    ----------
    rows : DataFrame
    identifier : str
    on : sequence of str
        Names of the columns that tell rows apart; nulls are the same.
    change : str, optional
        The column that says which rows go. The table has no such column.
    within : iterable of str
        Names of some of ``on`` by whose least and greatest values files of the table are left out.
    """
    names = [quote_name(name) for name in rows.columns if name != change]
    same = [f"t.{quote_name(name)} <=> s.{quote_name(name)}" for name in on]
    goes = None if change is None else f"s.{quote_name(change)} = '{_DELETED}'"
    deleted = "" if goes is None else f"WHEN MATCHED AND {goes} THEN DELETE "
    is_new = "" if goes is None else f"AND NOT {goes} "
    sets = ", ".join(f"t.{name} = s.{name}" for name in names)
    values = ", ".join(f"s.{name}" for name in names)
    conditions = " AND ".join((*same, *_bounds(rows, within)))
    with _view(rows) as view:
        rows.sparkSession.sql(
            f"MERGE INTO {quote_table(identifier)} AS t USING {view} AS s ON {conditions} "
            f"{deleted}"
            f"WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED {is_new}THEN INSERT ({', '.join(names)}) VALUES ({values})"
        )


def _bounds(rows: DataFrame, columns: Iterable[str]) -> list[str]:
    """Return conditions with constants that all rows to be matched in the table meet."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    from gpu_windows.spark_glue.columns.ticks import ticks_of, time_in_sql

    columns = tuple(columns)
    wanted = [(name, call) for name in columns for call in (F.min, F.max)]
    if not wanted:
        return []
    dtypes = {name: rows.schema[name].dataType for name in columns}
    micros = [ticks_of(call(quote_name(name)), dtypes[name]) for name, call in wanted]
    found = rows.agg(*(each.alias(str(i)) for i, each in enumerate(micros))).collect()[0]
    signs = {F.min: ">=", F.max: "<="}
    return [
        f"t.{quote_name(name)} {signs[call]} {time_in_sql(at, dtypes[name])}"
        for (name, call), at in zip(wanted, found, strict=True)
        if at is not None
    ]


@contextmanager
def _view(rows: DataFrame) -> Iterator[str]:
    """Make a DataFrame a temporary view, and yield its name."""
    name = f"gpu_windows_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
