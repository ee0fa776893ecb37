"""Queries over random schemas, and the same by Spark itself: one result, of the same types."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.window import Window

import gpu_windows as gw
from gpu_windows.column_types.logical import logical_type, name_of
from gpu_windows.column_types.widening import common_type
from gpu_windows.errors import GpuWindowsError
from tests.column_types.schemas import Schema, random_schema, random_type
from tests.column_types.uses import USES
from tests.column_types.walk import WATERMARKS, frozen

#: Gives the rows of outputs.
Runner = Callable[[Any], pa.Table]
#: Aggregates by their use: ours of a column, and Spark's.
AGGREGATES: Mapping[str, Sequence[tuple[Callable[[str], Any], Callable[[str], Column]]]] = {
    "count": [(gw.count, sf.count)],
    "sum": [(gw.sum, sf.sum)],
    "mean": [(gw.mean, sf.avg)],
    "variance": [(gw.variance, sf.var_samp), (gw.stddev, sf.stddev_samp)],
    "min": [(gw.min, sf.min), (gw.max, sf.max)],
    "by": [(lambda name: gw.arg_min("i", name), lambda name: _first_by(name))],
    "first": [(lambda name: gw.arg_max(name, "i"), lambda name: sf.max_by(name, "i"))],
    "collect_list": [(gw.collect_list, sf.collect_list)],
    "count_distinct": [(gw.count_distinct, sf.count_distinct)],
    "quantile": [(gw.median, sf.median)],
    "bool_and": [(gw.bool_and, sf.bool_and), (gw.bool_or, sf.bool_or)],
}
FRAMED: Mapping[str, tuple[Callable[[str], Any], Callable[[str], Column]]] = {
    "count": (gw.count, sf.count),
    "frame": (gw.sum, sf.sum),
    "min": (gw.min, sf.min),
}


def _first_by(name: str) -> Column:
    """Return ``i`` of the first row with the least value."""
    value = sf.col(name)
    return sf.min(sf.when(value.isNotNull(), sf.struct(value, "i")))["i"]


@dataclass(frozen=True)
class Twins:
    """A query and the same by Spark.

    Parameters
    ----------
    ask : callable
        Makes our query of the inputs, in any form.
    same : callable
        Makes Spark's of the same rows in logical types.
    places : tuple of str
        Columns of the result that tell its rows apart.
    """

    ask: Callable[..., Any]
    same: Callable[..., DataFrame]
    places: tuple[str, ...]


def stream_of(rows: Any, keys: Sequence[str]) -> Any:
    stream = gw.stream(rows).event_time("ts", WATERMARKS)
    return stream.key_by(*keys) if keys else stream


def takes(use: str, schema: Schema, name: str) -> bool:
    """Whether a use takes a column."""
    return name_of(schema.table.schema.field(name).type) in USES[use].takes


def random_window(rng: random.Random) -> tuple[gw.functions.WindowAssigner, Column]:
    """Return windows, and Spark's column of the same."""
    size = rng.choice((1, 30, 60, 86_400))
    slide = rng.choice((size, max(1, size // 3)))
    offset = rng.choice((0, slide // 2))
    ours = gw.SlidingEventTimeWindows.of(f"{size} s", f"{slide} s", f"{offset} s")
    its = sf.window("ts", f"{size} seconds", f"{slide} seconds", f"{offset} seconds")
    return ours, its


def aggregated(rng: random.Random, schema: Schema) -> Twins:
    """Return aggregates of windows: some that each column takes."""
    ours, its = {"n": gw.count()}, [sf.count(sf.lit(1)).alias("n")]
    for name in schema.values:
        for use, pairs in AGGREGATES.items():
            if takes(use, schema, name) and rng.random() < 0.6:
                our, spark = rng.choice(pairs)
                ours[f"{use}_{name}"] = our(name)
                its.append(spark(name).alias(f"{use}_{name}"))
    assigner, window = random_window(rng)
    keys = schema.keys

    def ask(rows: Any) -> Any:
        stream = stream_of(rows, keys)
        windowed = stream.window(assigner) if keys else stream.window_all(assigner)
        return windowed.with_outputs().aggregate(**ours)

    def same(frame: DataFrame) -> DataFrame:
        found = frame.groupBy(window.alias("w"), *keys).agg(*its)
        bounds = (sf.col(f"w.{end}").alias(f"window_{end}") for end in ("start", "end"))
        return found.select(*keys, *bounds, *[name for name in found.columns if name in ours])

    return Twins(ask, same, (*keys, "window_start"))


def topped(rng: random.Random, schema: Schema) -> Twins | None:
    """Return the first rows of windows by a column."""
    orders = [name for name in schema.values if takes("order", schema, name)]
    if not orders or not schema.keys:
        return None
    order, descending = rng.choice(orders), rng.random() < 0.5
    window, keys = gw.TumblingEventTimeWindows.of("30 s"), schema.keys
    columns = [*schema.values, "i"]

    def ask(rows: Any) -> Any:
        windowed = stream_of(rows, keys).window(window)
        return windowed.with_outputs().top(2, order, descending=descending, columns=columns)

    def same(frame: DataFrame) -> DataFrame:
        framed = frame.withColumn("w", sf.window("ts", "30 seconds"))
        by = sf.col(order).desc() if descending else sf.col(order).asc()
        place = sf.row_number().over(Window.partitionBy("w", *keys).orderBy(by, "i"))
        found = framed.withColumn("row_number", place.cast("bigint")).where("row_number <= 2")
        bounds = (sf.col(f"w.{end}").alias(f"window_{end}") for end in ("start", "end"))
        return found.select(*keys, *bounds, *columns, "row_number")

    return Twins(ask, same, ("i",))


def over(rng: random.Random, schema: Schema) -> Twins | None:
    """Return aggregates of every row over those before it."""
    if not schema.keys:
        return None
    keys, is_of_time = schema.keys, rng.random() < 0.5
    frame = gw.Range("30 s") if is_of_time else gw.Rows(4)
    micros = Window.partitionBy(*keys).orderBy(sf.unix_micros("ts"))
    its_frame = micros.rangeBetween(-30_000_000, 0) if is_of_time else micros.rowsBetween(-4, 0)
    ours: dict[str, Any] = {"n": gw.count()}
    its = [sf.count(sf.lit(1)).over(its_frame).alias("n")]
    for name in schema.values:
        for use, (our, spark) in FRAMED.items():
            if takes(use, schema, name):
                ours[f"{use}_{name}"] = our(name)
                its.append(spark(name).over(its_frame).alias(f"{use}_{name}"))
        ours[f"lag_{name}"] = gw.lag(name)
        its.append(sf.lag(name).over(micros).alias(f"lag_{name}"))
    return Twins(
        lambda rows: (
            stream_of(rows, keys)
            .over(frame)
            .with_outputs()
            .aggregate(["i", *schema.values], **ours)
        ),
        lambda frame: frame.select(*keys, "ts", "i", *schema.values, *its),
        ("i",),
    )


def joined(rng: random.Random, left: Schema, right: Schema) -> Twins:
    """Return pairs of rows of two inputs that are near in time."""
    how = rng.choice(("inner", "left", "right", "full", "semi", "anti"))
    is_alone = how in ("semi", "anti")
    mine = {"i": "i", **{f"left_{name}": name for name in left.values}}
    its = {} if is_alone else {"j": "i", **{f"right_{name}": name for name in right.values}}

    def ask(rows: Any, others: Any) -> Any:
        pair = stream_of(rows, left.keys).interval_join(stream_of(others, right.keys))
        return pair.between("-20 s", "5 s").with_outputs().select(mine, its, how=how)

    def same(rows: DataFrame, others: DataFrame) -> DataFrame:
        one, other = rows.alias("l"), others.alias("r")
        near = (
            (sf.col("l." + name) == sf.col("r." + its_name))
            for name, its_name in zip(left.keys, right.keys, strict=True)
        )
        apart = sf.unix_micros("r.ts") - sf.unix_micros("l.ts")
        found = one.join(other, [*near, apart.between(-20_000_000, 5_000_000)], how)
        sides = [("l", mine)] if is_alone else [("l", mine), ("r", its)]
        chosen = (
            sf.col(f"{side}.{name}").alias(shown)
            for side, names in sides
            for shown, name in names.items()
        )
        named = (_key(left, right, name, is_alone).alias(name) for name in left.keys)
        return found.select(*named, *chosen)

    return Twins(ask, same, ("i",) if is_alone else ("i", "j"))


def _key(left: Schema, right: Schema, name: str, is_alone: bool) -> Column:
    """Return a key of pairs, of the type that those of both sides have."""
    at = left.keys.index(name)
    dtype = common_type(left.key_types[at], right.key_types[at])
    assert dtype is not None
    key = sf.col("l." + name) if is_alone else sf.coalesce("l." + name, "r." + name)
    return key.cast(from_arrow_type(dtype))


@dataclass(frozen=True)
class Trial:
    """What became of a seed.

    Parameters
    ----------
    kind : str
        What was asked; "overflow" if all refuse it.
    schema : str
        The columns of its inputs.
    wrong : str
        Where a result is not Spark's; empty if none is.
    """

    kind: str
    schema: str
    wrong: str = ""


def try_seed(seed: int, spark: SparkSession, runners: Mapping[str, Runner]) -> Trial:
    """Run a query over random schemas by some runners and by Spark, and compare."""
    rng = random.Random(seed)
    kind = rng.choice(("aggregated", "aggregated", "topped", "over", "joined"))
    schemas = [random_schema(rng)]
    twins: Twins | None
    if kind == "joined":
        keys = rng.randint(1, 2)
        schemas = [random_schema(rng, _key_types(rng, keys))]
        schemas.append(
            random_schema(rng, [_other_type(rng, each) for each in schemas[0].key_types])
        )
        twins = joined(rng, *schemas)
    else:
        twins = {"aggregated": aggregated, "topped": topped, "over": over}[kind](rng, schemas[0])
        twins = twins or aggregated(rng, schemas[0])
    shown = "; ".join(str(schema) for schema in schemas)
    wanted = _result_of_spark(twins, [frame_of(spark, each) for each in schemas])
    for name, runner in runners.items():
        inputs = [_input_of(rng, schema, name, spark) for schema in schemas]
        wrong = _difference(twins, inputs, wanted, runner)
        if wrong:
            return Trial(kind, shown, f"{name}: {wrong}")
    return Trial("overflow" if isinstance(wanted, str) else kind, shown)


def _key_types(rng: random.Random, count: int) -> list[pa.DataType]:
    return [random_type(rng, is_key=True) for _ in range(count)]


def _other_type(rng: random.Random, dtype: pa.DataType) -> pa.DataType:
    """Return a type of the other side's key that goes with one, in most cases another one."""
    others = [random_type(rng, is_key=True) for _ in range(12)]
    return next((each for each in others if common_type(dtype, each) is not None), dtype)


def frame_of(spark: SparkSession, schema: Schema) -> DataFrame:
    """Return rows as Spark's."""
    return spark.createDataFrame(schema.logical)


def _input_of(rng: random.Random, schema: Schema, runner: str, spark: SparkSession) -> Any:
    if runner == "Spark":
        return frame_of(spark, schema)
    is_read = runner == "local" and rng.random() < 0.3
    return schema.table.to_reader(max_chunksize=7) if is_read else schema.table


def _result_of_spark(twins: Twins, frames: Sequence[DataFrame]) -> pa.Table | str:
    """Return Spark's own result, or why it gives none: a number overflows."""
    try:
        return twins.same(*frames).toArrow()
    except ArithmeticException as error:
        return str(error)


def _difference(twins: Twins, inputs: Sequence[Any], wanted: pa.Table | str, runner: Runner) -> str:
    """Return how a result is not Spark's; nothing if it is."""
    try:
        found = runner(twins.ask(*inputs))
    except (GpuWindowsError, PySparkException) as error:
        return "" if isinstance(wanted, str) else f"{type(error).__name__}: {error}"
    if isinstance(wanted, str):
        return f"Spark refuses it: {wanted.splitlines()[0]}"
    return differing(found, wanted, twins.places)


def differing(found: pa.Table, wanted: pa.Table, places: Sequence[str]) -> str:
    """Return where two results differ, in types or values; nothing if they do not."""
    if found.column_names != wanted.column_names:
        return f"columns {found.column_names}, not {wanted.column_names}"
    for ours, its in zip(found.schema, wanted.schema, strict=True):
        if _shown_type(ours.type) != _shown_type(its.type):
            return f"{ours.name} is {ours.type}, not {its.type}"
        if not ours.nullable and found.column(ours.name).null_count:
            return f"{ours.name} is not nullable and has nulls"
    if len(found) != len(wanted):
        return f"{len(found)} rows, not {len(wanted)}"
    for ours, its in zip(_in_order(found, places), _in_order(wanted, places), strict=True):
        for name in found.column_names:
            if not _is_same(ours[name], its[name], name.partition("_")[0]):
                return f"{name} is {ours[name]!r}, not {its[name]!r}, in {its}"
    return ""


def _shown_type(dtype: pa.DataType) -> str:
    return from_arrow_type(logical_type(dtype)).simpleString()


def _in_order(table: pa.Table, places: Sequence[str]) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: repr([_plain(row[name]) for name in places]))


def _plain(value: Any) -> Any:
    """Return a value that compares with others of its kind: all NaN are one, and so are zeros."""
    value = frozen(value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _is_same(one: Any, other: Any, use: str) -> bool:
    """Whether two values are the same; floats, nearly; lists in any order."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = (sorted(map(repr, map(_plain, each))) for each in (one, other))
    one, other = _plain(one), _plain(other)
    if one == other:
        return True
    if use == "quantile" and other == "NaN":  # Spark's, between an infinite value and a finite one
        return isinstance(one, float) and math.isinf(one)
    if isinstance(one, float) and isinstance(other, float):
        # Spark's variance loses digits where the mean is large
        return math.isclose(one, other, rel_tol=1e-6 if use == "variance" else 1e-12, abs_tol=1e-12)
    return False
