"""Random statements of the grammar, each with what the API gives for it, and broken ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import gpu_windows as gw
from gpu_windows.functions.join import JoinType

INSTANT = pa.timestamp("us", "UTC")
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
_SECONDS = 1_000_000


def rows(rng: random.Random, count: int) -> pa.Table:
    """Return rows of a table: two keys, a time, numbers with nulls, texts, booleans."""

    def some(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    times = sorted(rng.randrange(-60, 120) * _SECONDS // 2 for _ in range(count))
    return pa.table(
        {
            "k": pa.array([some(rng.choice("ab")) for _ in range(count)], pa.string()),
            "n": pa.array([some(rng.randrange(3)) for _ in range(count)], pa.int64()),
            "ts": pa.array(times, pa.int64()).cast(INSTANT),
            "v": pa.array([some(rng.randrange(-20, 20)) for _ in range(count)], pa.int64()),
            "x": pa.array(
                [some(rng.choice([0.5, -1.25, 3.0, np.nan])) for _ in range(count)], pa.float64()
            ),
            "ok": pa.array([some(rng.random() < 0.5) for _ in range(count)], pa.bool_()),
        }
    )


def stream(table: pa.Table) -> gw.typing.TimedStream:
    """Return rows with their time."""
    return gw.stream(table).event_time("ts", MONOTONOUS)


@dataclass(frozen=True)
class Text:
    """A statement, and what the API gives for it over the tables by these names."""

    sql: str
    of: Callable[[Mapping[str, gw.typing.TimedStream]], pa.Table]


#: Aggregates: in SQL, and in the API.
AGGREGATES: list[tuple[str, Any]] = [
    ("COUNT(*)", gw.count()),
    ("count(v)", gw.count("v")),
    ("SUM(v)", gw.sum("v")),
    ("AVG(x)", gw.mean("x")),
    ("min(v)", gw.min("v")),
    ("MAX(x)", gw.max("x")),
    ("FIRST(v)", gw.first("v")),
    ("LAST(v) IGNORE NULLS", gw.last("v", ignore_nulls=True)),
    ("COUNT(DISTINCT v)", gw.count_distinct("v")),
    ("SUM(v) FILTER (WHERE ok)", gw.sum("v").filter("ok")),
    ("MAX_BY(v, x)", gw.arg_max("v", "x")),
    ("BOOL_OR(ok)", gw.bool_or("ok")),
    ("STDDEV_POP(v)", gw.stddev("v", ddof=0)),
    ("Median(v)", gw.median("v")),
    ("FIRST_VALUE(v)", gw.first("v", ignore_nulls=True)),
    ("LAST_VALUE(v) RESPECT NULLS", gw.last("v")),
]
_IN_FRAMES = AGGREGATES[:8]


def _windows(rng: random.Random) -> tuple[str, gw.functions.WindowAssigner, str]:
    """Return a window function's name, its assigner and its durations."""
    slide, times = rng.choice([1, 2, 5]), rng.randrange(1, 5)
    offset = rng.choice([0, 0, 1])
    size = slide * times
    after = f", INTERVAL '{offset}' SECOND" if offset else ""
    match rng.randrange(4):
        case 0:
            assigner: gw.functions.WindowAssigner = gw.TumblingEventTimeWindows.of(
                f"{slide} s", f"{offset % slide} s"
            )
            after = f", INTERVAL '{offset % slide}' SECOND" if offset % slide else ""
            return "TUMBLE", assigner, f"INTERVAL '{slide}' SECOND{after}"
        case 1:
            after = f", INTERVAL '{offset % slide}' SECOND" if offset % slide else ""
            assigner = gw.SlidingEventTimeWindows.of(
                f"{size} s", f"{slide} s", f"{offset % slide} s"
            )
            return "HOP", assigner, f"INTERVAL '{slide}' SECONDS, INTERVAL '{size}' SECOND{after}"
        case 2:
            assigner = gw.CumulativeEventTimeWindows.of(f"{size} s", f"{slide} s")
            return "CUMULATE", assigner, f"INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND"
        case _:
            assigner = gw.EventTimeSessionWindows.with_gap(f"{slide} s")
            return "SESSION", assigner, f"INTERVAL '{slide}' SECOND"


def _keys(rng: random.Random) -> list[str]:
    return rng.choice([[], ["k"], ["n"], ["k", "n"]])


