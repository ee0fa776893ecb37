"""Reports the commits of a checkpoint as a table or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from gpu_windows.checkpoints.commits import CommitSummary
from gpu_windows.checkpoints.report import show_time

#: Mark of the newest commit.
_LAST = "→"
_NONE = "–"
_TEXTS = {"planned", "delivered", "lineage", "back"}
_LINEAGE_LETTERS = 8
_SECOND = 1_000_000


def as_json(commits: Sequence[CommitSummary]) -> str:
    """Return a JSON list of objects: the fields of `CommitSummary`, times as text in UTC."""
    return json.dumps(
        [
            {**asdict(each), "planned": None if each.planned is None else show_time(each.planned)}
            for each in commits
        ],
        indent=2,
    )


def as_table(commits: Sequence[CommitSummary]) -> Table:
    """Return a table with a line for each commit, the newest one marked."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in _cells(commits[0]):
        justify: JustifyMethod = "left" if name in _TEXTS else "right"
        table.add_column(name, justify=justify, no_wrap=name != "planned", overflow="fold")
    for each in commits:
        table.add_row(*map(Text, _cells(each).values()))
    return table


def _cells(commit: CommitSummary) -> dict[str, str]:
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
