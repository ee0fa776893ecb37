"""``python -m tests.docs.on_spark PAGE``: run a page with a Spark session, as a program of its own.

The names of files in it are relative, and Spark takes them from where its process began.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gpu_windows as gw
from tests.docs import setups
from tests.docs.pages import ROOT
from tests.docs.running import run

_SMALL = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "ERROR",
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main(name: str) -> None:
    """Run a page in the current folder, which it may fill."""
    spark = gw.session(config=_SMALL)
    try:
        run(ROOT / name, setups.ON_SPARK[name](spark, Path()))
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
