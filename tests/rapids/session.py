"""A Spark session with the RAPIDS Accelerator in explain-only mode, and what it logs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import gpu_windows as gw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: On Maven Central; the native libraries of CUDA 12 are in it.
ARTIFACT = "com.nvidia:rapids-4-spark_2.13:26.08.1"

#: The class that reports, to a file of its own; the rest of the driver's log as ever.
_LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{{1}}: %m%n
appender.report.type = File
appender.report.name = report
appender.report.fileName = {file}
appender.report.layout.type = PatternLayout
appender.report.layout.pattern = %m%n
logger.report.name = com.nvidia.spark.rapids.GpuOverrides
logger.report.level = warn
logger.report.additivity = false
logger.report.appenderRef.report.ref = report
"""

#: How Ivy finds the artifact on Maven Central: by its name alone, for its POM has a parent that is
#: not there.
_IVY = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


class Report:
    """What the accelerator has said since it was last asked.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    file : pathlib.Path
        Where its logger writes.
    """

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self.spark = spark
        self._file = file

    def of(self, frame: DataFrame) -> tuple[str, int]:
        """Collect a DataFrame; return what is said of its plan, and the number of rows.

        Planning logs before it returns, so nothing is said later than that.
        """
        before = self._file.stat().st_size
        rows = len(frame.collect())
        return self._file.read_bytes()[before:].decode(), rows


@contextmanager
def explaining(
    folder: Path, artifact: str = ARTIFACT, settings: Mapping[str, str] | None = None
) -> Iterator[Report]:
    """Run Spark with the accelerator, which needs neither a GPU nor CUDA to explain.

    Parameters
    ----------
    folder : pathlib.Path
        Empty; for the log.
    artifact : str
        ``group:name:version``; fetched once (1 GB), into the virtual environment.
    settings : mapping of str to str, optional
        More settings of Spark.
    """
    file, logging = folder / "report.log", folder / "log4j2.properties"
    logging.write_text(_LOGGING.format(file=file))
    ivy = folder / "ivysettings.xml"
    ivy.write_text(_IVY)
    builder = gw.configure(SparkSession.builder.master("local[2]").appName("rapids"))
    builder = builder.config(
        map={
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
            "spark.executor.heartbeatInterval": "60s",  # the plugin starts for half a minute
            "spark.jars.ivy": str(Path(sys.prefix, "ivy")),
            "spark.jars.ivySettings": str(ivy),
            "spark.jars.packages": artifact,
            "spark.plugins": "com.nvidia.spark.SQLPlugin",
            "spark.rapids.sql.explain": "ALL",
            "spark.rapids.sql.mode": "explainOnly",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **(settings or {}),
        }
    )
    spark = builder.getOrCreate()
    try:
        yield Report(spark, file)
    finally:
        spark.stop()
