"""Fixtures for pytest: ``from gpu_windows.testing import spark_session`` in a ``conftest.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gpu_windows.spark_glue.session.local_session import QUIET
from gpu_windows.spark_glue.session.settings import session

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

_SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    **QUIET,
}


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """A small Spark session on this machine, in UTC, for all tests of a run.

    Examples
    --------
    In ``conftest.py``: ``from gpu_windows.testing import spark_session  # noqa: F401``.
    """
    spark = session("tests", config=_SETTINGS)
    yield spark
    spark.stop()
