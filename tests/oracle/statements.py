"""Random statements of SQL over the table T."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.parts import Part
from tests.oracle.streams import Shape, around

Statement = tuple[Part, Shape, dict[str, Any]]

#: Without it Flink aggregates in two phases, and loses windows that a watermark up to 1970 fires.
ONE_PHASE = {"table.optimizer.agg-phase-strategy": "ONE_PHASE"}


def _interval(ms: int) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"INTERVAL '{seconds}.{rest:03d}' SECOND(3, 3)"


def _shape(rng: random.Random, grid_ms: int, *, gap: bool) -> Shape:
    records, step = rng.choice([20, 60, 120, 200]), rng.choice([100, 600])
    return Shape(records, step, grid_ms, echoes=around(grid_ms) if gap else (0,))


def window_tvf(rng: random.Random) -> Statement:
    """Return aggregates of the windows of each key."""
    kind, ms = rng.choice(["tumble", "hop", "cumulate", "session"]), rng.choice([1000, 2000, 2500])
    sizes = {
        "tumble": {"size_ms": 4 * ms},
        "hop": {"slide_ms": ms, "size_ms": 3 * ms},
        "cumulate": {"step_ms": ms, "size_ms": 4 * ms},
        "session": {"gap_ms": ms},
    }[kind]
    offset = rng.choice([0, 0, rng.randint(1, ms - 1)]) if kind != "session" else 0
    tvf = {"type": kind, **sizes, **({"offset_ms": offset} if offset else {})}
    durations = ", ".join(map(_interval, [*sizes.values(), *([offset] if offset else [])]))
    table = "TABLE T PARTITION BY `key`" if kind == "session" else "TABLE T"
    sql = (
        "SELECT `key`, window_start, window_end, SUM(`value`) AS s, COUNT(*) AS c, "
        f"MAX(`value`) AS m, MIN(`value`) AS mi FROM {kind.upper()}({table}, DESCRIPTOR(rt), "
        f"{durations}) GROUP BY `key`, window_start, window_end"
    )
    operator = {
        "kind": "window_tvf",
        "tvf": tvf,
        "group_by": ["key", "window"],
        "agg": ["sum", "count", "max", "min"],
    }
    shape = _shape(rng, ms, gap=kind == "session")
    return operator, shape, {"sql": sql, "sql_options": rng.choice([{}, ONE_PHASE])}


def grouping_sets(rng: random.Random) -> Statement:
    """Return aggregates of the windows of each key and of all rows."""
    while True:
        operator, shape, more = window_tvf(rng)
        if operator["tvf"]["type"] != "session":
            break
    of_windows = more["sql"].replace("SELECT `key`,", "SELECT `key`, GROUPING(`key`) AS g,")
    by = "GROUP BY window_start, window_end, GROUPING SETS ((`key`), ())"
    sql = of_windows.replace("GROUP BY `key`, window_start, window_end", by)
    asked = {**operator, "group_by": ["key or none", "window"]}
    return asked, shape, {"sql": sql, "sql_options": ONE_PHASE}


def group_window(rng: random.Random) -> Statement:
    """Return aggregates of the windows of GROUP BY, the way before there were TVFs."""
    kind, ms = rng.choice(["TUMBLE", "HOP", "SESSION"]), rng.choice([1000, 2000, 2500])
    durations = {"TUMBLE": [4 * ms], "HOP": [ms, 3 * ms], "SESSION": [ms]}[kind]
    of = f"rt, {', '.join(map(_interval, durations))}"
    sql = (
        f"SELECT `key`, {kind}_START({of}) AS ws, {kind}_END({of}) AS we, SUM(`value`) AS s, "
        f"COUNT(*) AS c FROM T GROUP BY `key`, {kind}({of})"
    )
    operator = {
        "kind": "group_window",
        "window": f"{kind}({of})",
        "group_by": ["key", "window"],
        "agg": ["sum", "count"],
    }
    return operator, _shape(rng, ms, gap=kind == "SESSION"), {"sql": sql}


def over(rng: random.Random) -> Statement:
    """Return aggregates over the rows before each row."""
    choices = [("range", rng.choice([1, 1000, 5000])), ("rows", rng.randint(1, 5))]
    frame, preceding = rng.choice([*choices, ("range", None), ("rows", None)])
    in_time = frame == "range" and preceding is not None
    bound = _interval(preceding) if in_time and preceding else preceding or "UNBOUNDED"
    operator = {
        "kind": "over",
        "partition_by": "key",
        "order_by": "ts",
        "frame": frame,
        "preceding": preceding,
        "agg": ["sum", "count", "max", "min"],
    }
    sql = (
        "SELECT `key`, ts, `value`, idx AS seq, SUM(`value`) OVER w AS s, COUNT(*) OVER w AS c, "
        "MAX(`value`) OVER w AS m, MIN(`value`) OVER w AS mi FROM T WINDOW w AS (PARTITION BY "
        f"`key` ORDER BY rt {frame.upper()} BETWEEN {bound} PRECEDING AND CURRENT ROW)"
    )
    return operator, _shape(rng, 1000, gap=False), {"sql": sql}


def over_distinct(rng: random.Random) -> Statement:
    """Return how many different values there are in the rows before each row."""
    while True:
        operator, shape, more = over(rng)
        if operator["preceding"] is not None:
            break
    begin, end = more["sql"].index("SUM("), more["sql"].index(" FROM T ")
    counts = "COUNT(*) OVER w AS c, COUNT(DISTINCT `value`) OVER w AS cd"
    sql = f"{more['sql'][:begin]}{counts}{more['sql'][end:]}"
    return {**operator, "agg": ["count", "count_distinct"]}, shape, {"sql": sql}


def window_dedup(rng: random.Random) -> Statement:
    """Return the first or the last row of each key and window."""
    keep, ms = rng.choice(["first", "last"]), rng.choice([500, 2000, 10_000])
    numbered = _numbered("`key`, window_start", f"rt {'ASC' if keep == 'first' else 'DESC'}", ms)
    sql = f"SELECT `key`, ts, `value`, window_start, window_end FROM ({numbered}) WHERE rn = 1"
    operator = {"kind": "window_dedup", "keep": keep, "size_ms": ms}
    return operator, _shape(rng, ms, gap=False), {"sql": sql}


def window_top_n(rng: random.Random) -> Statement:
    """Return the rows of each window with the greatest values."""
    count, ms = rng.choice([1, 2, 3, 10]), rng.choice([500, 2000, 10_000])
    numbered = _numbered("window_start", "`value` DESC", ms)
    sql = (
        "SELECT `key`, ts, `value`, window_start, window_end, rn "
        f"FROM ({numbered}) WHERE rn <= {count}"
    )
    operator = {"kind": "window_top_n", "n": count, "size_ms": ms}
    return operator, _shape(rng, ms, gap=False), {"sql": sql}


def top_n(rng: random.Random) -> Statement:
    """Return the first rows of each key, as they change."""
    count, numbered = rng.choice([1, 2, 3, 10]), rng.random() < 0.5
    orders = (["value desc"], ["value asc"], ["value desc", "ts asc"], ["value asc", "ts desc"])
    order = rng.choice(orders)
    by = ", ".join(f"`{column}` {way}" for column, way in map(str.split, order))
    row = "`key`, ts, `value`, idx AS seq"
    sql = (
        f"SELECT {row}{', rn' if numbered else ''} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
        f"`key` ORDER BY {by}) AS rn FROM T) WHERE rn <= {count}"
    )
    operator = {"kind": "top_n", "n": count, "order": order, "numbered": numbered}
    return operator, _shape(rng, 1000, gap=False), {"sql": sql}


def _numbered(partition: str, order: str, ms: int) -> str:
    """Return the rows of windows with their numbers."""
    return (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition}, window_end ORDER BY {order}) "
        f"AS rn FROM TUMBLE(TABLE T, DESCRIPTOR(rt), {_interval(ms)})"
    )


def temporal_sort(rng: random.Random) -> Statement:
    """Return all rows in order of their time."""
    sql = "SELECT `key`, ts, `value`, idx AS seq FROM T ORDER BY rt"
    return {"kind": "temporal_sort"}, _shape(rng, 1000, gap=False), {"sql": sql}
