"""The session of these tests, in place of the plain one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyspark
import pytest

from tests.neighbours.session import PYSPARK, can_fetch, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with Kafka's connector, Delta Lake and Iceberg."""
    if not pyspark.__version__.startswith(PYSPARK):
        pytest.skip(f"needs PySpark {PYSPARK}, as `make neighbours` has it")
    if not can_fetch():
        pytest.skip("Maven Central is out of reach, and nothing was fetched from it before")
    found = session(tmp_path_factory.mktemp("neighbours"))
    yield found
    found.stop()