def _windowed(
    of: gw.typing.TimedStream, keys: list[str], assigner: gw.functions.WindowAssigner
) -> gw.typing.WindowedStream:
    return of.key_by(*keys).window(assigner) if keys else of.window_all(assigner)


def aggregated(rng: random.Random) -> Text:
    """Return aggregates of windows."""
    name, assigner, durations = _windows(rng)
    keys = _keys(rng)
    chosen = rng.sample(AGGREGATES, rng.randrange(1, 4))
    named = {f"r{i}": each for i, (_, each) in enumerate(chosen)}
    listed = [*keys, "window_start", "WINDOW_END"]
    shown = rng.sample(listed, rng.randrange(1, len(listed) + 1))
    items = [*shown, *(f"{text} AS r{i}" for i, (text, _) in enumerate(chosen))]
    by = f" PARTITION BY {', '.join(keys)}" if name == "SESSION" and keys else ""
    where = rng.choice(["", " WHERE v > -5", " WHERE ok OR v IS NULL"])
    call = f"{name}(TABLE t{by}, DESCRIPTOR(ts), {durations})"
    if rng.random() < 0.3:
        call = f"TABLE({call})"
    having = rng.choice(["", "", " HAVING COUNT(*) > 1"])
    group = rng.sample([*keys, "window_start", "window_end"], len(keys) + 2)
    sql = f"SELECT {', '.join(items)} FROM {call}{where} GROUP BY {', '.join(group)}{having}"
    names = [each.lower() if each != "WINDOW_END" else each for each in shown]

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        source = tables["t"].where(where.removeprefix(" WHERE ")) if where else tables["t"]
        more = {"having": gw.count()} if having else {}
        found = _windowed(source, keys, assigner).aggregate(**named, **more)
        if having:
            found = found.filter(pa.compute.field("having") > 1)
        table = found.select([*(each.lower() for each in shown), *named])
        return table.rename_columns([*names, *named])

    return Text(sql, of)


def framed(rng: random.Random) -> Text:
    """Return aggregates over frames."""
    keys = _keys(rng) or ["k"]
    size = rng.choice([None, 0, 1, 3])
    chosen = rng.sample(_IN_FRAMES, rng.randrange(1, 3))
    named = {f"r{i}": each for i, (_, each) in enumerate(chosen)}
    if rng.random() < 0.5:
        frame: gw.typing.Frame = gw.Rows(size)
        start = "UNBOUNDED" if size is None else size
        text = f"ROWS BETWEEN {start} PRECEDING AND CURRENT ROW"
    else:
        frame = gw.Range(None if size is None else f"{size} s")
        start = "UNBOUNDED" if size is None else f"INTERVAL '{size}' SECOND"
        text = f"RANGE BETWEEN {start} PRECEDING AND CURRENT ROW"
    window = f"(PARTITION BY {', '.join(keys)} ORDER BY ts {text})"
    over = "w" if rng.random() < 0.5 else window
    items = ", ".join(f"{each} OVER {over} AS r{i}" for i, (each, _) in enumerate(chosen))
    after = f" WINDOW w AS {window}" if over == "w" else ""
    sql = f"SELECT k, n, v, {items} FROM t{after}"

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        found = tables["t"].key_by(*keys).over(frame).aggregate(["k", "n", "v"], **named)
        return found.select(["k", "n", "v", *named])

    return Text(sql, of)


def first_rows(rng: random.Random) -> Text:
    """Return the first rows of windows."""
    name, assigner, durations = _windows(rng)
    keys, count = _keys(rng), rng.randrange(1, 3)
    down = rng.random() < 0.5
    by = f" PARTITION BY {', '.join(keys)}" if name == "SESSION" and keys else ""
    partition = ", ".join([*keys, "window_start", "window_end"])
    sql = (
        f"SELECT v, x, window_end, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} "
        f"ORDER BY v{' DESC' if down else ''}, ts) AS rn "
        f"FROM {name}(TABLE t{by}, DESCRIPTOR(ts), {durations})) WHERE rn <= {count}"
    )

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        windowed = _windowed(tables["t"], keys, assigner)
        found = windowed.top(
            count, ["v", "ts"], descending=[down, False], columns=["v", "x"], number="rn"
        )
        return found.select(["v", "x", "window_end", "rn"])

    return Text(sql, of)


