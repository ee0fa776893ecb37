"""What counts as another result than Flink's."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.sql.corpus.compare import difference
from tests.sql.corpus.ddl import insert_targets, read_tables
from tests.sql.corpus.inputs import Rows

FLINK: dict[str, Any] = {
    "columns": ["k", "at", "n", "d", "m"],
    "types": ["VARCHAR(2147483647)", "TIMESTAMP(3)", "BIGINT", "DOUBLE", "DECIMAL(10, 2)"],
    "rows": [
        ["a", "2026-03-02T08:00:00.999", 1, 0.1, "2.50"],
        ["a", "2026-03-02T08:00:00.999", 1, 0.1, "2.50"],
        [None, None, None, None, None],
    ],
}
ROW = {
    "k": "a",
    "at": datetime(2026, 3, 2, 8, 0, 0, 999_999, UTC),
    "n": 1,
    "d": 0.1 + 1e-12,
    "m": Decimal("2.5"),
}
NONE = dict.fromkeys(ROW)


def _difference(*rows: dict[str, Any]) -> str | None:
    return difference(pa.Table.from_pylist(list(rows)), FLINK)


def test_rows_in_another_order_are_the_same_rows() -> None:
    assert _difference(ROW, NONE, ROW) is None


@pytest.mark.parametrize(
    "change",
    [{"k": "b"}, {"k": None}, {"n": 2}, {"d": 0.2}, {"m": Decimal("2.51")}, {"d": None}],
    ids=str,
)
def test_another_value_is_a_difference(change: dict[str, Any]) -> None:
    assert "missing" in str(_difference(ROW, NONE, {**ROW, **change}))


def test_another_number_of_rows_is_a_difference() -> None:
    assert _difference(ROW, NONE) is not None
    assert _difference(ROW, ROW, ROW, NONE) is not None


def test_another_name_is_a_difference() -> None:
    assert "columns" in str(_difference(*({**row, "x": 1} for row in (ROW, ROW, NONE))))


SCRIPT = """
CREATE TABLE `my t` (a STRING, b ARRAY<ROW<x INT, y STRING>>, ms BIGINT, -- , c INT
  part INT METADATA FROM 'partition' VIRTUAL, ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '2' MINUTE, PRIMARY KEY (a) NOT ENFORCED
) WITH ('x' = 'insert into z (');
INSERT INTO `out` SELECT a FROM `my t` WHERE a IN ('p', 'q')
"""


def test_create_table_says_which_rows_there_are() -> None:
    [table] = read_tables(SCRIPT)
    assert [column.name for column in table.columns] == ["a", "b", "ms", "part"]
    assert (table.time, table.delay_ms, table.key) == ("ms", 120_000, ("a",))
    assert table.columns[3].metadata == "partition"
    assert insert_targets(SCRIPT)[-1] == "out"


def test_rows_are_the_same_for_a_seed_and_none_is_late() -> None:
    [table] = read_tables(SCRIPT)
    rows = Rows(SCRIPT).rows(table)
    assert rows == Rows(SCRIPT).rows(table)
    assert {"p", "q"} <= {row["a"] for row in rows}
    newest = 0
    for row in rows:
        assert row["ms"] > newest - table.delay_ms
        newest = max(newest, row["ms"])
