"""The commands ``gpu-windows checkpoint``."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from gpu_windows.checkpoints.command import BAD_INPUT, OK
from gpu_windows.checkpoints.commit_report import as_json, as_table
from gpu_windows.checkpoints.commits import read_commits
from gpu_windows.checkpoints.copies import copy_checkpoint
from gpu_windows.checkpoints.rollback import roll_back
from gpu_windows.errors import GpuWindowsError


def run_list(checkpoint: str, *, json: bool) -> int:
    """Report the commits of a checkpoint; return the exit status.

    Parameters
    ----------
    checkpoint : str
        See `gpu_windows.read_commits`.
    json : bool
        Whether to write JSON instead of a table.
    """

    def report(console: Console) -> None:
        commits = read_commits(checkpoint)
        if json:
            console.print(as_json(commits), soft_wrap=True, markup=False, highlight=False)
        else:
            console.print(as_table(commits))

    return _run(report)


def run_back(checkpoint: str, sequence: int, *, output: str | None, again: bool) -> int:
    """Roll a checkpoint back; return the exit status. See `gpu_windows.checkpoints.roll_back`."""

    def report(console: Console) -> None:
        made = roll_back(checkpoint, sequence, output=output, again=again)
        text = f"Commit {made} has the state of commit {sequence}: a start resumes from it."
        console.print(text, highlight=False)

    return _run(report)


def run_copy(checkpoint: str, sequence: int, target: str) -> int:
    """Copy a checkpoint; return the exit status. See `gpu_windows.checkpoints.copy_checkpoint`."""

    def report(console: Console) -> None:
        copy_checkpoint(checkpoint, sequence, target)
        console.print(Text(f"A query on {target} resumes after commit {sequence}."), soft_wrap=True)

    return _run(report)


def _run(report: Callable[[Console], None]) -> int:
    errors = Console(stderr=True)
    try:
        report(Console())
    except GpuWindowsError as error:
        errors.print(Text(f"bad input: {error}"), soft_wrap=True)
        return BAD_INPUT
    return OK
