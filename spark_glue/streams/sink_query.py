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
        plan=outputs.plan,
        key_columns=key_columns(outputs),
        window_columns=window_columns(outputs),
        read_schemas=schemas,
        identity=lineage,
        lacking=lacking_columns(outputs),
    )


def key_columns(outputs: StreamOutputs) -> tuple[str, ...]:
    """Return the names of the result columns with the keys."""
    query, public = outputs.plan.query, outputs.reader.public
    return tuple(public.get(name, name) for name in query.keys if query.has_key)


def window_columns(outputs: StreamOutputs) -> tuple[str, ...]:
    """Return the names of the result columns with the bounds of the window."""
    public = outputs.reader.public
    return tuple(public.get(name, name) for name in outputs.plan.query.window_columns)


def lacking_columns(outputs: StreamOutputs) -> tuple[str, ...]:
    """Return the columns that identify results and that a selection left out or changed."""
    columns, query = outputs.unchanged_columns, outputs.plan.query
    if columns is None:
        return ()
    firings = (field.name for field in FIRING if field.name in query.result_names)
    change = () if query.change_column is None else (query.change_column,)
    names = (*key_columns(outputs), *window_columns(outputs))
    identifying = (*names, *query.number_columns, *firings, *change)
    return tuple(name for name in identifying if name not in columns)
