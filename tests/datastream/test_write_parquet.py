"""Results of the local runner at a path: what `result` gives, as it comes, all or nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows import errors

IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()
SECOND = 1_000_000
ROWS = pa.table(
    {
        "key": pa.array(["a", "b", None, "a"] * 50),
        "ts": pa.array([n * SECOND for n in range(200)], pa.timestamp("us", "UTC")),
        "i": pa.array(range(200), pa.int64()),
        "d": pa.array([Decimal(n) / 4 for n in range(200)], pa.decimal128(9, 2)),
    }
)


def windowed(rows: Any = ROWS) -> gw.typing.WindowedStream:
    keyed = gw.stream(rows).event_time("ts", IN_ORDER).key_by("key")
    return keyed.window(gw.SlidingEventTimeWindows.of("10 s", "5 s"))


def outputs_of(rows: Any = ROWS) -> gw.typing.Outputs:
    return (
        windowed(rows).with_outputs().aggregate(n=gw.count(), total=gw.sum("d"), last=gw.max("ts"))
    )


def read(written: gw.typing.WrittenParquet) -> pa.Table:
    return pq.read_table(list(written.files))


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def test_the_file_has_the_results(tmp_path: Path) -> None:
    outputs = outputs_of()
    written = outputs.write_parquet(tmp_path / "out")
    result = outputs.result()
    found = read(written)
    assert in_order(found).equals(in_order(result))
    assert (written.rows, written.written_by) == (len(result), "process")
    assert written.bytes == sum(Path(file).stat().st_size for file in written.files)
    counters = outputs.metrics().drop_columns(["user"]).to_pylist()[0]
    assert written.counters is not None
    assert {n: written.counters[n] for n in ("rows", "fired")} == {
        n: counters[n] for n in ("rows", "fired")
    }
    group = pq.read_metadata(written.files[0]).row_group(0)
    assert group.column(0).compression == "SNAPPY"
    assert {group.column(n).physical_type for n in (1, 2, 5)} == {"INT64"}


def test_results_that_are_there_already_are_written(tmp_path: Path) -> None:
    outputs = outputs_of()
    result = outputs.result()
    written = outputs.write_parquet(tmp_path / "out", compression="zstd")
    assert read(written).equals(result)
    assert pq.read_metadata(written.files[0]).row_group(0).column(0).compression == "ZSTD"


def test_selected_ranked_and_no_results(tmp_path: Path) -> None:
    chosen = outputs_of().select("key", half="n / 2", where="n > 3")
    written = chosen.write_parquet(tmp_path / "chosen")
    assert in_order(read(written)).equals(in_order(chosen.result()))
    assert 0 < written.rows < outputs_of().result().num_rows
    top = windowed().top_keys(1, "total").with_outputs().aggregate(total=gw.sum("i"))
    assert in_order(read(top.write_parquet(tmp_path / "top"))).equals(in_order(top.result()))
    nothing = outputs_of(ROWS.slice(0, 0)).write_parquet(tmp_path / "nothing")
    assert (nothing.files, nothing.rows, nothing.bytes) == ((), 0, 0)
    with pytest.raises(errors.OutputError, match="holds results"):
        outputs_of().write_parquet(tmp_path / "nothing")


def test_rows_that_are_read_once(tmp_path: Path) -> None:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(max_chunksize=17))
    outputs = outputs_of(reader)
    written = outputs.write_parquet(tmp_path / "out")
    assert in_order(read(written)).equals(in_order(outputs_of().result()))
    with pytest.raises(errors.ReadTwiceError):
        outputs.result()


def test_scanned_files(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    written = outputs_of(gw.scan(tmp_path / "rows.parquet")).write_parquet(tmp_path / "out")
    assert in_order(read(written)).equals(in_order(outputs_of().result()))
    again = gw.scan(list(written.files))
    assert again.schema.names == outputs_of().result().schema.names


class Failing(gw.functions.ProcessWindowFunction):
    """Raises at one of its windows."""

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterator[dict[str, Any]]:
        assert isinstance(context.window, gw.typing.TimeWindow)
        if context.window.start >= 100 * SECOND:
            raise ValueError("no more")
        yield {"n": len(rows)}


def test_a_function_that_fails_leaves_the_write_before(tmp_path: Path) -> None:
    first = outputs_of().write_parquet(tmp_path / "out")
    failing = (
        windowed().with_outputs().process(Failing(), ("i",), output=pa.schema([("n", pa.int64())]))
    )
    with pytest.raises(errors.FunctionFailedError, match="no more"):
        failing.write_parquet(tmp_path / "out", mode="overwrite")
    assert [each.name for each in (tmp_path / "out/commits").iterdir()] == ["00000000"]
    assert [str(file) for file in (tmp_path / "out/result").rglob("*.parquet")] == [*first.files]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        rows = ROWS.append_column("text", pa.array([os.urandom(2_000).hex() for _ in range(200)]))
        outputs = windowed(rows).with_outputs().aggregate(text=gw.collect_list("text"))
        with pytest.raises(errors.OutputError, match=r"No space left.*part-00000"):
            outputs.write_parquet(tmp_path / "out")
        assert list((tmp_path / "out").rglob("*.parquet")) == []
        written = outputs_of().write_parquet(tmp_path / "out")  # which is small
        assert read(written).num_rows == written.rows
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_types_that_spark_lacks(tmp_path: Path) -> None:
    lengths = pa.array([n * SECOND for n in range(200)], pa.duration("us"))
    keyed = gw.stream(ROWS.append_column("length", lengths)).event_time("ts", IN_ORDER)
    outputs = keyed.key_by("length").window(gw.TumblingEventTimeWindows.of("10 s"))
    with pytest.raises(errors.ColumnTypeError, match="'length'"):
        outputs.with_outputs().aggregate(n=gw.count()).write_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()
