"""Reports the contents of a checkpoint, and its commits, as tables or JSON."""

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

from gpu_windows.checkpoints.commits import CommitSummary
from gpu_windows.checkpoints.summary import CheckpointState, Holding, ShardState

#: The parts of a query that come first; the others follow.
_FIRST = (
    "window", "time", "key", "trigger", "evictor", "lateness", "function", "strategy", "shards",
)  # fmt: skip
#: Fields that JSON has as times.
_TIMES = {"watermark", "next_call", "start", "end", "planned"}
_NONE = "–"
#: Columns of text, and those that are wrapped where a terminal is narrow.
_TEXTS = {"table", "holds", "from, to", "planned", "delivered", "lineage", "back"}
_WRAPPED = {"from, to", "planned"}
#: Columns of every table of state.
_HOLDINGS = ("keys", "holds", "size", "from, to")
#: Mark of the newest commit, and how much of a lineage is shown.
_LAST, _LINEAGE_LETTERS = "→", 8
_SECOND = 1_000_000


def show_state(console: Console, state: CheckpointState, *, details: bool) -> None:
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


def state_as_json(state: CheckpointState, *, details: bool) -> str:
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


def commits_as_json(commits: Sequence[CommitSummary]) -> str:
    """Return a JSON list of objects: the fields of `CommitSummary`, times as text in UTC."""
    return json.dumps(_with_times(list(map(asdict, commits))), indent=2)


def commits_as_table(commits: Sequence[CommitSummary]) -> Table:
    """Return a table with a line for each commit, the newest one marked."""
    lines = [_commit_cells(each) for each in commits]
    return _table([*lines[0]], [[*each.values()] for each in lines])


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
    return _table(("table", "shards", "runs", *_HOLDINGS), lines, "State")


def _shards(shards: Sequence[ShardState]) -> Table:
    """Return a line for each table of each shard."""
    lines = []
    for shard in shards:
        found = [[each.table, f"{each.runs:,}", *_holding_cells(each)] for each in shard.tables]
        numbers = [str(shard.shard), *[""] * (len(found) - 1)]
        lines += [[number, *line] for number, line in zip(numbers, found, strict=True)]
    return _table(("shard", "table", "runs", *_HOLDINGS), lines, "Shards")


def _holding_cells(holding: Holding) -> list[str]:
    """Return the cells of `_HOLDINGS`; tables show milliseconds."""
    counts = [f"{name} {count:,}" for name, count in sorted(holding.counts.items())]
    keys = _NONE if holding.keys is None else f"{holding.keys:,}"
    times = [
        None if each is None else each // 1_000 * 1_000 for each in (holding.start, holding.end)
    ]
    return [keys, _lines(counts), decimal(holding.size), _lines(map(show_time, times))]


def _commit_cells(commit: CommitSummary) -> dict[str, str]:
    """Return the cells of a commit by column; files are shown as ``count: bytes``."""
    planned = commit.planned
    return {
        "commit": f"{_LAST} {commit.sequence}" if commit.is_last else str(commit.sequence),
        "batch": _NONE if commit.batch is None else str(commit.batch),
        "planned": show_time(None if planned is None else planned // _SECOND * _SECOND),
        "rows": f"{commit.rows:,}",
        "results": f"{commit.result_files:,}: {decimal(commit.result_bytes)}",
        "delivered": "yes" if commit.is_delivered else "no",
        "state": f"{commit.state_files:,}: {decimal(commit.state_bytes)}",
        "lineage": commit.lineage[:_LINEAGE_LETTERS],
        "back": "yes" if commit.can_resume else "no",
    }


def _lines(cells: Iterable[str]) -> str:
    """Join cells by line breaks, equal ones once."""
    return "\n".join(dict.fromkeys(cells))


def _table(
    columns: Sequence[str], lines: Iterable[Sequence[str]], title: str | None = None
) -> Table:
    """Return a table for a terminal of 80 columns."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        justify: JustifyMethod = "left" if name in _TEXTS else "right"
        table.add_column(name, justify=justify, no_wrap=name not in _WRAPPED, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    return table