def first_keys(rng: random.Random) -> Text:
    """Return the keys of windows that come first."""
    slide, count = rng.choice([1, 5, 20]), rng.randrange(1, 3)
    sql = (
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
        "ORDER BY c DESC, k) AS rn FROM (SELECT k, window_start, window_end, COUNT(*) AS c FROM "
        f"TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL {slide} SECONDS) "
        f"GROUP BY k, window_start, window_end)) WHERE rn < {count + 1}"
    )

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        windowed = tables["t"].key_by("k").window(gw.TumblingEventTimeWindows.of(f"{slide} s"))
        top = windowed.top_keys(count, ["c", "k"], descending=[True, False], number="rn")
        return top.aggregate(c=gw.count())

    return Text(sql, of)


_HOW: tuple[JoinType, ...] = ("inner", "left", "right", "full")


def in_time(rng: random.Random) -> Text:
    """Return rows of two tables that are near in time."""
    how = rng.choice(_HOW)
    before, after = rng.randrange(0, 3), rng.randrange(0, 3)
    condition = rng.choice(
        [
            f"b.ts BETWEEN a.ts - INTERVAL '{before}' SECOND AND a.ts + INTERVAL '{after}' SECOND",
            f"a.ts <= b.ts + INTERVAL '{before}' SECOND "
            f"AND b.ts <= a.ts + INTERVAL {after} SECONDS",
        ]
    )
    sql = (
        f"SELECT a.v AS av, b.v AS bv, a.k AS ak, b.k AS bk FROM t AS a {how.upper()} JOIN u AS b "
        f"ON a.k = b.k AND {condition}"
    )

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        left, right = tables["t"].key_by("k"), tables["u"].key_by("k")
        found = (
            left.interval_join(right)
            .between(f"-{before} s", f"{after} s")
            .select({"av": "v", "ak": "k"}, {"bv": "v", "bk": "k"}, how=how)
        )
        return found.select(["av", "bv", "ak", "bk"])

    return Text(sql, of)


def in_windows(rng: random.Random) -> Text:
    """Return rows of two tables in the same windows."""
    size = rng.randrange(1, 6)
    call = "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '{}' SECOND)"
    left, right = (f"(SELECT * FROM {call.format(name, size)})" for name in "tu")
    how = rng.choice(["", "LEFT ", "FULL OUTER "])
    sql = (
        f"SELECT a.v AS av, b.v AS bv, coalesce(a.window_end, b.window_end) AS e FROM {left} a "
        f"{how}JOIN {right} b ON a.k = b.k AND a.window_start = b.window_start "
        "AND a.window_end = b.window_end"
    )
    kinds: dict[str, JoinType] = {"": "inner", "LEFT ": "left", "FULL OUTER ": "full"}
    kind = kinds[how]

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        pairs = tables["t"].key_by("k").join(tables["u"].key_by("k"))
        windowed = pairs.window(gw.TumblingEventTimeWindows.of(f"{size} s"))
        found = windowed.select({"av": "v"}, {"bv": "v"}, how=kind)
        return found.select(["av", "bv", "window_end"]).rename_columns(["av", "bv", "e"])

    return Text(sql, of)


def with_versions(rng: random.Random) -> Text:
    """Return rows of a table with the versions of another one."""
    how = rng.choice(_HOW[:2])
    keys = rng.choice([["k"], ["k", "n"]])
    condition = rng.choice([None, "a.v < b.v", "a.ts > b.ts"])
    sql = (
        f"SELECT a.v AS av, b.v AS bv, b.ts AS bts FROM t AS a {how.upper()} JOIN u "
        f"FOR SYSTEM_TIME AS OF a.ts AS b ON {' AND '.join(f'a.{k} = b.{k}' for k in keys)}"
        f"{'' if condition is None else f' AND {condition}'}"
    )
    where = {None: None, "a.v < b.v": pc.field("av") < pc.field("bv"),
             "a.ts > b.ts": pc.field("ats") > pc.field("bts")}[condition]  # fmt: skip

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        left, right = (tables[name].key_by(*keys) for name in "tu")
        chosen: Any = {"av": "v", "ats": "ts"}, {"bv": "v", "bts": "ts"}
        found = left.temporal_join(right).select(*chosen, how=how, where=where)
        return found.select(["av", "bv", "bts"])

    return Text(sql, of)


