"""Tables of other libraries, which give Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
TABLE = pa.table(
    {
        "ts": pa.array([1_000_000, 2_000_000, 90_000_000], pa.timestamp("us", "UTC")),
        "k": ["a", "b", "a"],
        "v": pa.array([1.0, None, 3.0]),
    }
)


class Capsule:
    """Anything that gives Arrow, as Polars does: texts come as views."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def counted(source: Any) -> list[Any]:
    """Return keys, numbers of rows and texts of windows."""
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    result = keyed.window(MINUTE).aggregate(n=gw.count(), most=gw.max("v"), first=gw.first("k"))
    names = ["k", "n", "most", "first"]
    return [tuple(row.values()) for row in result.select(names).to_pylist()]


WANTED = [("a", 1, 1.0, "a"), ("b", 1, None, "b"), ("a", 1, 3.0, "a")]


def test_what_gives_arrow_is_taken() -> None:
    assert counted(TABLE) == WANTED
    assert counted(Capsule(TABLE)) == WANTED
    assert counted(TABLE.to_reader()) == WANTED


def test_views_become_plain() -> None:
    """Within structs and lists, too: they are keys, and stand in results."""
    point = pa.struct([("x", pa.string_view()), ("b", pa.binary_view())])
    views = pa.table(
        {
            "ts": TABLE["ts"],
            "k": TABLE["k"].cast(pa.string_view()),
            "v": TABLE["v"],
            "point": pa.array([{"x": "p", "b": b"q"}, None, {"x": None, "b": b""}], point),
            "names": pa.array([["m"], [], None], pa.list_(pa.string_view())),
        }
    )
    assert counted(Capsule(views)) == WANTED
    keyed = gw.stream(Capsule(views)).key_by("point")
    found = keyed.top(1, "k").to_pylist()
    assert [(row["point"], row["k"], row["names"]) for row in found] == [
        ({"x": "p", "b": b"q"}, "a", ["m"]),
        (None, "b", []),
        ({"x": None, "b": b""}, "a", None),
    ]


def test_pandas() -> None:
    """An index is a column if it has a name."""
    pytest.importorskip("pandas", "2.2")
    frame = TABLE.to_pandas()
    assert counted(frame) == WANTED
    assert counted(frame.set_index("ts")) == WANTED
    some = frame[frame["v"] > 0]  # an index of 0 and 2
    assert counted(some) == [WANTED[0], WANTED[2]]
    assert gw.stream(some).source.schema.names == ["ts", "k", "v"]


def test_categories() -> None:
    of_pandas = pytest.importorskip("pandas", "2.2") and TABLE.to_pandas().astype({"k": "category"})
    assert counted(of_pandas) == WANTED
    polars = pytest.importorskip("polars")
    assert counted(polars.from_arrow(TABLE).cast({"k": polars.Categorical})) == WANTED


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_the_others(library: str) -> None:
    module = pytest.importorskip(library)
    assert counted(module.from_arrow(TABLE)) == WANTED


@pytest.mark.parametrize("source", [pa.chunked_array([[1]]), 5, [TABLE], {"k": [1]}, pa.array([1])])
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(errors.QueryError, match="stream takes"):
        gw.stream(source)
