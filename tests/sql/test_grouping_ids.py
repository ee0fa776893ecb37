"""GROUPING_ID of keys in any order: a digit for each, 1 where the key is not in the set."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError

ROWS = gw.stream(
    pa.table({"k": ["a"], "v": [1], "ts": pa.array([0], pa.timestamp("us"))})
).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
TEXT = """
    SELECT k, v, {0} AS id FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)
    GROUP BY window_start, window_end, CUBE (k, v)
"""


@pytest.mark.parametrize(
    ("call", "ids"),
    [
        ("GROUPING_ID()", [0, 1, 2, 3]),
        ("GROUPING_ID(k, v)", [0, 1, 2, 3]),
        ("GROUPING_ID(v, k)", [0, 2, 1, 3]),
        ("GROUPING_ID(k)", [0, 0, 1, 1]),
    ],
)
def test_ids_of_keys(call: str, ids: list[int]) -> None:
    rows = gw.sql(TEXT.format(call), t=ROWS).result()
    found = {(row["k"], row["v"]): row["id"] for row in rows.to_pylist()}
    assert [found[each] for each in (("a", 1), ("a", None), (None, 1), (None, None))] == ids
    assert rows.schema.field("id").type == pa.int64()


def test_another_column_is_refused() -> None:
    with pytest.raises(SqlError, match="takes keys of GROUP BY, got ts"):
        gw.sql(TEXT.format("GROUPING_ID(k, ts)"), t=ROWS).result()
