"""Outputs whose results a query writes to a path itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike

from gpu_windows.commits.write_target import Mode, WriteTarget, WrittenParquet


class WritesParquet(ABC):
    """Outputs that can write their results as Parquet files."""

    def write_parquet(
        self, path: str | PathLike[str], *, mode: Mode = "error", compression: str | None = None
    ) -> WrittenParquet:
        """Run the query of a bounded input and write its results as Parquet files, all or none.

        On Spark the tasks that make results write them, so that none crosses to Java and back;
        where they cannot, Spark writes, and `explain` says why. The local runner writes results as
        they come. Once all files are written, a record at the path commits them: until then, and
        after a failure, readers see the previous write. Read by `gpu_windows.read_output`, or give
        the returned files to any reader of Parquet.

        Parameters
        ----------
        path : str or os.PathLike
            A folder on a disk that the driver and all executors reach by this path, or a URL
            ``s3a://``, ``gs://`` or ``abfss://``. It is for writes of bounded queries only.
        mode : {"error", "overwrite"}
            How to treat an earlier write. The files of a replaced one stay until the next write,
            for current readers.
        compression : str, optional
            Spark's name: none, snappy, gzip, zstd, brotli, lz4_raw. Default: the session's,
            snappy without Spark.

        Returns
        -------
        WrittenParquet
            Files, rows, bytes and counters.

        Raises
        ------
        OutputError
            If the path has results, or something else; if it cannot be written to, or tasks do not
            reach it; if another write starts meanwhile.
        UnsupportedQueryError
            If the input is a stream: that is for `gpu_windows.write_stream`.
        ColumnTypeError
            Without Spark: if a column has a type that Spark would read as another one.
        InvalidOptionError
            If mode or compression is invalid.

        Examples
        --------
        >>> import tempfile
        >>> import gpu_windows as gw
        >>> import pyarrow as pa
        >>> times = pa.array([1, 2], pa.timestamp("us", "UTC"))
        >>> rows = pa.table({"user": ["ann", "ann"], "ts": times})
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> users = gw.stream(rows).event_time("ts", in_order).key_by("user")
        >>> hours = users.window(gw.TumblingEventTimeWindows.of("1 hour"))
        >>> outputs = hours.with_outputs().aggregate(n=gw.count())
        >>> outputs.write_parquet(tempfile.mkdtemp() + "/out").rows
        1
        """
        return self._write_parquet(WriteTarget(path, mode, compression))

    @abstractmethod
    def _write_parquet(self, target: WriteTarget) -> WrittenParquet:
        """Run the query and write its results."""