def of_windows(rng: random.Random) -> Text:
    """Return windows of windows, of keys that all or some of them have."""
    (name, assigner, durations), (name2, assigner2, durations2) = _windows(rng), _windows(rng)
    keys = _keys(rng)
    few = rng.sample(keys, rng.randrange(len(keys) + 1))
    having, where = rng.choice(["", "c > 1"]), rng.choice(["", "s IS NOT NULL", "c + s > 0"])
    by, by2 = (
        f" PARTITION BY {', '.join(some)}" if each == "SESSION" and some else ""
        for each, some in ((name, keys), (name2, few))
    )
    inner = (
        f"SELECT {', '.join([*keys, 'window_time AS wt', 'window_end as e'])}, COUNT(*) AS c, "
        f"sum(v) AS s FROM {name}(TABLE t{by}, DESCRIPTOR(ts), {durations}) "
        f"GROUP BY {', '.join([*keys, 'window_start', 'window_end'])}"
        f"{' HAVING COUNT(*) > 1' if having else ''}"
    )
    in_front = rng.random() < 0.5
    table = f"TABLE {'q' if in_front else f'({inner})'}{by2}"
    items = [*few, "window_start", "SUM(c) AS cc", "MAX(s) AS ss", "MAX(e) AS ee"]
    sql = (
        f"{f'WITH q AS ({inner}) ' if in_front else ''}SELECT {', '.join(items)} "
        f"FROM {name2}({table}, DESCRIPTOR(wt), {durations2}){f' WHERE {where}' if where else ''} "
        f"GROUP BY {', '.join([*few, 'window_start', 'window_end'])}"
    )

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        outputs = (
            _windowed(tables["t"], keys, assigner)
            .with_outputs()
            .aggregate(c=gw.count(), s=gw.sum("v"))
        )
        chosen = outputs.select(*keys, "c", "s", e="window_end", where=having or "c > 0")
        rows = gw.stream_results(chosen).where(where or "c > 0")
        found = _windowed(rows, few, assigner2).aggregate(
            cc=gw.sum("c"), ss=gw.max("s"), ee=gw.max("e")
        )
        return found.select([*few, "window_start", "cc", "ss", "ee"])

    return Text(sql, of)


def rows_of_windows(rng: random.Random) -> Text:
    """Return rows with the windows that they are in."""
    name, assigner, durations = _windows(rng)
    keys = _keys(rng) if name == "SESSION" else []
    by = f" PARTITION BY {', '.join(keys)}" if keys else ""
    where = rng.choice(["", "v > 0", "window_end > TIMESTAMP '1970-01-01 00:00:05'", "x < v"])
    sql = (
        f"SELECT k, v + 1 AS w, window_start, WINDOW_TIME FROM {name}(TABLE t{by}, "
        f"DESCRIPTOR(ts), {durations}){f' WHERE {where}' if where else ''}"
    )

    def of(tables: Mapping[str, gw.typing.TimedStream]) -> pa.Table:
        before = where if where and "window" not in where else "true"
        after = where if "window" in where else "true"
        outputs = tables["t"].where(before).with_windows(assigner, partition_by=keys)
        chosen = outputs.select(
            "k", where=after, w="v + 1", window_start="window_start", WINDOW_TIME="window_time"
        )
        return chosen.result()

    return Text(sql, of)


KINDS = (
    rows_of_windows,
    aggregated,
    framed,
    first_rows,
    first_keys,
    in_time,
    with_versions,
    in_windows,
    of_windows,
)


def broken(rng: random.Random, sql: str) -> str:
    """Return a text with some of its words left out, doubled, changed places or replaced."""
    words = sql.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    for _ in range(rng.randrange(1, 4)):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(5):
            case 0 if len(words) > 2:
                del words[at]
            case 1:
                words.insert(at, words[other])
            case 2:
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = rng.choice(_WORDS)
            case _:
                words.insert(at, rng.choice(_WORDS))
    return " ".join(words)


_WORDS = (
    "k v x ts rn window_start window_time * 1 -1 0 2.5 NULL 'a' ( ) , . AS AND NOT IN CASE WHEN "
    "SUM COUNT ROW_NUMBER OVER PARTITION BY ORDER GROUP HAVING WHERE FROM SELECT JOIN ON LEFT "
    "INTERVAL '5' MINUTE MONTH DISTINCT LIMIT UNION ALL TABLE DESCRIPTOR TUMBLE HOP SESSION "
    "CUMULATE => zz `a b` + - / = <> BETWEEN a.v t u WITH LATERAL VALUES ROLLUP CUBE GROUPING SETS "
    "END GROUPING_ID() LAG FILTER IGNORE NULLS DESC USING EXISTS CAST :: FOR SYSTEM_TIME OF"
).split()
