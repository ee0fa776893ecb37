"""A streaming query with its checkpoint on S3, a program of its own: Spark is given its jars."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Windows that close by the clock, so that Spark's ticks read commits, too.
CLOCK = "clock"
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>s3</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>{0}</version>
  </dependency></dependencies>
</project>
"""


def find_jars(folder: Path) -> list[str]:
    """Return the jars of Hadoop's S3A file system for this Spark; Maven fetches them once (660 MB).

    Parameters
    ----------
    folder : pathlib.Path
        For what Maven needs.

    Raises
    ------
    RuntimeError
        If Maven cannot fetch them.
    """
    import pyspark

    (client,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    (folder / "pom.xml").write_text(_POM.format(version))
    command = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=path"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Maven cannot fetch hadoop-aws: {done.stdout[-500:]}")
    return (folder / "path").read_text().strip().split(os.pathsep)


def settings_of(endpoint: str, key: str, secret: str, jars: list[str]) -> dict[str, str]:
    """Return what a session is told of an S3 server, as its users do."""
    return {
        "spark.jars": ",".join(jars),
        "spark.hadoop.fs.s3a.access.key": key,
        "spark.hadoop.fs.s3a.secret.key": secret,
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def main() -> None:
    """Run a query over the files that are there, from where its checkpoint says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("query")
    parser.add_argument("folder", type=Path)
    parser.add_argument("checkpoint")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import gpu_windows as gw

    settings: dict[str, Any] = {
        "spark.master": "local[2,4]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "WARN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **json.loads((arguments.folder / "settings").read_text()),
    }
    spark = gw.configure(SparkSession.builder).config(map=settings).getOrCreate()
    run(spark, arguments.query, arguments.folder, arguments.checkpoint)
    spark.stop()


def run(spark: SparkSession, name: str, folder: Path, checkpoint: str) -> None:
    """Run a query to the end of its input; one by the clock until that has closed all windows."""
    import gpu_windows as gw
    from tests.chaos.driver import SCHEMA, outputs_named
    from tests.spark_glue.stream_runs import WATERMARKS

    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = source.parquet(str(folder / "in"))
    if name != CLOCK:
        now = {"availableNow": True}
        outputs = outputs_named(name, rows, rows)
        gw.write_stream(outputs, folder / "out", checkpoint, trigger=now).awaitTermination()
        return
    idle = WATERMARKS.with_idleness("1 second").close_when_idle()
    keyed = gw.stream(rows).event_time("ts", idle).key_by("k")
    windows = keyed.window(gw.TumblingEventTimeWindows.of("10 seconds")).options(shards=2)
    query = gw.write_stream(
        windows.with_outputs().aggregate(n=gw.count()), folder / "out", checkpoint
    )
    try:
        while not query.awaitTermination(1):
            if not (folder / "out").exists():
                continue
            counts = gw.read_output(spark, folder / "out").select("n").toArrow()["n"].to_pylist()
            late = gw.read_output(spark, folder / "out", "late").count()
            if sum(counts) + late == spark.read.parquet(str(folder / "in")).count():
                return
    finally:
        query.stop()


if __name__ == "__main__":
    main()
