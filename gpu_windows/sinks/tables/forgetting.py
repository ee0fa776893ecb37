"""What was written to a table whose history forgets: known, or asked of people, never guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.errors import OutputError
from gpu_windows.sinks.tables.statements import properties, set_property, unset_property
from gpu_windows.spark_glue.columns.names import quoted_table

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

#: Properties of a table, of each query that writes: ``NUMBER:SNAPSHOT``, the micro-batch from which
#: its history counts and the snapshot before it; and, set by people, the last one that is there.
FIRST, LAST = "gpu_windows.first_micro_batch", "gpu_windows.last_micro_batch"
#: In place of a snapshot: the table was empty.
_EMPTY = "none"


def is_in_forgetful(session: SparkSession, identifier: str, query: str, number: int) -> bool:
    """Whether a micro-batch is in an Iceberg table whose snapshots tell nothing of its query.

    It is not if the snapshots go back to before the query's first one, which the table remembers.
    Else people have to say.

    Parameters
    ----------
    session : SparkSession
    identifier : str
        The table.
    query : str
        What tells the query's checkpoint, and the output, from others.
    number : int
        The micro-batch that is to be written.

    Raises
    ------
    OutputError
        If it may be there or not, with what to do.
    """
    first, last = f"{FIRST}.{query}", f"{LAST}.{query}"
    said = properties(session, identifier)
    if last in said:
        found = _answer(said[last], last, number)
        _remember(session, identifier, first, number)
        unset_property(session, identifier, last)
        return found
    if first not in said:
        _remember(session, identifier, first, number)
        return False
    if _goes_back_to(session, identifier, said[first].partition(":")[2]):
        return False
    rule = (
        f"the history of {identifier} no longer tells of this query: set the property {last} to "
        f"{number} if the table holds its micro-batch {number}, to {number - 1} if not, and start "
        "it again"
    )
    raise OutputError(rule, value=identifier)


def _answer(text: str, name: str, number: int) -> bool:
    """Return whether people say that the micro-batch is there."""
    if text not in (str(number), str(number - 1)):
        raise OutputError(f"the property {name} is {number} or {number - 1}", value=text)
    return text == str(number)


def _remember(session: SparkSession, identifier: str, name: str, number: int) -> None:
    """Note from where on the history tells of a query."""
    snapshots = (
        f"SELECT snapshot_id FROM {quoted_table(identifier)}.history ORDER BY made_current_at DESC"
    )
    current = session.sql(f"{snapshots} LIMIT 1").collect()
    before = current[0][0] if current else _EMPTY
    set_property(session, identifier, name, f"{number}:{before}")


def _goes_back_to(session: SparkSession, identifier: str, snapshot: str) -> bool:
    """Whether a snapshot has not expired, and so no later one; of an empty table, whether none."""
    snapshots = f"{quoted_table(identifier)}.snapshots"
    rows = session.sql(f"SELECT snapshot_id, parent_id FROM {snapshots}").collect()
    if snapshot == _EMPTY:
        return not rows or any(row.parent_id is None for row in rows)
    return any(str(row.snapshot_id) == snapshot for row in rows)
