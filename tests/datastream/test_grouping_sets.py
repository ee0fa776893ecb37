"""Groupings of keys in one pass: each is what a query of its own gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows import errors
from tests.lanes import quick
from tests.spark_glue.stream_runs import files, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTANT = pa.timestamp("us", "UTC")
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 s")
KEYS = ("a", "b", "c")
WINDOWS = {
    "tumbling": gw.TumblingEventTimeWindows.of("10 s"),
    "sliding": gw.SlidingEventTimeWindows.of("30 s", "10 s"),
    "uneven": gw.SlidingEventTimeWindows.of("25 s", "10 s"),
    "cumulative": gw.CumulativeEventTimeWindows.of("30 s", "10 s"),
}
AGGREGATES: dict[str, gw.typing.Aggregate] = {
    "n": gw.count(),
    "total": gw.sum("v"),
    "least": gw.min("v"),
    "mean": gw.mean("v"),
    "first": gw.arg_min("v", "ts"),
}

#: Those that Spark's own partials can be of.
SUMS = {name: each for name, each in AGGREGATES.items() if name != "first"}


def rows(seed: int, count: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": pa.array(rng.choice(["x", "y", "z"], count), mask=rng.random(count) < 0.1),
            "b": rng.integers(0, 3, count),
            "c": pa.array(rng.random(count) < 0.5, mask=rng.random(count) < 0.1),
            "ts": pa.array(np.sort(rng.choice(90_000, count, replace=False)) * 1_000, INSTANT),
            "v": rng.integers(-50, 50, count),
        }
    )


def windowed(source: Any, window: str) -> gw.typing.WindowedStream:
    return gw.stream(source).event_time("ts", WATERMARKS).key_by(*KEYS).window(WINDOWS[window])


def values(table: pa.Table) -> Counter[Any]:
    """Rows as values, times in ticks."""
    ticks = pa.schema(
        [f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    )
    return Counter(tuple(row.values()) for row in table.cast(ticks).to_pylist())


def one_by_one(
    source: pa.Table,
    window: str,
    sets: list[list[str]],
    aggregates: Mapping[str, gw.typing.Aggregate] = AGGREGATES,
) -> Counter[Any]:
    """What a query for each grouping gives, with the keys that it has not and its id."""
    found: Counter[Any] = Counter()
    for some in sets:
        timed = gw.stream(source).event_time("ts", WATERMARKS)
        assigner = WINDOWS[window]
        of_set = timed.key_by(*some).window(assigner) if some else timed.window_all(assigner)
        number = sum(1 << i for i, key in enumerate(reversed(KEYS)) if key not in some)
        for row in of_set.aggregate(**aggregates).to_pylist():
            keys = {key: row.get(key) for key in KEYS}
            table = pa.Table.from_pylist([{**row, **keys, "grouping_id": number}])
            names = [*KEYS, "window_start", "window_end", *aggregates, "grouping_id"]
            found += values(table.select(names))
    return found


@given(
    seed=st.integers(0, 1 << 30),
    window=st.sampled_from([*WINDOWS]),
    sets=st.lists(
        st.lists(st.sampled_from(KEYS), unique=True).map(
            lambda some: [k for k in KEYS if k in some]
        ),
        min_size=1,
        max_size=4,
        unique_by=tuple,
    ),
)
def test_each_grouping_is_a_query(seed: int, window: str, sets: list[list[str]]) -> None:
    source = rows(seed, 60)
    got = windowed(source, window).grouping_sets(*sets).aggregate(**AGGREGATES)
    assert values(got) == one_by_one(source, window, sets)


def test_rollup_and_cube() -> None:
    source = rows(3)
    rolled = (
        windowed(source, "sliding").grouping_sets("rollup").with_outputs().aggregate(**AGGREGATES)
    )
    assert "(a, b, c), (a, b), (a), ()" in rolled.explain()
    sets = [["a", "b", "c"], ["a", "b"], ["a"], []]
    assert values(rolled.result()) == one_by_one(source, "sliding", sets)
    cubed = windowed(source, "tumbling").grouping_sets("cube").aggregate(n=gw.count())
    assert sorted({*cubed["grouping_id"].to_pylist()}) == [*range(8)]
    traced = gw.trace_firings(
        windowed(source, "tumbling").grouping_sets("rollup").with_outputs().aggregate(n=gw.count()),
        source,
    )
    assert len(traced.firings) > 10
    assert (
        len(windowed(source.slice(0, 0), "tumbling").grouping_sets("cube").aggregate(n=gw.count()))
        == 0
    )


def test_of_several_lengths_and_changed_keys() -> None:
    """They are of each grouping: a group has changed if one of its keys has."""
    source = rows(5, 40)
    lengths = gw.MultiLengthEventTimeWindows.of("10 s", "40 s", slide="10 s")
    got: Counter[Any] = Counter()
    for some in (["b"], ["a", "b", "c"]):
        keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by(*some)
        for row in keyed.window(lengths).changed_keys().aggregate(n=gw.count()).to_pylist():
            got[tuple(row.get(key) for key in (*KEYS, "window_end", "n_10s", "n_40s"))] += 1
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by(*KEYS)
    both = (
        keyed.window(lengths).changed_keys().grouping_sets(["b"], [*KEYS]).aggregate(n=gw.count())
    )
    names = [*KEYS, "window_end", "n_10s", "n_40s"]
    assert Counter(tuple(row.values()) for row in both.select(names).to_pylist()) == got


def test_large_emissions_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    source = rows(7)
    whole = values(windowed(source, "sliding").grouping_sets("cube").aggregate(**AGGREGATES))
    monkeypatch.setattr("gpu_windows.operators.slices.operator.EMISSION_WINDOWS", 10)
    assert (
        values(windowed(source, "sliding").grouping_sets("cube").aggregate(**AGGREGATES)) == whole
    )


@pytest.mark.parametrize(
    ("ask", "error", "rule"),
    [
        (lambda w: w.grouping_sets(), errors.QueryError, "at least one set"),
        (lambda w: w.grouping_sets("a", "b"), errors.QueryError, "list of keys for each set"),
        (lambda w: w.grouping_sets("rollup", ["a"]), errors.QueryError, "alone, got 'rollup'"),
        (lambda w: w.cube("a"), errors.MissingStepError, r"say \.grouping_sets\('cube'\) for"),
        (lambda w: w.grouping_sets([b"a"]), errors.QueryError, "by their names"),
        (lambda w: w.grouping_sets(["v"]), errors.ColumnNotFoundError, "of keys: a, b, c"),
        (lambda w: w.grouping_sets(["a", "b"], ["b", "a"]), errors.QueryError, "comes once.*a, b"),
        (lambda w: w.grouping_sets([["a"], []]), errors.QueryError, "each grouping set is an arg"),
        (
            lambda w: w.grouping_sets("rollup").allowed_lateness("1 s"),
            errors.UnsupportedQueryError,
            "lateness",
        ),
        (
            lambda w: w.grouping_sets("rollup").evictor(gw.CountEvictor.of(3)),
            errors.UnsupportedQueryError,
            "evictors",
        ),
        (
            lambda w: w.grouping_sets("rollup").trigger(gw.CountTrigger.of(3)),
            errors.UnsupportedQueryError,
            "fire once",
        ),
        (lambda w: w.grouping_sets("rollup").top_keys(3, "n"), errors.QueryError, "top_keys"),
        (
            lambda w: w.grouping_sets("rollup").options(engine="reference"),
            errors.UnsupportedQueryError,
            "reference engine",
        ),
    ],
)
def test_what_is_refused(ask: Any, error: Any, rule: str) -> None:
    with pytest.raises(error, match=rule):
        ask(windowed(rows(1), "tumbling")).aggregate(n=gw.count())


def test_what_functions_are_refused() -> None:
    timed = gw.stream(rows(1)).event_time("ts", WATERMARKS)
    with pytest.raises(errors.QueryError, match="say key_by"):
        timed.window_all(WINDOWS["tumbling"]).grouping_sets(["a"])
    keyed = gw.stream(rows(1)).event_time("ts", WATERMARKS).key_by("a")
    sessions = keyed.window(gw.EventTimeSessionWindows.with_gap("1 s")).grouping_sets("rollup")
    with pytest.raises(errors.UnsupportedQueryError, match="windows that all keys share"):
        sessions.aggregate(n=gw.count())
    rolled = keyed.window(WINDOWS["tumbling"]).grouping_sets("rollup")
    with pytest.raises(errors.UnsupportedQueryError, match="made of partials"):
        rolled.aggregate(half=gw.median("v"))
    with pytest.raises(errors.UnsupportedQueryError, match="made of partials"):
        rolled.collect_lists("v")
    with pytest.raises(errors.NameClashError):
        rolled.aggregate(grouping_id=gw.count())


@pytest.mark.spark
@pytest.mark.parametrize("partials", quick(["auto", "spark", "kernels"], "auto"))
@pytest.mark.parametrize("window", quick(["tumbling", "sliding"], "tumbling"))
@pytest.mark.parametrize("some", quick([[["a", "b", "c"], ["b"]], [["a"], []]], [["a"], []]))
def test_on_spark(spark: SparkSession, partials: str, window: str, some: list[list[str]]) -> None:
    source = rows(11)
    frame = spark.createDataFrame(source)
    grouped = windowed(frame, window).options(partials=partials).grouping_sets(*some)
    assert "nothing crosses" not in grouped.with_outputs().aggregate(**SUMS).explain()
    result = grouped.aggregate(**(SUMS if partials == "spark" else AGGREGATES))
    wanted = one_by_one(source, window, some, SUMS if partials == "spark" else AGGREGATES)
    assert values(result.toArrow()) == wanted


@pytest.mark.spark
@pytest.mark.thorough
def test_on_streams(spark: SparkSession, tmp_path: Path) -> None:
    """No key is in all of them, so all partials are in one shard; it goes on from a checkpoint."""
    source = rows(13, 400)
    some = [["a", "b"], ["c"], []]
    parts = [source.slice(begin, 100) for begin in range(0, 400, 100)]
    for count in (2, 4):
        files(tmp_path / "in", parts[:count])
        frame = streamed(spark, tmp_path / "in", source)
        outputs = (
            windowed(frame, "sliding").grouping_sets(*some).with_outputs().aggregate(**AGGREGATES)
        )
        assert outputs.plan.query.options.shards == 1
        run_to_the_end(outputs, tmp_path)
    got = values(gw.read_output(spark, tmp_path / "out").toArrow())
    until = int(source["ts"].cast(pa.int64()).to_numpy().max()) - 5_000_000
    end = [*KEYS, "window_start", "window_end"].index("window_end")
    wanted = one_by_one(source, "sliding", some)
    assert got == Counter({row: n for row, n in wanted.items() if row[end] <= until})
    assert len(got) > 100


def test_a_cube_of_many_keys_is_refused_before_its_sets_are_made() -> None:
    names = [f"k{i}" for i in range(40)]
    table = pa.table({name: [1] for name in names} | {"ts": pa.array([0])})
    keyed = gw.stream(table).event_time("ts", WATERMARKS).key_by(*names)
    windows = keyed.window(WINDOWS["tumbling"])
    with pytest.raises(errors.QueryError, match=r"at most 12 keys.*, got 40"):
        windows.grouping_sets("cube")
    assert len(windows.grouping_sets("rollup").aggregate(n=gw.count())) == 41
    text = f"""SELECT COUNT(*) AS n, window_start FROM TUMBLE(TABLE t, DESCRIPTOR(ts),
        INTERVAL '1' MINUTE) GROUP BY window_start, window_end, CUBE({", ".join(names)})"""
    with pytest.raises(errors.SqlError, match=r"CUBE is of at most 12 columns, got 40"):
        gw.sql(text, t=gw.stream(table).event_time("ts", WATERMARKS))
