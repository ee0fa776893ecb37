"""Reports the contents of a checkpoint as tables or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from gpu_windows.checkpoints.summary import CheckpointState, Holding, ShardState

#: The parts of a query that come first; the others follow.
_FIRST = (
    "window", "time", "key", "trigger", "evictor", "lateness", "function", "strategy", "shards",
)  # fmt: skip
#: Fields that JSON has as times.
_TIMES = {"watermark", "next_call", "start", "end"}
_NONE = "–"


def show(console: Console, state: CheckpointState, *, details: bool) -> None:
    """Write tables: the query and its progress, then the tables of its state.

    Parameters
    ----------
    console : Console
    state : CheckpointState
    details : bool
        Whether to write the tables of every shard, too.
    """
    console.print(_facts(state))
    if state.batch is None:
        console.print("No micro-batch is committed yet.")
        return
    console.print()
    console.print(_tables(state.tables))
    if details:
        console.print(_shards(state.shards))


def as_json(state: CheckpointState, *, details: bool) -> str:
    """Return a JSON object: the fields of `CheckpointState`, times as text in UTC.

    Parameters
    ----------
    state : CheckpointState
    details : bool
        Whether ``shards`` are among them.
    """
    fields = asdict(state)
    if not details:
        del fields["shards"]
    return json.dumps(_with_times(fields), indent=2)


def show_time(ticks: int | None) -> str:
    """Format a time in UTC, without needless digits: ``2024-05-01T12:00:00.250Z``."""
    if ticks is None:
        return _NONE
    unit = "us" if ticks % 1_000 else "ms" if ticks % 1_000_000 else "s"
    return f"{np.datetime64(ticks, 'us').astype(f'datetime64[{unit}]')}Z"


def _with_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: show_time(each) if name in _TIMES and each is not None else _with_times(each)
            for name, each in value.items()
        }
    return [_with_times(each) for each in value] if isinstance(value, list | tuple) else value


# ---- tables


def _facts(state: CheckpointState) -> Table:
    table = Table(title=Text(state.checkpoint), title_justify="left", show_header=False, box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    first = {name: state.query[name] for name in _FIRST if name in state.query}
    facts = {**first, **state.query, "format": f"version {state.version}"}
    if state.batch is not None:
        facts["micro-batch"] = str(state.batch)
        facts["watermark"] = show_time(state.watermark)
    if state.next_call is not None:
        facts["next call"] = f"{show_time(state.next_call)}, if no rows come before"
    if state.stages:
        facts["earlier stages"] = ", ".join(state.stages)
    for name, value in facts.items():
        table.add_row(name, Text(value))
    return table


def _tables(tables: Sequence[Holding]) -> Table:
    lines = [
        [each.table, f"{each.shards:,}", f"{each.runs:,}", *_holding_cells(each)] for each in tables
    ]
    return _table("State", ("table", "shards", "runs"), lines)


def _shards(shards: Sequence[ShardState]) -> Table:
    """Return a line for each table of each shard."""
    lines = []
    for shard in shards:
        found = [[each.table, f"{each.runs:,}", *_holding_cells(each)] for each in shard.tables]
        numbers = [str(shard.shard), *[""] * (len(found) - 1)]
        lines += [[number, *line] for number, line in zip(numbers, found, strict=True)]
    return _table("Shards", ("shard", "table", "runs"), lines)


def _holding_cells(holding: Holding) -> list[str]:
    """Return the cells of `_COLUMNS`; tables show milliseconds."""
    counts = [f"{name} {count:,}" for name, count in sorted(holding.counts.items())]
    keys = _NONE if holding.keys is None else f"{holding.keys:,}"
    times = [
        None if each is None else each // 1_000 * 1_000 for each in (holding.start, holding.end)
    ]
    return [keys, _lines(counts), decimal(holding.size), _lines(map(show_time, times))]


_TIME = "from, to"
_COLUMNS = ("keys", "holds", "size", _TIME)
_NUMBERS = {"shard", "shards", "runs", "keys", "size"}


def _lines(cells: Iterable[str]) -> str:
    """Join cells by line breaks, equal ones once."""
    return "\n".join(dict.fromkeys(cells))


def _table(title: str, first: Sequence[str], lines: Iterable[Sequence[str]]) -> Table:
    """Return a table of columns ``first`` and `_COLUMNS`, for a terminal of 80 columns."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in (*first, *_COLUMNS):
        justify: JustifyMethod = "right" if name in _NUMBERS else "left"
        table.add_column(name, justify=justify, no_wrap=name != _TIME, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    return table
