"""Results of batch queries in a store of objects, which needs no jar of Hadoop's: tasks write."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

from benchmarks.session_settings import change_settings
from gpu_windows import errors
from tests.checkpointing.s3_server import KEY, SECRET, S3Server, s3_environment, serve_s3
from tests.spark_glue.write_job import RESULTS, outputs_of, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.thorough


@pytest.fixture
def server() -> Iterator[S3Server]:
    with serve_s3() as found:
        yield found


def read(server: S3Server, bucket: str, files: tuple[str, ...]) -> pa.Table:
    keys = [file.partition(f"{bucket}/")[2] for file in files]
    bodies = (server.client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys)
    return pa.concat_tables(pq.read_table(io.BytesIO(body)) for body in bodies)


@pytest.mark.parametrize("runner", ["spark", "local"])
def test_a_store_has_whole_writes(
    spark: SparkSession, server: S3Server, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    bucket = server.make_bucket()
    settings = {
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": server.url,
        "fs.s3a.endpoint.region": "eu-west-1",
    }
    for name, value in s3_environment(server.url).items():
        if runner == "local":
            monkeypatch.setenv(name, value)
    url = f"s3a://{bucket}/some/out"
    with change_settings(spark, settings if runner == "spark" else {}):
        source: Any = spark.createDataFrame(rows()) if runner == "spark" else rows()
        outputs = outputs_of(source, "/nonexistent")
        for number in range(3):
            mode: Any = "overwrite" if number else "error"
            written = outputs.write_parquet(url, mode=mode)
        with pytest.raises(errors.OutputError, match="holds results"):
            outputs.write_parquet(url)
        server.faults.has_conditions = False  # a store that replaces what it is told to create
        with pytest.raises(errors.OutputError, match="a path of results must support creating"):
            outputs.write_parquet(url, mode="overwrite")
    assert written.path == url
    assert read(server, bucket, written.files).num_rows == written.rows == RESULTS
    generations = {key.split("/")[3][:8] for key in server.keys(bucket)}
    assert generations == {"00000001", "00000002"}
    assert written.written_by == ("tasks" if runner == "spark" else "process")


def test_a_store_that_is_not_there(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    with pytest.raises(errors.OutputError, match="the path cannot be used"):
        outputs_of(rows(), "/nonexistent").write_parquet("s3://no-such-bucket-here/out")
