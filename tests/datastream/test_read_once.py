"""Sources that can be read once: a second reading is an error, never an empty input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, ReadTwiceError, SqlError

ROWS = pa.table(
    {
        "k": ["a"] * 6,
        "ts": pa.array([s * 1_000_000 for s in range(6)]).cast(pa.timestamp("us", "UTC")),
        "v": range(6),
    }
)
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
COUNT = (
    "SELECT COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
    "GROUP BY window_start, window_end"
)


def timed(source: Any) -> gw.typing.TimedStream:
    return gw.stream(source).event_time("ts", MONOTONOUS)


def count(rows: gw.typing.TimedStream) -> int:
    table = rows.key_by("k").window(MINUTE).aggregate(n=gw.count())
    return sum(table["n"].to_pylist())


def ipc_reader() -> pa.RecordBatchReader:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return pa.ipc.open_stream(sink.getvalue())


#: What queries may do to a reader's rows before they are read.
STEPS: dict[str, Callable[[gw.typing.TimedStream], gw.typing.TimedStream]] = {
    "as they are": lambda rows: rows,
    "where": lambda rows: rows.where("v >= 0"),
    "with_columns": lambda rows: rows.with_columns(w="v + 1"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("make", [ROWS.to_reader, ipc_reader], ids=["to_reader", "ipc"])
def test_a_second_query_of_a_stream(make: Callable[[], pa.RecordBatchReader], step: str) -> None:
    rows = STEPS[step](timed(make()))
    assert count(rows) == 6
    with pytest.raises(ReadTwiceError, match=r"gw\.stream\(reader\.read_all\(\)\)"):
        count(rows)


def test_a_second_stream_of_a_reader() -> None:
    reader = ROWS.to_reader(2)
    assert count(timed(reader)) == 6
    with pytest.raises(ReadTwiceError, match="a reader is read once"):
        count(timed(reader))


def test_coarse_times_are_converted_once() -> None:
    at = ROWS.schema.get_field_index("ts")
    coarse = ROWS.set_column(at, "ts", ROWS["ts"].cast(pa.timestamp("s", "UTC")))
    rows = timed(coarse.to_reader())
    assert count(rows) == 6
    with pytest.raises(ReadTwiceError):
        count(rows)


BUILDS: dict[str, Callable[[gw.typing.TimedStream, gw.typing.TimedStream], object]] = {
    "union": lambda left, right: left.union(right),
    "interval join": lambda left, right: (
        left.key_by("k")
        .interval_join(right.key_by("k"))
        .between("0 s", "0 s")
        .with_outputs()
        .select(["v"], ["v"])
    ),
    "window join": lambda left, right: (
        left.key_by("k").join(right.key_by("k")).window(MINUTE).with_outputs().select(["v"], ["v"])
    ),
    "temporal join": lambda left, right: (
        left.key_by("k").temporal_join(right.key_by("k")).with_outputs().select(["v"], ["v"])
    ),
    "union of unions": lambda left, right: left.union(timed(ROWS)).union(right),
    "filtered": lambda left, right: left.union(gw.stream(ROWS).event_time("ts", MONOTONOUS), right),
}


@pytest.mark.parametrize("name", BUILDS)
def test_a_query_of_a_reader_with_itself_is_refused_when_it_is_built(name: str) -> None:
    rows = timed(ROWS.to_reader())
    with pytest.raises(ReadTwiceError, match="two inputs of a query read one reader"):
        BUILDS[name](rows, rows)
    assert count(rows) == 6  # nothing was read
    reader = ROWS.to_reader()
    with pytest.raises(ReadTwiceError, match="two inputs of a query read one reader"):
        BUILDS[name](timed(reader), timed(reader).where("v > 2"))


@pytest.mark.parametrize("name", BUILDS)
def test_two_readers_and_tables_give_the_same(name: str) -> None:
    def answer(left: Any, right: Any) -> Any:
        built: Any = BUILDS[name](timed(left), timed(right))
        return count(built) if isinstance(built, gw.typing.TimedStream) else built.result()

    wanted = answer(ROWS, ROWS)
    assert wanted if isinstance(wanted, int) else wanted.num_rows
    assert answer(ROWS.to_reader(), ROWS.to_reader()) == wanted
    assert answer(ROWS.to_reader(), ROWS) == wanted


def test_outputs_of_one_query_read_once() -> None:
    outputs = (
        timed(ROWS.to_reader()).key_by("k").window(MINUTE).with_outputs().aggregate(n=gw.count())
    )
    assert "tumbling" in outputs.explain().lower()
    assert outputs.result()["n"].to_pylist() == [6]
    assert outputs.result()["n"].to_pylist() == [6]
    assert outputs.rejected().num_rows == 0
    assert outputs.metrics().num_rows == 1


def test_a_query_that_failed_halfway_is_not_run_on_the_rest() -> None:
    def fail(one: Any, _: Any) -> Any:
        raise ValueError(one)

    rows = timed(ROWS.to_reader(2))
    outputs = rows.key_by("k").window(MINUTE).reduce
    with pytest.raises(FunctionFailedError):
        outputs(fail, ["v"])
    with pytest.raises(ReadTwiceError):
        count(rows)


def test_two_statements() -> None:
    rows = timed(ROWS.to_reader())
    first, second = gw.sql(COUNT, t=rows), gw.sql(COUNT, t=rows)
    assert first.result()["n"].to_pylist() == [6]
    assert first.result()["n"].to_pylist() == [6]  # it has run
    with pytest.raises(ReadTwiceError):
        second.result()


WINDOWS = COUNT.replace("SELECT", "SELECT window_start, window_end,")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT f.k FROM t AS f JOIN #t AS g ON f.k = g.k "
        "AND f.ts BETWEEN g.ts AND g.ts + INTERVAL '1' HOUR",
        f"WITH p AS ({WINDOWS}), q AS ({WINDOWS.replace('TABLE t', 'TABLE #t')}) SELECT p.n "
        "FROM p JOIN q ON p.window_start = q.window_start AND p.window_end = q.window_end",
    ],
    ids=["a join", "two queries of WITH"],
)
def test_a_statement_that_reads_it_twice_says_where(text: str) -> None:
    rows = timed(ROWS.to_reader())
    with pytest.raises(SqlError, match="a reader is read once") as caught:
        gw.sql(text.replace("#", ""), t=rows)
    assert caught.value.position == text.index("#") + 1
    assert count(rows) == 6


class Once:
    """A stream of another library: its rows are given once, then none."""

    def __init__(self, table: pa.Table) -> None:
        self._reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


def test_a_stream_of_another_library_is_read_once() -> None:
    table = pa.table({"k": ["a", "b"], "v": [1, 2]})
    once = Once(table)
    first = gw.stream(once)
    with pytest.raises(ReadTwiceError, match="Once that gave rows before and gives none now"):
        gw.stream(once)
    for _ in range(2):  # its rows are a table here
        assert len(first.key_by("k").count_window(1).collect_lists("v")) == 2
    empty = Once(table.slice(0, 0))
    assert gw.stream(empty) is not None
    assert gw.stream(empty) is not None
    assert gw.stream(Once(table)) is not None
