"""PySpark's classes, for annotations only: at run time PySpark may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column as Column
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import Row as Row
    from pyspark.sql import SparkSession as SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress as StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery
    from pyspark.sql.types import DataType as DataType
    from pyspark.sql.types import StructType as StructType
