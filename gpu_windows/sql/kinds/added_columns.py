"""Columns that a join adds to rows before all else: their names in the stream and in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.tables.inputs import Input, free_name


def free_names(table: Input, names: Sequence[str]) -> list[str]:
    """Return names for columns that are added to those of a table: these, or numbered ones."""
    own = table.timed_stream.source.schema.names
    found: list[str] = []
    for name in names:
        found.append(free_name(name, (*own, *found), separator="", first=0))
    return found


def add_columns(
    query: exp.Select, table: Input, stream: ApiCall, columns: Mapping[str, str], alias: str | None
) -> Input:
    """Return a table with more columns, which have other names in the query now.

    Parameters
    ----------
    query : sqlglot.exp.Select
        Changed: columns with the alias lose it.
    table : Input
    stream : ApiCall of TimedStream
        The rows of the table with the columns.
    columns : mapping of str to str
        The columns of the stream by their names in the query.
    alias : str, optional
        Of what is joined: columns of a name that the table has, too, need it.

    Raises
    ------
    SqlError
        If a column without a table is one of both.
    """
    used_names = {name.lower() for name in table.all_names}
    texts = {
        name: column if name.lower() in used_names else name for name, column in columns.items()
    }
    new_names = {name.lower(): text for name, text in texts.items()}
    for item in query.expressions:
        if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            item.replace(exp.alias_(item.copy(), exp.to_identifier(item.name, quoted=True)))
    for column in query.find_all(exp.Column):
        name = column.name.lower()
        if alias is not None and column.table.lower() == alias.lower() and name in new_names:
            column.set("table", None)
            column.set("this", exp.to_identifier(new_names[name], quoted=True))
        elif column.table or column.find_ancestor(exp.Select) is not query:
            continue
        elif name in used_names & new_names.keys():
            rule = "both tables have a column of this name: write the table before it"
            raise sql_error(column, rule, column.name)
    added = {texts[name]: column for name, column in columns.items()}
    return replace(table, stream=stream, columns={**table.columns_by_name, **added})
