"""Files that this process writes of few results are to readers what Spark would have written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from benchmarks.session_settings import change_settings
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.files.local_parquet import LocalParquet
from tests.lanes import quick
from tests.spark_glue.stream_runs import batches, files, outputs_of, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CODEC = "spark.sql.parquet.compression.codec"
TIMES = "spark.sql.parquet.outputTimestampType"
COLUMNS = (
    "yes boolean, b tinyint, s smallint, i int, l bigint, f float, d double, text string, "
    "raw binary, day date, ts timestamp, small decimal(9,2), large decimal(38,6), "
    "items array<int>, nested struct<at timestamp, texts array<string>>"
)
MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 10, 1, 2, 3, 4, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]


def table(spark: SparkSession) -> tuple[pa.Table, Any]:
    """Every type with its extremes, and a row of nulls; Spark's schema of it."""
    schema = spark.createDataFrame([], COLUMNS).schema
    rows: list[tuple[Any, ...]] = [(None,) * len(schema)]
    for at in MOMENTS:
        most = Decimal("99999999999999999999999999999999.999999")
        rows.append(
            (
                at.year > 2000,
                *(-128, -(2**15), -(2**31), -(2**63)),
                *(float("nan"), -0.0, "ä\0\U0001f600", b"\0\xff", date(at.year, 10, 10)),
                *(at, Decimal("-9999999.99"), most, [1, None, 3]),
                {"at": at, "texts": ["x", None]},
            )
        )
    columns = {
        f.name: pa.array([row[place] for row in rows], f.type)
        for place, f in enumerate(to_arrow_schema(schema))
    }
    return pa.table(columns), schema


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS"])
def test_spark_reads_what_it_would_have_written(
    spark: SparkSession, tmp_path: Path, times: str
) -> None:
    rows, schema = table(spark)
    with change_settings(
        spark, {TIMES: times, "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}
    ):
        local = LocalParquet.of_session(spark)
        assert local is not None
        assert local.takes(schema)
        local.write(rows, schema, tmp_path / "here")
        frame = spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.option("compression", "snappy").parquet(str(tmp_path / "spark"))
        here = spark.read.parquet(str(tmp_path / "here"))  # by the schema in the file
        there = spark.read.parquet(str(tmp_path / "spark"))
        assert here.schema == there.schema
        given = spark.createDataFrame(rows, schema)
        for some, all_ in ((here, given), (given, here), (there, given)):
            assert some.exceptAll(all_).count() == 0
    (file,), (other,) = (list((tmp_path / name).glob("*.parquet")) for name in ("here", "spark"))
    physical = [types_of(each) for each in (file, other)]
    assert physical[0] == physical[1]
    assert [p.name for p in (tmp_path / "here").iterdir()] == ["part-00000.parquet"]


def types_of(file: Path) -> list[tuple[str, str, str]]:
    """Path, physical type and compression of each column but decimals, which differ in width."""
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    return [
        (c.path_in_schema, c.physical_type, c.compression)
        for c in columns
        if c.path_in_schema not in ("small", "large")
    ]


@pytest.mark.parametrize(
    ("codec", "found"),
    [
        ("none", "UNCOMPRESSED"),
        ("uncompressed", "UNCOMPRESSED"),
        ("gzip", "GZIP"),
        ("zstd", "ZSTD"),
        ("lz4_raw", "LZ4"),
        ("lz4", None),
        ("lzo", None),
    ],
)
def test_the_sessions_compression(
    spark: SparkSession, tmp_path: Path, codec: str, found: str | None
) -> None:
    with change_settings(spark, {CODEC: codec}):
        local = LocalParquet.of_session(spark)
    assert (local is None) == (found is None)
    if local is not None:
        rows, schema = table(spark)
        local.write(rows, schema, tmp_path / "here")
        group = pq.read_metadata(tmp_path / "here/part-00000.parquet").row_group(0)
        assert group.column(0).compression == found
        assert spark.read.parquet(str(tmp_path / "here")).count() == len(rows)


@pytest.mark.parametrize(
    "settings",
    [
        {TIMES: "TIMESTAMP_MILLIS"},
        {"spark.sql.parquet.writeLegacyFormat": "true"},
        {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"},
        {"spark.sql.parquet.int96RebaseModeInWrite": "LEGACY"},
        {"parquet.crypto.factory.class": "x"},
        {"spark.hadoop.parquet.crypto.factory.class": "x"},
    ],
)
def test_other_formats_are_sparks(spark: SparkSession, settings: dict[str, str]) -> None:
    with change_settings(spark, settings):
        assert LocalParquet.of_session(spark) is None
    assert LocalParquet.of_session(spark) is not None


@pytest.mark.parametrize(
    ("column", "takes"),
    [
        ("x string", True),
        ("x string collate UTF8_LCASE", False),
        ("x varchar(3)", False),
        ("x map<string, int>", False),
        ("x interval day to second", False),
        ("x array<timestamp_ntz>", False),
        ("x variant", False),
        ("x struct<y: array<decimal(10,2)>>", True),
    ],
)
def test_types_of_which_spark_notes_more(spark: SparkSession, column: str, takes: bool) -> None:
    from pyspark.sql.types import StructType

    local = LocalParquet("SNAPPY", int96=True, version=spark.version)
    schema = StructType.fromDDL(column)
    assert isinstance(schema, StructType)
    assert local.takes(schema) is takes


def test_times_without_a_zone(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([datetime(1500, 2, 28), None], pa.timestamp("us"))})
    schema = spark.createDataFrame([], "x timestamp_ntz").schema
    with change_settings(spark, {TIMES: "TIMESTAMP_MICROS"}):
        local = LocalParquet.of_session(spark)
    assert local is not None
    assert local.takes(schema)
    local.write(rows, schema, tmp_path / "here")
    found = spark.read.parquet(str(tmp_path / "here"))
    assert found.schema == schema
    assert [row.x for row in found.collect()] == rows["x"].to_pylist()


@pytest.mark.parametrize(
    ("rows", "files", "each"), [(0, 1, [0]), (0, 3, [0]), (5, 2, [3, 2]), (2, 3, [1, 1])]
)
def test_several_files_at_once(
    spark: SparkSession, tmp_path: Path, rows: int, files: int, each: list[int]
) -> None:
    table = pa.table({"x": pa.array(range(rows), pa.int64())})
    local = LocalParquet("SNAPPY", int96=True, version=spark.version)
    local.write(table, spark.createDataFrame([], "x bigint").schema, tmp_path / "here", files)
    written = sorted((tmp_path / "here").iterdir())
    assert [file.name for file in written] == [f"part-{n:05}.parquet" for n in range(len(each))]
    assert [pq.read_metadata(file).num_rows for file in written] == each
    assert pa.concat_tables(map(pq.read_table, written)).equals(table)


@pytest.mark.thorough
def test_a_disk_that_only_spark_may_write_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt leaves a part of a file; the results are those of a query that had none."""
    tries = []

    def full(local: LocalParquet, rows: pa.Table, schema: Any, folder: Path, files: int) -> None:
        del local, rows, schema, files
        folder.mkdir(parents=True)
        (folder / "part-00000.parquet").write_bytes(b"PAR1")
        tries.append(folder)
        raise OSError(28, "No space left on device")

    files(tmp_path / "in", batches(3, 200))
    outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    found = []
    for name in ("usual", "full"):
        if name == "full":
            monkeypatch.setattr(LocalParquet, "write", full)
        query = gw.write_stream(
            outputs, tmp_path / name, tmp_path / f"{name}-state", trigger={"availableNow": True}
        )
        query.awaitTermination()
        found.append(sorted(map(str, gw.read_output(spark, tmp_path / name).collect())))
    assert len(tries) == 1
    assert found[0] == found[1] != []


@pytest.mark.parametrize("chosen", quick(["all", "some", "computed"], nightly=["all", "some"]))
def test_few_results_and_many_are_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    """Results, also selected ones, late rows: written from here and by tasks of Spark.

    What expressions compute may be more than this process holds.
    """
    from gpu_windows.spark_glue.streams import staged_results

    files(tmp_path / "in", batches(3, 400))
    found = []
    for name, most in (("few", 1 << 20), ("many", 0)):
        for bound in ("_MAX_DRIVER_BYTES", "_MAX_TABLE_BYTES"):
            monkeypatch.setattr(staged_results, bound, most)
        outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
        if chosen == "some":
            outputs = outputs.select("k", "window_start", where="n > 1")
        if chosen == "computed":
            outputs = outputs.select("k", "window_start", twice="n * 2", where="n > 1")
        gw.write_stream(
            outputs, tmp_path / name, tmp_path / f"{name}-state", trigger={"availableNow": True}
        ).awaitTermination()
        files_ = list((tmp_path / name).glob("result/*/*.parquet"))
        assert all(file.name == "part-00000.parquet" for file in files_) is (
            most > 0 and chosen != "computed"
        )
        read = [gw.read_output(spark, tmp_path / name, each) for each in ("result", "late")]
        found.append([(f.schema, sorted(map(str, f.collect()))) for f in read])
    assert found[0] == found[1]
    assert all(rows for _, rows in found[0])
