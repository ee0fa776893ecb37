"""Rows as results on Arrow tables: some of their columns, expressions, a condition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import ColumnNotFoundError, NameClashError, QueryError
from tests.examples import examples

IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()
INSTANT = pa.timestamp("us", "UTC")
ROWS = pa.table(
    {
        "a": [3, 1, None],
        "Odd Name": ["x", None, "z"],
        "ts": pa.array([5, None, 7], INSTANT),
        "nested": [[{"k": 1}], None, [{"k": 2}, {"k": None}]],
    }
)


def test_all_columns_come_as_they_are() -> None:
    for stream in (gw.stream(ROWS), gw.stream(ROWS).event_time("ts", IN_ORDER)):
        found = stream.select()
        assert found.result().equals(ROWS.select(found.result().column_names))
        assert found.result().column_names == ROWS.column_names
        assert found.metrics()["rows"].to_pylist() == [3]


def test_a_row_without_a_time_is_a_result_and_none_is_late() -> None:
    outputs = gw.stream(ROWS).event_time("ts", IN_ORDER).select("ts", "a")
    assert outputs.result()["ts"].null_count == 1
    assert outputs.late().schema.names == ROWS.column_names
    assert outputs.rejected().schema.names == [*ROWS.column_names, "rejection_reason"]
    assert len(outputs.late()) == len(outputs.rejected()) == 0


def test_expressions_are_over_the_columns_of_the_rows() -> None:
    """A result may have the name of a column, and others still see the column."""
    outputs = gw.stream(ROWS).select({"a": "a * 10"}, "Odd Name", b="a + 1", where="a > 1")
    assert outputs.result().to_pylist() == [{"a": 30, "Odd Name": "x", "b": 4}]
    swapped = gw.stream(ROWS).select(A="a", ts="ts", a_2="a * 2")
    assert swapped.result().column_names == ["A", "ts", "a_2"]
    assert swapped.result()["a_2"].to_pylist() == [6, 2, None]
    assert swapped.result()["A"].to_pylist() == [3, 1, None]


def test_no_column_may_be_used() -> None:
    one = gw.stream(ROWS).select({"where": "1"}, text="'x'")
    assert one.result().to_pylist() == [{"where": 1, "text": "x"}] * 3
    assert gw.stream(ROWS.slice(0, 0)).select(one="1").result().schema.names == ["one"]


def test_selections_of_results_follow() -> None:
    outputs = gw.stream(ROWS).select("a", double="a * 2").select("double", where="a = 1")
    assert outputs.result().to_pylist() == [{"double": 2}]
    text = outputs.explain()
    assert "a, double = a * 2" in text
    assert "no state" in text


def test_a_reader_is_read_once_and_in_batches() -> None:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(max_chunksize=1))
    outputs = gw.stream(reader).select("a", where="a IS NOT NULL")
    assert outputs.result()["a"].to_pylist() == [3, 1]


def test_windows_over_selected_rows_have_their_time() -> None:
    """The time goes on with the rows, whether it is a result or not."""
    timed = gw.stream(ROWS).event_time("ts", IN_ORDER)
    for outputs in (timed.select("a"), timed.select("ts", "a"), timed.select(a="a")):
        rows = gw.stream_results(outputs).window_all(gw.TumblingEventTimeWindows.of("1 hour"))
        found = rows.with_outputs().aggregate(n=gw.count(), total=gw.sum("a"))
        assert found.result().select(["n", "total"]).to_pylist() == [{"n": 2, "total": 3}]
        assert found.rejected()["rejection_reason"].to_pylist() == ["null_timestamp"]
    with pytest.raises(QueryError, match=r"rows need a time: call event_time.*before select"):
        gw.stream_results(gw.stream(ROWS).select("a"))


@pytest.mark.parametrize(
    ("columns", "expressions", "error", "rule"),
    [
        (["b"], {}, ColumnNotFoundError, "b"),
        (["a"], {"A": "1"}, NameClashError, "different names"),
        (["a", "a"], {}, NameClashError, "different names"),
        ([], {"x": "nothing + 1"}, QueryError, "nothing"),
        ([], {"x": "sum(a)"}, QueryError, "sum"),
        ([3], {}, QueryError, "names one by one"),
        ([], {"__no_key": "1"}, NameClashError, "used inside"),
        (["a"], {"where": "a + 1"}, QueryError, "condition"),
    ],
)
def test_what_is_refused(
    columns: list[Any], expressions: dict[str, str], error: type[Exception], rule: str
) -> None:
    with pytest.raises(error, match=rule):
        gw.stream(ROWS).select(*columns, **expressions)


def test_upsert_and_devices_have_nothing_to_do(tmp_path: Any) -> None:
    outputs = gw.stream(ROWS).select("a")
    assert outputs.write_parquet(tmp_path / "out").rows == 3
    assert not outputs.plan.query.is_upserted
    assert "replace nothing" in outputs.plan.query.upsert_message


VALUES = st.lists(st.tuples(st.none() | st.integers(-9, 9), st.integers(-9, 9)), max_size=20)


@given(rows=VALUES, limit=st.integers(-9, 9), chunk=st.integers(1, 7))
@examples(60)
def test_rows_are_those_of_a_loop(
    rows: list[tuple[int | None, int]], limit: int, chunk: int
) -> None:
    table = pa.table({"x": pa.array([x for x, _ in rows], pa.int64()),
                      "y": pa.array([y for _, y in rows], pa.int64())})  # fmt: skip
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(chunk))
    where = f"x + y > {limit}"
    wanted = [{"y": y, "total": x + y} for x, y in rows if x is not None and x + y > limit]
    for source in (table, reader):
        found = gw.stream(source).select("y", total="x + y", where=where)
        assert found.result().to_pylist() == wanted
