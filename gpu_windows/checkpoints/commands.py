"""The commands ``gpu-windows state`` and ``gpu-windows checkpoint``; each returns its exit status.

It is 2 if the checkpoint cannot be read, or the command is refused, else 0.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from gpu_windows.checkpoints import read_state, report
from gpu_windows.checkpoints.commits import read_commits
from gpu_windows.checkpoints.copies import copy_checkpoint
from gpu_windows.checkpoints.rollback import roll_back
from gpu_windows.errors import GpuWindowsError

OK, BAD_INPUT = 0, 2


def run_state(checkpoint: str, *, stage: str | None, details: bool, json: bool) -> int:
    """Report the state in a checkpoint.

    Parameters
    ----------
    checkpoint, stage
        See `gpu_windows.read_state`.
    details : bool
        Whether to report every shard and every bucket, too.
    json : bool
        Whether to write JSON instead of tables.
    """

    def show(console: Console) -> None:
        with Console(stderr=True).status("Reading the state", spinner="dots"):  # on a terminal
            found = read_state(checkpoint, stage=stage)
        if json:
            _print_json(console, report.state_as_json(found, details=details))
        else:
            report.show_state(console, found, details=details)

    return _run(show)


def run_list(checkpoint: str, *, json: bool) -> int:
    """Report the commits of a checkpoint.

    Parameters
    ----------
    checkpoint : str
        See `gpu_windows.read_commits`.
    json : bool
        Whether to write JSON instead of a table.
    """

    def show(console: Console) -> None:
        commits = read_commits(checkpoint)
        if json:
            _print_json(console, report.commits_as_json(commits))
        else:
            console.print(report.commits_as_table(commits))

    return _run(show)


def run_back(checkpoint: str, sequence: int, *, output: str | None, again: bool) -> int:
    """Roll a checkpoint back: see `gpu_windows.checkpoints.roll_back`."""

    def show(console: Console) -> None:
        made = roll_back(checkpoint, sequence, output=output, again=again)
        text = f"Commit {made} has the state of commit {sequence}: a start resumes from it."
        console.print(text, highlight=False)

    return _run(show)


def run_copy(checkpoint: str, sequence: int, target: str) -> int:
    """Copy a checkpoint: see `gpu_windows.checkpoints.copy_checkpoint`."""

    def show(console: Console) -> None:
        copy_checkpoint(checkpoint, sequence, target)
        console.print(Text(f"A query on {target} resumes after commit {sequence}."), soft_wrap=True)

    return _run(show)


def _run(show: Callable[[Console], None]) -> int:
    try:
        show(Console())
    except GpuWindowsError as error:
        Console(stderr=True).print(Text(f"bad input: {error}"), soft_wrap=True)
        return BAD_INPUT
    return OK


def _print_json(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
