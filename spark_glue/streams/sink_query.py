"""A query as a sink sees it before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.errors import QueryError
from gpu_windows.planning.own_columns import FIRING
from gpu_windows.runners.sink import Sink, SinkQuery, SinkWriter
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.staged_results import StagedResults

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def open_writer(sink: Sink, query: SinkQuery) -> SinkWriter:
    """Return the writer of a sink.

    Raises
    ------
    QueryError
        If the sink returns something else.
    """
    writer: Any = sink.open(query)
    if not isinstance(writer, SinkWriter):
        rule = f"open of a sink returns a SinkWriter: that of {type(sink).__name__}"
        raise QueryError(rule, value=repr(writer))
    return writer


def make_sink_query(
    outputs: StreamOutputs, checkpoint: str, files: CheckpointFiles, lineage: str
) -> SinkQuery:
    """Return a query as its sink sees it.

    ``files``: of its commits; ``lineage``: the one in them.
    """
    reader = outputs.reader

    def schemas() -> dict[str, StructType]:
        nothing = StagedResults(outputs.session, files, ())
        return {name: reader.output(nothing, name).schema for name in reader.kinds}

    return SinkQuery(
        session=outputs.session,
        checkpoint=checkpoint,
        read_schemas=schemas,
        identity=lineage,
        **facts_for_sinks(outputs),
    )


def facts_for_sinks(outputs: StreamOutputs) -> dict[str, Any]:
    """Return the fields of a `SinkQuery` with the plan of a query and the columns of its results.

    The columns that it lacks identify results, and a selection left them out or changed them.
    """
    query, columns = outputs.plan.query, outputs.unchanged_columns
    keys = tuple(map(query.display_name, query.keys)) if query.has_key else ()
    bounds = tuple(map(query.display_name, query.window_columns))
    firings = (field.name for field in FIRING if field.name in query.result_names)
    change = () if query.change_column is None else (query.change_column,)
    identifying = (*keys, *bounds, *query.number_columns, *firings, *change)
    lacking = () if columns is None else (name for name in identifying if name not in columns)
    return {
        "plan": outputs.plan,
        "key_columns": keys,
        "window_columns": bounds,
        "lacking": tuple(lacking),
    }
