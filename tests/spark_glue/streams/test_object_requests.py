"""What a micro-batch costs in a store of objects: requests, and time where they take long."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")
pytest.importorskip("pyspark")

from gpu_windows.checkpointing.object_files import ObjectFiles
from tests.checkpointing.s3_server import Faults, S3Server, serve_s3
from tests.spark_glue.drivers import Driver, Rows, Writer
from tests.spark_glue.streams.test_engine import check

pytestmark = pytest.mark.thorough
#: Of a micro-batch of one shard with results, after the first ones: by the driver; by tasks, whose
#: state was written on the same machine.
DRIVER = {"GET offsets": 1, "GET commits": 1, "PUT commits": 1, "LIST": 2, "GET results": 1,
          "PUT delivered": 1, "DELETE": 2}  # fmt: skip
WRITTEN = {"PUT state": 1, "PUT results": 1}
#: Seconds by which every answer is late.
DELAY_S = 0.02


@pytest.fixture
def server() -> Iterator[S3Server]:
    with serve_s3() as found:
        yield found


def test_requests_of_a_micro_batch(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    bucket, asked = server.make_bucket(), Counter[str]()
    driver = Driver(ObjectFiles(f"s3://{bucket}/checkpoint", server.options), Writer())
    driver.run_to(3)
    driver.plan(3, 4_000)

    def count(method: str, path: str) -> None:
        folder = path.removeprefix(f"/{bucket}/checkpoint/gpu_windows/").partition("/")[0]
        if path.startswith(f"/{bucket}/checkpoint/offsets/"):
            folder = "offsets"
        is_folder = path == f"/{bucket}"
        asked[{"GET": "LIST", "POST": "DELETE"}[method] if is_folder else f"{method} {folder}"] += 1

    server.faults = Faults(status=count, delay_s=DELAY_S)
    began = time.perf_counter()
    driver.engine(Rows(4), 3)
    took = time.perf_counter() - began
    server.faults = Faults()
    driver.note("commits/3", "v1")
    check(driver.files, driver.writer)
    reads = asked.pop("GET state", 0) + asked.pop("HEAD state", 0)
    assert asked == {**DRIVER, **WRITTEN}
    assert reads <= 4
    assert took >= DELAY_S * asked.total()
    assert took < 2 * DELAY_S * (asked.total() + reads) + 1
