"""Expressions over edge values give what Flink gave, on both runners, or are refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.sql.exempted import find_rows, known_rows, refusal_on_arrow
from tests.sql.known_differences import DIFFERENCES, is_known, may_raise
from tests.sql.recorded import IN, accepted
from tests.sql.recorded_values import Recorded, differences, recorded, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
_ZONE = "spark.sql.session.timeZone"
#: Least number of expressions without a refusal, and of values that are Flink's, over Arrow tables.
ON_ARROW = {
    "texts": (550, 6600),
    "numbers": (518, 6080),
    "times": (365, 4680),
    "casts": (150, 1640),
    "nested": (21, 126),
    "json": (195, 2400),
    "urls": (4, 56),
}


def _stream(table: pa.Table | DataFrame) -> gw.typing.TimedStream:
    return gw.stream(table).event_time("at", _WATERMARKS)


def _calm_rows(recording: Recorded) -> tuple[int, ...]:
    """Return the rows with a value in Flink, without those that raise an error over Arrow."""
    found = known_rows().get(recording.table, {}).get(recording.expression, {})
    return tuple(row for row in recording.valid_rows if row not in found.get("raise", []))


def _wrong(recording: Recorded, values: pa.ChunkedArray, places: Sequence[int]) -> Iterator[str]:
    for row, ours, flinks in differences(values, recording, places):
        if not is_known(recording, row):
            yield f"{recording.expression} of row {row}: {ours}, in Flink {flinks}"


_EVERY = [
    pytest.param(7),
    pytest.param(3, marks=pytest.mark.thorough),
    pytest.param(1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("every", _EVERY)
@pytest.mark.parametrize("table", ON_ARROW)
def test_over_arrow_tables_values_are_flinks(table: str, every: int) -> None:
    wrong: dict[str, object] = {}
    expressions = values = 0
    for recording in recorded(table)[::every]:
        refusal = refusal_on_arrow(table, recording.expression)
        if refusal is not None:
            assert refusal.line is not None, recording.expression
            continue
        found = find_rows(recording)  # no more rows than are known, and no fewer
        if found != known_rows()[table].get(recording.expression, {}):
            wrong[recording.expression] = found
        expressions, values = expressions + 1, values + len(_calm_rows(recording))
    assert wrong == {}
    if every == 1:
        least_expressions, least_values = ON_ARROW[table]
        assert expressions >= least_expressions
        assert values >= least_values
    assert expressions


@pytest.mark.parametrize("table", ON_ARROW)
def test_what_differs_has_a_reason(table: str) -> None:
    for recording in recorded(table):
        for row in known_rows()[table].get(recording.expression, {}).get("differ", []):
            assert is_known(recording, row), (recording.expression, row)


def test_every_reason_has_a_row() -> None:
    by_table = {table: recorded(table) for table in ON_ARROW}
    for each in DIFFERENCES:
        if each.outside_utc or each.on_spark:
            continue
        rows_of = known_rows()[each.table]
        assert any(
            each.covers(recording, row)
            for recording in by_table[each.table]
            for row in rows_of.get(recording.expression, {}).get("differ", [])
        ), each.pattern


#: Least number of expressions on Spark, for a table and a zone.
ON_SPARK = {
    ("texts", "UTC"): 595,
    ("numbers", "UTC"): 520,
    ("times", "UTC"): 370,
    ("times", "America/New_York"): 370,
    ("times", "Asia/Kathmandu"): 370,
    ("casts", "UTC"): 104,
    ("nested", "UTC"): 56,
    ("json", "UTC"): 85,
}


@pytest.mark.parametrize(
    ("table", "zone", "every"),
    [
        ("nested", "UTC", 6),
        pytest.param("casts", "UTC", 12, marks=pytest.mark.thorough),
        *(
            pytest.param(table, zone, 20, marks=pytest.mark.thorough)
            for table, zone in ON_SPARK
            if zone == "UTC" and table not in ("casts", "nested")
        ),
        pytest.param("times", "America/New_York", 36, marks=pytest.mark.thorough),
        *(pytest.param(*each, 1, marks=pytest.mark.slow) for each in ON_SPARK),
    ],
)
def test_over_dataframes_values_are_flinks(
    spark: SparkSession, table: str, zone: str, every: int
) -> None:
    chosen = {
        each.expression: each
        for each in recorded(table, zone)[::every]
        if not may_raise(each) or refusal_on_arrow(table, each.expression) is None
    }
    spark.conf.set(_ZONE, zone)
    try:
        stream = _stream(_dataframe(spark, rows(table)))
        here = accepted(stream, [*chosen])
        wrong = [*_wrong_on_spark(spark, [chosen[each] for each in here])]
    finally:
        spark.conf.set(_ZONE, "UTC")
    assert wrong == []
    assert len(here) >= (ON_SPARK[table, zone] if every == 1 else 1)


def _dataframe(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a DataFrame in which times without a zone stay so, whatever the session's zone."""
    clocks = [field.name for field in table.schema if field.type == pa.timestamp("us")]
    for name in clocks:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(pa.string()))
    casts = {name: f"CAST({name} AS TIMESTAMP_NTZ)" for name in clocks}
    columns = [f"{casts.get(name, name)} AS {name}" for name in table.column_names]
    return spark.createDataFrame(table).selectExpr(*columns)


def _wrong_on_spark(spark: SparkSession, recordings: Iterable[Recorded]) -> Iterator[str]:
    groups = defaultdict(list)
    for recording in recordings:
        groups[_calm_rows(recording)].append(recording)
    for places, group in groups.items():
        table = rows(group[0].table).take([*places])
        items = ", ".join(f"{each.expression} AS x{at}" for at, each in enumerate(group))
        stream = _stream(_dataframe(spark, table))
        found: DataFrame = gw.sql(f"SELECT i, {items} {IN}", t=stream).result()
        result = found.toArrow().sort_by("i")
        for at, recording in enumerate(group):
            yield from _wrong(recording, result[f"x{at}"], places)
