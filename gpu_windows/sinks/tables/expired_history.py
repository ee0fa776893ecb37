"""Finds out whether a table has a micro-batch after its snapshots expired, or asks the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.errors import OutputError
from gpu_windows.sinks.tables.statements import properties, set_property, unset_property
from gpu_windows.spark_glue.columns.names import quote_table

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

#: Properties of a table for each query: ``NUMBER:SNAPSHOT``, the first micro-batch in its history
#: and the snapshot before it; and, set by users, the last micro-batch in the table.
FIRST, LAST = "gpu_windows.first_micro_batch", "gpu_windows.last_micro_batch"
#: Instead of a snapshot: the table was empty.
_EMPTY = "none"


def is_written_by_record(session: SparkSession, identifier: str, query: str, number: int) -> bool:
    """Whether an Iceberg table without snapshots of a query has one of its micro-batches.

    It does not if its snapshots reach back to before the query's first one, which is recorded in a
    property. Otherwise the user has to answer by a property.

    Parameters
    ----------
    session : SparkSession
    identifier : str
        The table.
    query : str
        Identity of the query's checkpoint and of the output.
    number : int
        The micro-batch that is to be written.

    Raises
    ------
    OutputError
        If it is unknown, with the property to set.
    """
    first, last = f"{FIRST}.{query}", f"{LAST}.{query}"
    found = properties(session, identifier)
    if last in found:
        is_written = _read_answer(found[last], last, number)
        _record_first(session, identifier, first, number)
        unset_property(session, identifier, last)
        return is_written
    if first not in found:
        _record_first(session, identifier, first, number)
        return False
    if _goes_back_to(session, identifier, found[first].partition(":")[2]):
        return False
    rule = (
        f"the history of {identifier} no longer has this query: set the property {last} to "
        f"{number} if the table holds its micro-batch {number}, to {number - 1} if not, and start "
        "it again"
    )
    raise OutputError(rule, value=identifier)


def _read_answer(text: str, name: str, number: int) -> bool:
    """Return whether the user's answer is that the micro-batch is there."""
    if text not in (str(number), str(number - 1)):
        raise OutputError(f"the property {name} is {number} or {number - 1}", value=text)
    return text == str(number)


def _record_first(session: SparkSession, identifier: str, name: str, number: int) -> None:
    """Record the micro-batch from which the history has a query, and the snapshot before it."""
    snapshots = (
        f"SELECT snapshot_id FROM {quote_table(identifier)}.history ORDER BY made_current_at DESC"
    )
    current = session.sql(f"{snapshots} LIMIT 1").collect()
    before = current[0][0] if current else _EMPTY
    set_property(session, identifier, name, f"{number}:{before}")


def _goes_back_to(session: SparkSession, identifier: str, snapshot: str) -> bool:
    """Whether a snapshot, and so every later one, has not expired."""
    snapshots = f"{quote_table(identifier)}.snapshots"
    rows = session.sql(f"SELECT snapshot_id, parent_id FROM {snapshots}").collect()
    if snapshot == _EMPTY:
        return not rows or any(row.parent_id is None for row in rows)
    return any(str(row.snapshot_id) == snapshot for row in rows)
