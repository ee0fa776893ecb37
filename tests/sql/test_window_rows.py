"""Window functions alone: each row with the windows that it is in."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.planning.queries import rows_of
from tests.sql.texts import rows, stream

HOP = "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
WINDOWS = gw.SlidingEventTimeWindows.of("10 seconds", "5 seconds")


@pytest.fixture(scope="module")
def tables() -> dict[str, gw.typing.TimedStream]:
    return {"t": stream(rows(random.Random(3), 60))}


def same(text: str, tables: Any, wanted: pa.Table) -> None:
    asked = gw.sql(text, **tables)
    found = asked.result()
    assert found.column_names == wanted.column_names
    assert rows_of(found) == rows_of(wanted)
    assert len(found)
    said = asked.explain().partition("\n\n")[0]
    again = eval(f"({said})", {"gw": gw, **tables})  # noqa: S307
    assert rows_of(again.result()) == rows_of(wanted)


def test_all_columns_and_some(tables: Any) -> None:
    whole = tables["t"].with_windows(WINDOWS)
    same(f"SELECT * FROM {HOP}", tables, whole.result())
    same(f"SELECT * FROM TABLE({HOP}) AS h", tables, whole.result())
    some = whole.select("window_time", double="v * 2", k="k", where="v > 3").result()
    same(f"SELECT window_time, v * 2 AS double, k FROM {HOP} WHERE v > 3", tables, some)
    bounds = whole.select("window_start", "window_end").result()
    same(f"SELECT window_start, window_end FROM {HOP}", tables, bounds)


def test_conditions_on_rows_come_before_and_on_windows_after(tables: Any) -> None:
    text = f"SELECT k, window_end FROM (SELECT * FROM {HOP}) WHERE v > 0 AND window_end > ts"
    found = gw.sql(text, **tables)
    wanted = tables["t"].where("v > 0").with_windows(WINDOWS).select("k", "window_end")
    same(text, tables, wanted.result())
    said = found.explain()
    assert said.index(".where('`v` > 0')") < said.index(".with_windows(")
    assert "where='`window_end` > `ts`'" in said


def test_rows_of_sessions(tables: Any) -> None:
    session = "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND)"
    gap = gw.EventTimeSessionWindows.with_gap("2 seconds")
    wanted = tables["t"].with_windows(gap, partition_by=["k"])
    same(f"SELECT * FROM {session}", tables, wanted.result())


def test_rows_of_a_query_within(tables: Any) -> None:
    inner = """SELECT k, window_start AS ws, window_time AS at, COUNT(*) AS n
        FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND)
        GROUP BY k, window_start, window_end"""
    outer = "TUMBLE(TABLE q, DESCRIPTOR(at), INTERVAL '10' SECOND)"
    counts = tables["t"].key_by("k").window(gw.TumblingEventTimeWindows.of("2 seconds"))
    stage = gw.stream_results(counts.with_outputs().aggregate(n=gw.count())).with_columns(
        ws="window_start", at="window_time"
    )
    ten = gw.TumblingEventTimeWindows.of("10 seconds")
    wanted = stage.with_windows(ten, columns=["k", "ws", "at", "n"]).result()
    same(f"WITH q AS ({inner}) SELECT * FROM {outer}", tables, wanted)


def test_a_query_around_takes_what_one_within_has_chosen(tables: Any) -> None:
    inner = f"SELECT k AS key, v + 1 AS w, window_end AS e, window_start FROM {HOP} WHERE v > 0"
    rows_of_hop = tables["t"].where("v > 0").with_columns(w="v + 1")
    sums = rows_of_hop.key_by("k").window(WINDOWS).aggregate(s=gw.sum("w"))
    text = f"SELECT key, e, SUM(w) AS s FROM ({inner}) GROUP BY key, e, window_start"
    found = gw.sql(text, **tables).result()
    assert rows_of(found) == rows_of(sums.select(["k", "window_end", "s"]))
    first = rows_of_hop.window_all(WINDOWS).top(
        1, "w", descending=False, columns=["k", "w"], number="r"
    )
    order = "ROW_NUMBER() OVER (PARTITION BY window_start, e ORDER BY w) AS r"
    text = f"WITH q AS ({inner}) SELECT * FROM (SELECT *, {order} FROM q) WHERE r = 1"
    found = gw.sql(text, **tables).result()
    assert found.column_names == ["key", "w", "e", "window_start", "r"]
    wanted = first.select(["k", "w", "window_end", "window_start", "r"])
    assert rows_of(found) == rows_of(wanted)
    alone = gw.sql(f"SELECT * FROM ({inner}) WHERE e > window_start", **tables).result()
    whole = tables["t"].where("v > 0").with_windows(WINDOWS)
    wanted = whole.select("k", "window_end", "window_start", w="v + 1").result()
    wanted = wanted.select(["k", "w", "window_end", "window_start"])
    assert alone.column_names == ["key", "w", "e", "window_start"]
    assert rows_of(alone) == rows_of(wanted)
    with pytest.raises(
        SqlError, match="two columns differ in case alone: rename one with AS, got K"
    ):
        gw.sql(f"SELECT e FROM (SELECT k, v AS K, window_end AS e FROM {HOP})", **tables)
    with pytest.raises(SqlError, match="GROUP BY needs both"):
        gw.sql(f"SELECT e FROM ({inner}) GROUP BY e", **tables)
    with pytest.raises(SqlError, match="allowed in results"):
        gw.sql(f"SELECT x FROM (SELECT window_end > ts AS x FROM {HOP})", **tables)
