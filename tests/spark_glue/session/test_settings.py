"""The settings with which rows cross to Python quickly, and what the planner makes of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import pytest

import gpu_windows as gw
from benchmarks.session_settings import change_settings
from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.planning.plan import PartialsBy
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.session.settings import (
    _BATCH_BYTES,
    ARROW_BYTES,
    ARROW_ROWS,
    SETTINGS,
    byte_count,
    crosses_quickly,
    fragment_bytes,
)
from gpu_windows.spark_glue.session.sockets import UNIX_SOCKETS, socket_settings
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.planning.queries import query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGGREGATES = {"n": gw.count(), "total": gw.sum("i")}
TUMBLING, SLIDING = TumblingEventTimeWindows(10), SlidingEventTimeWindows(10, 5)


@pytest.mark.parametrize(
    ("shown", "size"),
    [
        ("67108864b", 2**26),
        ("64MB", 2**26),
        (" 64m ", 2**26),
        ("64 MiB", 0),
        ("2147483647", 2**31 - 1),
        (None, 0),
        ("much", 0),
    ],
)
def test_sizes(shown: str | None, size: int) -> None:
    assert byte_count(shown) == size
    quick = crosses_quickly({ARROW_BYTES: shown, ARROW_ROWS: "131072"})
    assert quick is (size == 2**31 - 1)


@pytest.mark.parametrize(
    ("rows", "quick"),
    [("131072", True), ("0", True), ("-1", True), ("10000", False), ("1000", False), (None, False)],
)
def test_batches_of_few_rows_are_slow_too(rows: str | None, quick: bool) -> None:
    conf = {ARROW_BYTES: "2147483647", ARROW_ROWS: rows}
    assert crosses_quickly(conf) is quick


@pytest.mark.parametrize(
    ("rows", "bytes_", "size"),
    [
        ("4096", "2147483647", 1 << 16),
        ("10000", "67108864b", (1 << 28) // 10_000),
        ("131072", "2147483647", 1 << 12),
        ("10", "2147483647", 1 << 24),
        ("0", "64MB", 1 << 16),
        ("1000000", "64MB", 1 << 16),
    ],
)
def test_fragments_that_cross_together_are_bounded(rows: str, bytes_: str, size: int) -> None:
    assert fragment_bytes({ARROW_ROWS: rows, ARROW_BYTES: bytes_}) == size
    assert min(int(rows) or 1, (64 << 20) // size) * size <= 2 * _BATCH_BYTES


def test_fragments_where_nothing_is_set(spark: SparkSession) -> None:
    assert fragment_bytes(spark.conf) == (1 << 28) // 10_000
    with change_settings(spark, {ARROW_BYTES: "2147483647", ARROW_ROWS: "4096"}):
        assert fragment_bytes(spark.conf) == 1 << 16


@pytest.mark.parametrize("rows", ["0", "-1", "200000"])
def test_nothing_bounds_what_crosses_together(rows: str) -> None:
    with pytest.raises(
        UnsupportedQueryError, match=r"in 1\.\.131072: it bounds the rows that are sent"
    ):
        fragment_bytes({ARROW_ROWS: rows, ARROW_BYTES: "2147483647"})


def test_configure_takes_a_builder_or_a_session() -> None:
    for other in (None, object()):
        with pytest.raises(QueryError, match=r"a SparkSession, or SparkSession\.builder, got"):
            gw.configure(other)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("assigner", "quickly", "by", "reason"),
    [
        (TUMBLING, False, PartialsBy.SPARK, "nothing crosses"),
        (TUMBLING, True, PartialsBy.SPARK, "nothing crosses"),
        (SLIDING, False, PartialsBy.SPARK, "configure, so only partials cross"),
        (SLIDING, True, PartialsBy.KERNELS, "rows cross quickly"),
        (gw.CalendarWindows.of("1 day"), False, PartialsBy.SPARK, "so only partials cross"),
        (gw.CalendarWindows.of("1 day"), True, PartialsBy.KERNELS, "rows cross quickly"),
        (EventTimeSessionWindows(5), False, PartialsBy.KERNELS, "configure"),
    ],
)
def test_the_planner_minds_them(
    assigner: WindowAssigner, quickly: bool, by: PartialsBy, reason: str
) -> None:
    made = query(assigner, aggregates=AGGREGATES)
    planned = plan(made, bounded=True, spark=True, crosses_quickly=quickly)
    assert planned.partials_by is by
    assert reason in planned.reasons[-1]


def test_nothing_is_said_of_crossing_where_it_is_quick() -> None:
    made = query(EventTimeSessionWindows(5), options=Options(device="cpu"))
    for planned in (
        plan(made, bounded=True, spark=True, crosses_quickly=True),
        plan(made, bounded=True),
    ):
        assert not any("configure" in reason for reason in planned.reasons)


def test_a_builder_gets_all_of_them() -> None:
    class Builder:
        def config(self, *, map: dict[str, str]) -> dict[str, str]:  # noqa: A002 - as Spark has it
            return map

    assert gw.configure(Builder()) == SETTINGS  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("settings", "environment", "platform", "found"),
    [
        ({"spark.master": "local[2]"}, {}, "linux", {UNIX_SOCKETS: "true"}),
        ({"spark.master": "local[2]"}, {}, "darwin", {}),
        ({"spark.master": "spark://there:7077"}, {}, "linux", {}),
        ({}, {}, "linux", {}),  # a master may yet be named
        ({"spark.master": "local", "spark.plugins": "x"}, {}, "linux", {}),
        ({"spark.master": "local", "spark.python.daemon.module": "x"}, {}, "linux", {}),
        ({"spark.master": "local", "spark.remote": "sc://there"}, {}, "linux", {}),
        ({"spark.master": "local", "spark.python.udf.pipelined.enabled": "true"}, {}, "linux", {}),
        ({"spark.master": "local"}, {"SPARK_CONF_DIR": "/etc/spark"}, "linux", {}),
        ({"spark.master": "local"}, {"PYSPARK_GATEWAY_PORT": "1"}, "linux", {}),
    ],
)
def test_unix_sockets_where_the_workers_are_sparks_and_here(
    settings: dict[str, str],
    environment: dict[str, str],
    platform: str,
    found: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert socket_settings(settings) == found


@pytest.mark.parametrize(("gpu", "sockets"), [(False, {UNIX_SOCKETS: "true"}), (2, {})])
def test_a_builder_with_gpus_keeps_tcp(
    gpu: int, sockets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Builder:
        _options: ClassVar = {"spark.master": "local[2]"}

        def config(self, *, map: dict[str, str]) -> dict[str, str]:  # noqa: A002 - as Spark has it
            return map

    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # so that it is not set for others
    monkeypatch.setattr(sys, "platform", "linux")
    found: object = gw.configure(Builder(), gpu=gpu)  # type: ignore[call-overload]
    assert isinstance(found, dict)
    assert {name: value for name, value in found.items() if name == UNIX_SOCKETS} == sockets


@pytest.mark.smoke
def test_a_session_has_them_or_not(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id AS i", "'a' AS key")
    keyed = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windowed = keyed.key_by("key").window(gw.SlidingEventTimeWindows.of("20 s", "10 s"))
    found = []
    for bytes_ in ("64m", SETTINGS[ARROW_BYTES]):
        with change_settings(spark, {ARROW_BYTES: bytes_, ARROW_ROWS: "131072"}):
            outputs = windowed.with_outputs().aggregate(**AGGREGATES)
            rows_ = outputs.result().orderBy("window_start").collect()
            found.append((outputs.plan.partials_by, rows_))
    assert [by for by, _ in found] == [PartialsBy.SPARK, PartialsBy.KERNELS]
    assert found[0][1] == found[1][1]
    assert len(found[0][1]) == 11
