"""Columns that a join adds to rows before all else: their names in the stream and in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.tables.inputs import Input


def free_names(table: Input, names: Sequence[str]) -> list[str]:
    """Return names for columns that are added to those of a table: these, or numbered ones."""
    used = {name.lower() for name in table.timed_stream.source.schema.names}
    found: list[str] = []
    for name in names:
        others = (f"{name}{number}" for number in range(len(used) + 1))
        found.append(next(each for each in (name, *others) if each.lower() not in used))
        used.add(found[-1].lower())
    return found


def rename_columns(
    query: exp.Select, alias: str | None, columns: Mapping[str, str], used_names: set[str]
) -> dict[str, str]:
    """Return names in the text to columns; those that the table has, too, need the alias.

    Columns of the query with this alias lose it.

    Parameters
    ----------
    query : sqlglot.exp.Select
        Changed.
    alias : str, optional
        Of what is joined.
    columns : mapping of str to str
        Its names to columns of the stream.
    used_names : set of str
        Names of the table before, in lower case.

    Raises
    ------
    SqlError
        If a column without a table is one of both.
    """
    table = None if alias is None else alias.lower()
    text_columns = {(physical if name.lower() in used_names else name): physical
             for name, physical in columns.items()}  # fmt: skip
    new_names = {name.lower(): (physical if name.lower() in used_names else name)
               for name, physical in columns.items()}  # fmt: skip
    for item in query.expressions:
        if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            item.replace(exp.alias_(item.copy(), exp.to_identifier(item.name, quoted=True)))
    for column in query.find_all(exp.Column):
        if table is not None and column.table.lower() == table and column.name.lower() in new_names:
            column.set("table", None)
            column.set("this", exp.to_identifier(new_names[column.name.lower()], quoted=True))
        elif column.table or column.find_ancestor(exp.Select) is not query:
            continue
        elif column.name.lower() in used_names & new_names.keys():
            rule = "both tables have a column of this name: write the table before it"
            raise sql_error(column, rule, column.name)
    return text_columns
