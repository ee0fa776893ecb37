"""Scans of files in a store of objects: the rows of the same files on a disk, or a typed error."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

import gpu_windows as gw
from gpu_windows.errors import ScanError
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.listing import scan_folders
from gpu_windows.scans.splits import Split
from tests.checkpointing.s3_server import S3Server, s3_environment, serve_s3
from tests.scans.trial import read_rows

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serve_s3() as found:
        yield found


@pytest.fixture(autouse=True)
def _environment(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_environment(server.url).items():
        monkeypatch.setenv(name, value)


def put(server: S3Server, bucket: str, key: str, rows: pa.Table, **options: Any) -> None:
    body = io.BytesIO()
    pq.write_table(rows, body, **options)
    server.client.put_object(Bucket=bucket, Key=key, Body=body.getvalue())


def numbers(begin: int, count: int) -> pa.Table:
    values = range(begin, begin + count)
    times = pa.array(values, pa.int64()).cast(pa.timestamp("s", "UTC"))
    return pa.table({"v": values, "ts": times})


def batches_of(url: str) -> Iterator[pa.RecordBatch]:
    scan = scan_folders([url])
    (part,) = (ScannedPart(scan),)
    rows = ScannedRows((part,))
    yield from read_rows(rows, rows.schema.names, 1 << 30).to_batches()


def test_objects_are_listed_as_files_are(server: S3Server) -> None:
    bucket = server.make_bucket()
    names = ["a b", "c%20d", "e+f", "g#h", "ü é", "day=1/x y", "day=2/x+y", "day=%2F/z"]
    for place, name in enumerate(names[:5]):
        put(server, bucket, f"plain/{name}", numbers(10 * place, 3))
    for place, name in enumerate(names[5:]):
        put(server, bucket, f"parts/{name}", numbers(10 * place, 3))
    for hidden in ("plain/_x", "plain/.x", "plain/x._COPYING_"):
        put(server, bucket, hidden, numbers(1_000, 1))
    server.client.put_object(Bucket=bucket, Key="plain/empty", Body=b"")
    found = pa.Table.from_batches(list(batches_of(f"s3://{bucket}/plain")))
    assert sorted(found["v"].to_pylist()) == [10 * n + i for n in range(5) for i in range(3)]
    found = pa.Table.from_batches(list(batches_of(f"s3a://{bucket}/parts/")))
    assert {(row["day"], row["v"] // 10) for row in found.to_pylist()} == {
        ("1", 0),
        ("2", 1),
        ("/", 2),
    }


def test_windows_over_objects(server: S3Server) -> None:
    bucket = server.make_bucket()
    for place in range(3):
        put(server, bucket, f"in/{place}.parquet", numbers(60 * place, 60), row_group_size=7)
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    timed = gw.stream(gw.scan(f"s3://{bucket}/in")).event_time("ts", strategy)
    windows = timed.window_all(gw.TumblingEventTimeWindows.of("90 seconds"))
    found = windows.with_outputs().aggregate(n=gw.count(), top=gw.max("v")).result()
    assert [(row["n"], row["top"]) for row in found.to_pylist()] == [(90, 89), (90, 179)]


def test_an_object_that_is_replaced_while_it_is_read(server: S3Server) -> None:
    """Each range is a request of its own: rows of two versions would be of no file."""
    bucket = server.make_bucket()
    url = f"s3://{bucket}/in"
    rows = numbers(0, 200_000)
    put(server, bucket, "in/x", rows, row_group_size=100_000, compression="none")
    scan = scan_folders([url])
    reading = ScannedRows((ScannedPart(scan),))
    (file,) = scan.files
    batches = reading.parts[0].scan.read(Split(file, 0, file.length), ["v"])
    assert next(batches).num_rows
    changed = pa.table({"v": pa.array(range(5, 200_005)), "ts": rows["ts"]})
    put(server, bucket, "in/x", changed, row_group_size=100_000, compression="none")
    with pytest.raises(ScanError, match="has changed since it was listed"):
        list(batches)


def test_an_object_that_is_gone(server: S3Server) -> None:
    bucket = server.make_bucket()
    put(server, bucket, "in/x", numbers(0, 9))
    scan = scan_folders([f"s3://{bucket}/in"])
    server.client.delete_object(Bucket=bucket, Key="in/x")
    rows = ScannedRows((ScannedPart(scan),))
    with pytest.raises(ScanError, match="is there, and may be read"):
        read_rows(rows, ["v"], 1 << 30)
    with pytest.raises(ScanError, match="at least one file"):
        scan_folders([f"s3://{bucket}/in"])


def test_a_server_that_fails_for_a_moment(server: S3Server) -> None:
    bucket = server.make_bucket()
    put(server, bucket, "in/x", numbers(0, 9))
    failures = iter([503, 503])
    server.faults.status = lambda method, path: next(failures, None)
    try:
        found = pa.Table.from_batches(list(batches_of(f"s3://{bucket}/in")))
    finally:
        server.faults.status = lambda _, __: None
    assert found["v"].to_pylist() == list(range(9))


@pytest.mark.parametrize(
    "log", ["_delta_log/0.json", "metadata/0.metadata.json", ".hoodie/hoodie.properties"]
)
def test_a_table_is_refused(server: S3Server, log: str) -> None:
    bucket = server.make_bucket()
    put(server, bucket, "t/x.parquet", numbers(0, 3))
    put(server, bucket, "table2/x.parquet", numbers(0, 3))
    server.client.put_object(Bucket=bucket, Key=f"t/{log}", Body=b"{}")
    with pytest.raises(ScanError, match="a folder of a table"):
        scan_folders([f"s3://{bucket}/t/"])
    assert len(list(batches_of(f"s3://{bucket}/table2"))) == 1
