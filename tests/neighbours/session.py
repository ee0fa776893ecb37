"""A Spark session with Kafka's connector, Delta Lake and Iceberg, which Maven Central has."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import gpu_windows as gw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The PySpark that all three support, and versions that run on it.
PYSPARK = "4.1"
PACKAGES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
#: What the connector needs, of an earlier release: the 4.1.1 of the connector itself fails a query
#: that does a micro-batch again (SPARK-57438).
_TOKENS = "spark-token-provider-kafka-0-10_2.13"
_CENTRAL = "https://repo.maven.apache.org/maven2/org/apache/spark"
#: Iceberg's catalog: names of its tables begin so.
CATALOG = "lake"

#: Where what was fetched is.
_IVY_FOLDER = Path(sys.prefix, "ivy")
_IVY = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def can_fetch() -> bool:
    """Whether the packages can be had: they were fetched before, or Maven Central answers."""
    if _IVY_FOLDER.exists():
        return True
    try:
        with urlopen(f"{_CENTRAL}/maven-metadata.xml", timeout=20):
            return True
    except HTTPError:  # it answers
        return True
    except OSError:
        return False


def session(folder: Path, **settings: str) -> SparkSession:
    """Return a new session; what it fetches stays in the virtual environment.

    Parameters
    ----------
    folder : pathlib.Path
        For the tables of Iceberg's catalog, and Spark's own files.
    **settings
        More settings of Spark, with ``__`` for dots.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # not python3 from PATH
    folder.mkdir(parents=True, exist_ok=True)
    ivy = folder / "ivysettings.xml"
    ivy.write_text(_IVY)
    extensions = (
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    found: dict[str, bool | float | int | str | None] = {
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.jars": f"{_CENTRAL}/{_TOKENS}/4.1.1/{_TOKENS}-4.1.1.jar",
        "spark.jars.excludes": f"org.apache.spark:{_TOKENS}",
        "spark.jars.ivy": str(_IVY_FOLDER),
        "spark.jars.ivySettings": str(ivy),
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.log.level": "ERROR",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(folder / "iceberg"),
        "spark.sql.extensions": ",".join(extensions),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    builder = SparkSession.builder.master("local[2,4]").appName("neighbours")
    return gw.configure(builder).config(map=found).getOrCreate()
