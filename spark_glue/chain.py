"""A DataFrame of results of a streaming query is no input of another: outputs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.errors import UnsupportedQueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: In the metadata of the columns of results.
MARK = {"gpu_windows": "result"}


def check_chain(frame: DataFrame) -> None:
    """Refuse results of a streaming query.

    Raises
    ------
    UnsupportedQueryError
    """
    if any(MARK.items() <= field.metadata.items() for field in frame.schema):
        rule = (
            "windows of windows on streams go on from all outputs of a query: "
            "gpu_windows.stream_results(....outputs(...)), or write the results with "
            "gpu_windows.write_stream and read them by read_output_stream"
        )
        raise UnsupportedQueryError(rule, value="results of a streaming query")
