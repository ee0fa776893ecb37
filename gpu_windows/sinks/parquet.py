"""A sink that writes Parquet to a path that belongs to one query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from gpu_windows.errors import QueryError
from gpu_windows.runners.sink import Sink, SinkQuery, SinkWriter
from gpu_windows.sinks.placed import check_takes_over

#: The beginning of the URL of a database.
_DATABASE = re.compile(r"jdbc:\w+:|postgres(?:ql)?://|mysql://")


@dataclass(frozen=True)
class ParquetSink(Sink):
    """A sink that writes Parquet; readers see each micro-batch completely and exactly once.

    The files of a micro-batch never change, and count once its record exists, which is written
    last. So read them by `gpu_windows.read_output` and `gpu_windows.read_output_stream`, which use
    the records: files of interrupted micro-batches may be beside them.

    Parameters
    ----------
    path : str or os.PathLike
        Of a folder that Spark's workers reach. It belongs to one query; others are refused.
    takes_over : bool
        Whether a query may take over a path of another checkpoint: its results are added to the
        existing ones, and the other query is refused from then on.

    Raises
    ------
    QueryError
        If it is not a path, such as the URL of a database.

    Examples
    --------
    >>> sink = gw.ParquetSink("/data/minutes")
    >>> sink.path, sink.takes_over
    ('/data/minutes', False)
    """

    path: str | PathLike[str]
    takes_over: bool = False

    def __post_init__(self) -> None:
        path: Any = self.path
        takes_over: Any = self.takes_over
        text = fspath(path) if isinstance(path, str | PathLike) else None
        if not isinstance(text, str) or not text:
            raise QueryError("the path of a sink must be a str or os.PathLike", value=repr(path))
        _check_is_folder(text)
        check_takes_over(takes_over)
        object.__setattr__(self, "path", text.rstrip("/") or text)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return a writer to the path, which is the query's from `SinkWriter.begin` on.

        Raises
        ------
        OutputError
            If the path belongs to another query, or holds columns that this one has not.
        """
        from gpu_windows.spark_glue.files.ownership import check_claim
        from gpu_windows.spark_glue.files.parquet_writer import ParquetWriter

        path = str(self.path)
        return ParquetWriter(path, check_claim(query, path, takes_over=self.takes_over))


def _check_is_folder(path: str) -> None:
    """Refuse the URL of a database, of which only the scheme is shown: it may have a password."""
    database = _DATABASE.match(path)
    if database is None:
        return
    rule = "a sink that is a path is a folder of Parquet: for a database write a function or a Sink"
    if "postgres" in database[0]:
        rule = (
            "a sink that is a path is a folder of Parquet: for PostgreSQL say "
            "gw.PostgresSink('table', 'postgresql://user@host:port/database')"
        )
    raise QueryError(rule, value=f"{database[0]}...")
