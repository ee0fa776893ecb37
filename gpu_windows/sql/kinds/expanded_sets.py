"""GROUPING SETS of aggregates that need all values: a row for each set, as Flink's planner does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.definitions import DEFINITIONS, Lower
from gpu_windows.expressions.sql_text import to_spark_sql
from gpu_windows.planning.kinds.grouping import GroupingSets
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.tables.inputs import result_column
from gpu_windows.vocabulary.windows import SlicedAssigner


@dataclass(frozen=True)
class ExpandedRows:
    """Rows of which each comes once for each grouping set.

    Parameters
    ----------
    stream : ApiCall of TimedStream
    keys : mapping of str to str
        The columns of keys, by the columns that they are made of: null in sets without them.
    set_id : str
        The column with the `GROUPING_ID` of the set, another key.
    """

    stream: ApiCall
    keys: dict[str, str]
    set_id: str


def combines_sets(assigner: ApiCall, aggregates: Iterable[ApiCall]) -> bool:
    """Whether windows of all sets can be combined from the partials of all keys' windows."""
    return isinstance(assigner.value, SlicedAssigner) and all(
        isinstance(each.value, Aggregate)
        and not each.value.is_distinct
        and DEFINITIONS[each.value.function].lower is not Lower.LIST
        for each in aggregates
    )


def expand_rows(
    stream: ApiCall, keys: Sequence[str], sets: Sequence[Sequence[str]]
) -> ExpandedRows:
    """Return the rows of a stream, each once for each grouping set.

    Raises
    ------
    QueryError
        If a set comes twice.
    """
    ids = [GroupingSets.id_of(each, len(keys)) for each in GroupingSets.of(keys, sets).sets]
    used = {name.lower() for name in stream.value.source.schema.names}
    numbers = range(len(used) + len(keys) + 2)
    free = iter([name for i in numbers if (name := f"sql_set_{i}") not in used])
    list_name, set_id = next(free), next(free)
    array = ", ".join(f"CAST({each} AS BIGINT)" for each in ids)
    stream = stream.call("with_columns", **{list_name: f"ARRAY({array})"})
    stream = stream.call("explode", list_name, set_id)
    names = {key: next(free) for key in keys}
    columns = {}
    for key, name in names.items():
        having = [str(i) for i, some in zip(ids, sets, strict=True) if key in some]
        within = f"`{set_id}` IN ({', '.join(having)})"
        columns[name] = f"CASE WHEN {within} THEN {to_spark_sql(result_column(key))} END"
    stream = stream.call("with_columns", **columns) if columns else stream
    return ExpandedRows(stream, names, set_id)
