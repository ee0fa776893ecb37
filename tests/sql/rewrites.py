"""Recorded statements of `tests/golden/rewrites`: Flink's rows of each, and ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.sql.query import SqlQuery

GOLDEN = Path(__file__).parents[1] / "golden"
INSTANT = pa.timestamp("us", "UTC")
MONOTONOUS = gw.WatermarkStrategy.for_bounded_out_of_orderness("10 seconds")
Scenario = dict[str, Any]


def scenarios(family: str) -> dict[str, Path]:
    """Return the recorded statements of a family, by name."""
    return {path.stem: path for path in sorted((GOLDEN / family).glob("*.json"))}


def tables(scenario: Scenario) -> dict[str, pa.Table]:
    """Return the rows of the tables: T, or L and R."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    names = {None: "T", "left": "L", "right": "R"}
    sides = [each.get("side") for each in scenario["input"] if "key" in each]
    for side in ("left", "right") if any(sides) else (None,):
        by_name[names[side]] = []
    for index, each in enumerate(scenario["input"]):
        if "key" in each:
            time = each["ts"]
            row = {"idx": index, "key": each["key"], "ts": time, "value": float(each["value"])}
            by_name[names[each.get("side")]].append({**row, "rt": time * 1_000})
    schema = pa.schema({"idx": pa.int32(), "key": pa.string(), "ts": pa.int64(),
                        "value": pa.float64(), "rt": pa.int64()})  # fmt: skip
    made = {name: pa.Table.from_pylist(rows, schema) for name, rows in by_name.items()}
    return {
        name: rows.set_column(4, "rt", rows.column("rt").cast(INSTANT))
        for name, rows in made.items()
    }


def ask(scenario: Scenario, as_source: Callable[[pa.Table], Any] = lambda rows: rows) -> SqlQuery:
    """Return the statement over its tables."""
    streams = {
        name: gw.stream(as_source(rows)).event_time("rt", MONOTONOUS)
        for name, rows in tables(scenario).items()
    }
    return gw.sql(scenario["sql"], **streams).arrival_order("idx")


def of_flink(scenario: Scenario) -> tuple[list[str], Counter[str]]:
    """Return the names and the rows of Flink's last table."""
    rows: Counter[str] = Counter()
    names: list[str] = []
    for each in scenario["expected"]:
        row = {k: v for k, v in each.items() if k not in ("op", "wm", "timestamp")}
        names = [*row]
        text = _text(row)
        rows[text] += 1 if each["op"] in ("+I", "+U") else -1
    assert min(rows.values(), default=0) >= 0
    return names, +rows


def of_ours(table: pa.Table) -> tuple[list[str], Counter[str]]:
    """Return the names and the rows of a result."""
    return table.column_names, Counter(map(_text, table.to_pylist()))


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps([[name, _plain_value(value)] for name, value in row.items()])


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return float(pa.scalar(value, INSTANT).cast(pa.int64()).as_py() // 1_000)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    return value
