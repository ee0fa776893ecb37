"""Where the rows of what a user has come from."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from gpu_windows.datastream.scan import Scan
from gpu_windows.errors import QueryError
from gpu_windows.runners.arrow_input import arrow_table, gives_arrow
from gpu_windows.runners.arrow_source import source_of_arrow
from gpu_windows.runners.cudf_source import CudfSource, is_cudf
from gpu_windows.runners.outputs import Source
from gpu_windows.runners.row_stream import RowStream

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame


def source_of(source: Any) -> Source:
    """Return where the rows of what a user has come from.

    Raises
    ------
    QueryError
        If it is no table.
    """
    if isinstance(source, Scan):
        return source.source
    if isinstance(source, pa.Table):
        return source_of_arrow(source)
    if isinstance(source, pa.RecordBatchReader):
        return source_of_arrow(RowStream.of(source))
    if is_data_frame(source):
        from gpu_windows.spark_glue.batch.outputs import BatchSource
        from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput
        from gpu_windows.spark_glue.streams.outputs import StreamSource

        kind = StreamSource if source.isStreaming else BatchSource
        return kind(source, inputs=(StreamInput(source),))
    if is_cudf(source):
        return CudfSource(source)
    if gives_arrow(source):
        return source_of_arrow(arrow_table(source))
    rule = (
        "stream takes a Spark DataFrame, a pyarrow.Table or a pyarrow.RecordBatchReader, or a "
        "table that gives Arrow, as those of pandas, Polars and DuckDB do (collect() a lazy one)"
    )
    remedies = (f"; of this {how}" for kinds, how in _BECOMES if isinstance(source, kinds))
    raise QueryError(rule + next(remedies, ""), value=type(source).__name__)


def is_data_frame(source: object) -> TypeGuard[DataFrame]:
    """Whether something is a DataFrame of Spark, classic or Connect."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


#: How a table is made of what is none.
_BECOMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (list, "pyarrow.Table.from_pylist(rows) makes one"),
    (dict, "pyarrow.table(columns) makes one"),
    ((str, PathLike), "gpu_windows.scan(path), spark.read or pyarrow.parquet.read_table makes one"),
)
