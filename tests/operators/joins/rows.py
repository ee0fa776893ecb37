"""Rows of two inputs, and window joins of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import gpu_windows as gw

HOW = ("inner", "left", "right", "full", "semi", "anti")
ENGINES = ("auto", "reference")
STRICT = gw.WatermarkStrategy.for_monotonous_timestamps()
SIZE = 10
TUMBLING = gw.TumblingEventTimeWindows(SIZE)
INSTANT = pa.timestamp("us", "UTC")
Row = tuple[str | None, int | None, int]


def table(rows: list[Row], **names: str) -> pa.Table:
    columns = {"k": pa.string(), "ts": pa.int64(), "v": pa.int64()}
    arrays = zip(*rows, strict=True) if rows else ([], [], [])
    named = zip(columns.items(), arrays, strict=True)
    return pa.table({names.get(n, n): pa.array(values, dtype) for (n, dtype), values in named})


def keyed(rows: Any, *, time: str = "ts", key: Any = "k") -> gw.typing.KeyedStream:
    return gw.stream(rows).event_time(time, STRICT).key_by(key)


def joined(
    left: Any, right: Any, how: Any, engine: Any = "auto", *, null_safe: bool = False,
    **options: Any,
) -> gw.typing.Outputs:  # fmt: skip
    windowed = keyed(left).join(keyed(right)).window(TUMBLING)
    windowed = windowed.null_safe() if null_safe else windowed
    return (
        windowed.options(engine=engine, device="cpu")
        .with_outputs()
        .select(["v"], ["v"], how=how, **options)
    )


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]), st.none() | st.integers(-15, 25), st.integers(0, 9)
    ),
    max_size=12,
)


class Lengths(gw.functions.VectorCoGroupFunction):
    def co_group(self, batch: gw.typing.CoGroupBatch) -> pa.Table:
        edges = batch.left_offsets, batch.right_offsets
        lengths = [each[1:] - each[:-1] for each in edges]
        assert batch.left.column_names == batch.right.column_names == ["v"]
        return pa.table({"n": lengths[0], "m": lengths[1]})


def instants(rows: list[Row]) -> pa.Table:
    made = table(rows)
    return made.set_column(1, "ts", made["ts"].cast(INSTANT))
