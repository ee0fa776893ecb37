"""SQL of tables: they are made, looked at, added to and merged into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from gpu_windows.errors import OutputError
from gpu_windows.functions.top_changes import Change
from gpu_windows.spark_glue.columns.names import quoted, quoted_table, quoted_text

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame, SparkSession, StructType

#: What Delta says of a path without a table of its own.
_NO_DELTA_TABLE = "DELTA_MISSING_DELTA_TABLE"
_DELETED = Change.DELETE.name.lower()


def exists(session: SparkSession, identifier: str) -> bool:
    """Whether there is a table."""
    from pyspark.errors import AnalysisException

    try:
        return session.catalog.tableExists(quoted_table(identifier))
    except AnalysisException as error:
        if error.getCondition() != _NO_DELTA_TABLE:
            raise
        return False


def create(session: SparkSession, identifier: str, schema: StructType, format_: str) -> None:
    """Make a table, unless there is one; all its columns may be null."""
    if not exists(session, identifier):
        session.createDataFrame([], schema).writeTo(quoted_table(identifier)).using(
            format_
        ).create()


def properties(session: SparkSession, identifier: str) -> Mapping[str, str]:
    """Return the properties of a table."""
    rows = session.sql(f"SHOW TBLPROPERTIES {quoted_table(identifier)}").collect()
    return {row[0]: row[1] for row in rows}


def unset_property(session: SparkSession, identifier: str, name: str) -> None:
    """Remove a property of a table, if it is there."""
    table, key = quoted_table(identifier), quoted_text(name)
    session.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({key})")


def set_property(session: SparkSession, identifier: str, name: str, value: str) -> None:
    """Set a property of a table."""
    table, key = quoted_table(identifier), quoted_text(name)
    session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({key} = {quoted_text(value)})")


def check_columns(session: SparkSession, identifier: str, schema: StructType) -> None:
    """Refuse a table without the columns of an output; it may have more of them.

    Raises
    ------
    OutputError
        With the columns as SQL has them.
    """
    found = {
        field.name.lower(): field.dataType
        for field in session.table(quoted_table(identifier)).schema
    }
    for field in schema:
        there = found.get(field.name.lower())
        if there is None or there.simpleString() != field.dataType.simpleString():
            wanted = ", ".join(f"{quoted(f.name)} {f.dataType.simpleString()}" for f in schema)
            rule = f"the table {identifier} must have the columns {wanted}"
            value = "no such column" if there is None else there.simpleString()
            raise OutputError(rule, value=value, column=field.name)


def append(rows: DataFrame, identifier: str, options: Mapping[str, str]) -> None:
    """Add rows to a table, by the names of their columns; its other columns are null."""
    rows.writeTo(quoted_table(identifier)).options(**options).append()


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
    names = [quoted(name) for name in rows.columns if name != change]
    same = [f"t.{quoted(name)} <=> s.{quoted(name)}" for name in on]
    goes = None if change is None else f"s.{quoted(change)} = '{_DELETED}'"
    deleted = "" if goes is None else f"WHEN MATCHED AND {goes} THEN DELETE "
    is_new = "" if goes is None else f"AND NOT {goes} "
    sets = ", ".join(f"t.{name} = s.{name}" for name in names)
    values = ", ".join(f"s.{name}" for name in names)
    conditions = " AND ".join((*same, *_bounds(rows, within)))
    with _view(rows) as view:
        rows.sparkSession.sql(
            f"MERGE INTO {quoted_table(identifier)} AS t USING {view} AS s ON {conditions} "
            f"{deleted}"
            f"WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED {is_new}THEN INSERT ({', '.join(names)}) VALUES ({values})"
        )


def _bounds(rows: DataFrame, columns: Iterable[str]) -> list[str]:
    """Return conditions that rows of a table with the same values meet, in words of constants."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    wanted = [(name, call) for name in columns for call in (F.min, F.max)]
    if not wanted:
        return []
    micros = [F.unix_micros(call(quoted(name))) for name, call in wanted]
    found = rows.agg(*(each.alias(str(i)) for i, each in enumerate(micros))).collect()[0]
    signs = {F.min: ">=", F.max: "<="}
    return [
        f"t.{quoted(name)} {signs[call]} timestamp_micros({at}L)"
        for (name, call), at in zip(wanted, found, strict=True)
        if at is not None
    ]


@contextmanager
def _view(rows: DataFrame) -> Iterator[str]:
    """Give a DataFrame a name in SQL for a while."""
    name = f"gpu_windows_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
