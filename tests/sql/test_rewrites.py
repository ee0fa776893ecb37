"""Statements that are rewritten: as Flink answered them, on Arrow tables and on Spark."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files
from tests.sql.rewrites import ask, of_flink, of_ours, scenarios, tables
from tests.sql.texts import rows, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = scenarios("bounded_rewrites")
ON_SPARK = [*RECORDED]
STREAMED = scenarios("rewrites")
#: Whose rows do not wait for the end of windows, that of the last micro-batch neither.
AT_ONCE = ("names_of_expressions", "names_twice", "names_without_as_twice")
ON_STREAMS = [name for name in STREAMED if name not in AT_ONCE]
_FEW = ("interval_left_where", "names_without_as")
_MANY = [name for name in ON_STREAMS if name not in _FEW]


@pytest.mark.parametrize("name", RECORDED)
def test_on_arrow_tables_it_is_what_flink_gives(name: str) -> None:
    scenario = json.loads(RECORDED[name].read_text())
    assert scenario["expected"]
    assert of_ours(ask(scenario).result()) == of_flink(scenario)


@pytest.mark.parametrize("name", quick(ON_SPARK, *ON_SPARK[::19], nightly=ON_SPARK[1::2]))
def test_on_a_batch_it_is_what_flink_gives(spark: SparkSession, name: str) -> None:
    scenario = json.loads(RECORDED[name].read_text())
    found = ask(scenario, spark.createDataFrame).result().toArrow()
    assert of_ours(found) == of_flink(scenario)


@pytest.mark.parametrize("name", quick(ON_STREAMS, _FEW[0], nightly=_MANY))
def test_on_a_stream_it_is_what_flink_gives(spark: SparkSession, tmp_path: Path, name: str) -> None:
    scenario = json.loads(STREAMED[name].read_text())
    streams = {
        each: _stream(spark, tmp_path / each, rows) for each, rows in tables(scenario).items()
    }
    asked = gw.sql(scenario["sql"], **streams).arrival_order("idx").options(shards=2, device="cpu")
    out, once = tmp_path / "out", {"availableNow": True}
    query = gw.write_stream(asked.outputs(), out, tmp_path / "state", trigger=once)
    assert query.awaitTermination(120)
    assert of_ours(gw.read_output(spark, out).toArrow()) == of_flink(scenario)


def _stream(spark: SparkSession, folder: Path, rows: pa.Table) -> Any:
    """Return rows as a stream of three micro-batches, the last of which ends all windows."""
    time = rows.schema.get_field_index("rt")
    end = rows.slice(0, 1).set_column(time, "rt", pa.array([10**13]).cast(rows.field("rt").type))
    files(folder, [rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2), end])
    reader = spark.readStream.schema(spark.createDataFrame(rows).schema)
    source = reader.option("maxFilesPerTrigger", 1).parquet(str(folder))
    waits = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 hour")
    return gw.stream(source).event_time("rt", waits)


HALF = "(SELECT * FROM TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '5' SECOND){1}) {0}"
LATE = " WHERE window_start > TIMESTAMP '1970-01-01 00:00:10'"


@pytest.mark.parametrize(
    ("how", "side", "runs"),
    [
        *(("JOIN", side, True) for side in "tu"),
        *(("LEFT JOIN", side, side == "t") for side in "tu"),
        *(("RIGHT JOIN", side, side == "u") for side in "tu"),
        *(("FULL JOIN", side, False) for side in "tu"),
        *(("LEFT SEMI JOIN", side, True) for side in "tu"),
        *(("LEFT ANTI JOIN", side, side == "t") for side in "tu"),
    ],
)
def test_a_side_of_a_join_is_filtered_by_its_windows(how: str, side: str, runs: bool) -> None:
    rng = random.Random(3)
    streams = {name: stream(rows(rng, 100)) for name in "tu"}
    left, right = (HALF.format(name, LATE if name == side else "") for name in "tu")
    same = "t.k = u.k AND t.window_start = u.window_start AND t.window_end = u.window_end"
    item = "u.n" if how == "RIGHT JOIN" else "t.n"
    text = f"SELECT {item}, {{}}.window_start AS s FROM {left} {how} {right} ON {same}"
    text = text.format(item[0])
    if not runs:
        with pytest.raises(SqlError, match="side of this join cannot be filtered by its windows"):
            gw.sql(text, **streams)
        return
    found = gw.sql(text, **streams).result()
    whole = gw.sql(text.replace(LATE, ""), **streams).result()
    late = [
        row for row in whole.to_pylist() if row["s"] > datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC)
    ]
    assert late
    assert rows_of(found) == rows_of(pa.Table.from_pylist(late, whole.schema))


def test_a_difference_of_times_of_windows() -> None:
    text = f"SELECT n, window_end - window_time AS d FROM {HALF.format('t', '')}"
    found = gw.sql(text, t=stream(rows(random.Random(1), 20))).result()
    assert {*found["d"].to_pylist()} == {timedelta(microseconds=1)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("JSON_OBJECT('b' VALUE k, 'a' VALUE v)", '{"a":1,"b":"x"}'),
        ("JSON_OBJECT('z' VALUE JSON_OBJECT('d' VALUE 1, 'c' VALUE 2))", '{"z":{"c":2,"d":1}}'),
        ("JSON_OBJECT('\ufffd' VALUE 1, '\U0001f600' VALUE 2)", '{"\U0001f600":2,"\ufffd":1}'),
        ("JSON_OBJECT('a' VALUE 1, 'a' VALUE NULLIF(v, 1))", '{"a":null}'),
        ("JSON_OBJECT('a' VALUE 5, 'a' VALUE NULLIF(v, 1) ABSENT ON NULL)", '{"a":5}'),
    ],
)
def test_keys_of_json_objects_are_sorted_as_by_flink(text: str, value: str) -> None:
    rows = gw.stream(pa.table({"k": ["x"], "v": [1]}))
    assert gw.sql(f"SELECT {text} AS j FROM t", t=rows).result().to_pydict() == {"j": [value]}


def test_queries_of_with_are_joined_like_subqueries() -> None:
    """Their columns are their own: both have one of the same name, written without a table."""
    rng = random.Random(5)
    streams = {name: stream(rows(rng, 60)) for name in "tu"}
    bodies = {"w": "(SELECT k, n, ts FROM t)", "x": "(SELECT k, n, ts FROM u)"}
    query = (
        "SELECT w.k, COUNT(*) AS c, MAX(x.n) AS m FROM {w} w JOIN {x} x ON w.k = x.k "
        "AND x.ts BETWEEN w.ts AND w.ts + INTERVAL '5' SECOND "
        "GROUP BY w.k, TUMBLE(x.ts, INTERVAL '10' SECOND)"
    )
    named = "WITH " + ", ".join(f"{name} AS {body}" for name, body in bodies.items())
    found = gw.sql(f"{named} {query.format(w='w', x='x').replace('w w', 'w').replace('x x', 'x')}",
                   **streams).result()  # fmt: skip
    assert len(found)
    assert rows_of(found) == rows_of(gw.sql(query.format(**bodies), **streams).result())
