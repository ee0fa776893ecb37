"""Writes few results as Parquet files on a disk of this machine, as Spark would, without a job.

A Spark job that writes one file takes longer than everything else that is done for a few results.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark.sql import types as spark

from gpu_windows.commits.parquet_files import ParquetEncoding
from gpu_windows.commits.write_target import CODECS
from gpu_windows.spark_glue.files.local_marker_files import make_folder, sync_folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings of Spark's own files, and their values where nothing is set.
_CODEC, _TIMES = "spark.sql.parquet.compression.codec", "spark.sql.parquet.outputTimestampType"
_LEGACY_FORMAT = "spark.sql.parquet.writeLegacyFormat"
_CALENDARS = (
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.int96RebaseModeInWrite",
)
#: Says that files are to be encrypted.
_CRYPTO = "parquet.crypto.factory.class"
_INT96, _MICROS = "INT96", "TIMESTAMP_MICROS"
#: Spark's metadata of a file: its version, which implies the calendar, and the schema.
_VERSION, _SCHEMA = "org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata"
#: Types that both writers store in the same way.
_PLAIN = (
    spark.BooleanType,
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.FloatType,
    spark.DoubleType,
    spark.BinaryType,
    spark.DateType,
    spark.DecimalType,
)


@dataclass(frozen=True)
class LocalParquet:
    """Writes Parquet files as a session would.

    Parameters
    ----------
    codec : str
        PyArrow's name of the compression.
    int96 : bool
        Whether timestamps are 96 bits long.
    version : str
        Of Spark.
    """

    codec: str
    int96: bool
    version: str

    @classmethod
    def of_session(cls, session: SparkSession, compression: str | None = None) -> Self | None:
        """Return the writer for the settings of a session; None if only Spark can write such files.

        ``compression``: Spark's name of a compression that overrides the session's.
        """
        conf = session.conf
        codec = (compression or conf.get(_CODEC) or "").lower()
        times = (conf.get(_TIMES) or "").upper()
        is_legacy = (conf.get(_LEGACY_FORMAT) or "").lower() == "true" or any(
            (conf.get(each) or "").upper() == "LEGACY" for each in _CALENDARS
        )
        encrypts = conf.get(_CRYPTO, None) or conf.get(f"spark.hadoop.{_CRYPTO}", None)
        if codec not in CODECS or times not in (_INT96, _MICROS) or encrypts or is_legacy:
            return None
        return cls(CODECS[codec], times == _INT96, session.version)

    def encoding(self, schema: spark.StructType) -> ParquetEncoding:
        """Return how files of a schema of Spark's are encoded."""
        notes = {_VERSION: self.version, _SCHEMA: schema.json()}
        return ParquetEncoding(self.codec, self.int96, notes)

    def takes(self, schema: spark.StructType) -> bool:
        """Whether all columns are written as Spark would write them."""
        return all(self._takes(field.dataType) for field in schema.fields)

    def _takes(self, dtype: spark.DataType) -> bool:
        if isinstance(dtype, spark.ArrayType):
            return self._takes(dtype.elementType)
        if isinstance(dtype, spark.StructType):
            return self.takes(dtype)
        if type(dtype) is spark.StringType:  # Spark stores a length or a collation for others
            return dtype == spark.StringType()
        if isinstance(dtype, spark.TimestampNTZType):
            return not self.int96  # 96 bits are a timestamp with a zone to Spark
        return isinstance(dtype, (*_PLAIN, spark.TimestampType))

    def write(
        self, table: pa.Table, schema: spark.StructType, folder: Path, files: int = 1
    ) -> None:
        """Write a table into a new folder and sync it to disk.

        Parameters
        ----------
        table : pyarrow.Table
        schema : pyspark.sql.types.StructType
            Spark's, of the same columns.
        folder : pathlib.Path
        files : int
            Number of files, which have the same number of rows and are written concurrently.

        Raises
        ------
        OSError
            If writing fails; files in the folder are useless then.
        """
        parents = make_folder(folder)
        rows = max(-(-len(table) // files), 1)
        parts = [table.slice(begin, rows) for begin in range(0, max(len(table), 1), rows)]
        with ThreadPoolExecutor(len(parts)) as threads:
            paths = (folder / f"part-{number:05}.parquet" for number in count())
            deque(threads.map(partial(self._write_file, schema), parts, paths), maxlen=0)
        sync_folders([folder, *parents])

    def _write_file(self, schema: spark.StructType, table: pa.Table, path: Path) -> None:
        with path.open("xb") as opened:
            opened.writelines(self.encoding(schema).encode([table], table.schema))
            opened.flush()
            os.fsync(opened.fileno())
