"""Sinks: a table that keeps the latest firing of every window; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.spark_glue.settings import SETTINGS
from tests.spark_glue.streams import ASSIGNERS, batches, expected, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def continuous(source: Any) -> gw.WindowedStream:
    """Windows that fire every 15 s of event time and at their end."""
    trigger = gw.ContinuousEventTimeTrigger.of("15 seconds")
    return windowed(source, ASSIGNERS["continuous"]).trigger(trigger)


def test_upsert(spark: SparkSession, tmp_path: Path) -> None:
    """The last firing of every window is left, whatever came before it in its micro-batch."""
    tables = batches(3, 200)
    files(tmp_path / "in", tables)
    made = continuous(streamed(spark, tmp_path / "in")).with_firing_columns()
    outputs = made.outputs(n=gw.count(), total=gw.sum("v"))
    table: dict[Any, Any] = {}
    merged: list[int] = []
    late: list[int] = []

    def merge(rows: DataFrame, on: tuple[str, ...], number: int) -> None:
        assert on == ("k", "window_start", "window_end")
        found = {tuple(row[name] for name in on): row for row in rows.collect()}
        assert len(found) == rows.count()
        table.update(found)
        merged.append(number)

    gw.write_stream(
        outputs,
        gw.upsert(merge, late=lambda rows, _: late.append(rows.count())),
        tmp_path / "state",
        trigger={"availableNow": True},
    ).awaitTermination()
    results, given_back = expected(outputs, tables)
    wanted: dict[Any, tuple[int, int, float]] = {}
    for row in results.to_pylist():
        at = row["k"], row["window_start"]
        wanted[at] = max(wanted.get(at, (-1, 0, 0.0)), (row["firing"], row["n"], row["total"]))
    got = {
        (row.k, int(row.window_start.timestamp() * 1e6)): (row.firing, row.n, row.total)
        for row in table.values()
    }
    assert got == wanted
    assert len(results) > len(wanted) > 20
    assert sum(late) == len(given_back) > 0
    assert merged == sorted(merged)


def test_upsert_needs_to_tell_firings_apart(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 5))
    outputs = continuous(streamed(spark, tmp_path / "in")).outputs(n=gw.count())
    with pytest.raises(errors.QueryError, match=r"with_firing_columns\(\), got n"):
        gw.write_stream(outputs, gw.upsert(lambda *_: None), str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sink": None}, "a sink is a path, or a function of results, late rows, number, got None"),
        ({"sink": 5}, "a sink is a path.*got 5"),
        ({"sink": lambda results, late: None}, r"rows, number, got <lambda>\(results, late\)"),
        ({"trigger": "availableNow"}, "a trigger is a mapping.*got 'availableNow'"),
    ],
)
def test_what_cannot_be_written_to_is_refused_before_anything_is_there(
    spark: SparkSession, tmp_path: Path, given: dict[str, Any], text: str
) -> None:
    files(tmp_path / "in", batches(1, 5))
    outputs = continuous(streamed(spark, tmp_path / "in")).outputs(n=gw.count())
    state = tmp_path / "state"
    with pytest.raises(errors.QueryError, match=text):
        gw.write_stream(outputs, checkpoint=state, **{"sink": tmp_path / "out", **given})
    with pytest.raises(TypeError):  # Spark's
        gw.write_stream(outputs, tmp_path / "out", state, trigger={"whenever": True})
    assert not state.exists()


def test_an_upsert_takes_functions() -> None:
    upsert: Any = gw.upsert
    with pytest.raises(errors.QueryError, match=r"results, columns, number, got <lambda>\(rows\)"):
        upsert(lambda rows: None)
    with pytest.raises(errors.QueryError, match=r"function of late rows, number, got 'late'"):
        upsert(min, late="late")


def test_a_session_with_our_settings(spark: SparkSession) -> None:
    ours = {"spark.sql.session.timeZone": "Asia/Kathmandu", "spark.sql.ansi.enabled": "false"}
    before = {name: spark.conf.get(name, None) for name in (*ours, *SETTINGS)}
    zone, ansi = ours
    found = gw.session(time_zone=ours[zone], config={ansi: ours[ansi]})
    try:
        assert {name: found.conf.get(name) for name in before} == {**ours, **SETTINGS}
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
