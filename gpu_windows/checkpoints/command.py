"""The command ``gpu-windows state``."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from gpu_windows.checkpoints import read_state
from gpu_windows.checkpoints.report import as_json, show
from gpu_windows.errors import GpuWindowsError

OK, BAD_INPUT = 0, 2


def run(checkpoint: str, *, stage: str | None, details: bool, json: bool) -> int:
    """Report the state in a checkpoint.

    Parameters
    ----------
    checkpoint, stage
        See `gpu_windows.read_state`.
    details : bool
        Whether to report every shard and every bucket, too.
    json : bool
        Whether to write JSON instead of tables.

    Returns
    -------
    int
        The exit status: 2 if the checkpoint cannot be read, else 0.
    """
    console, errors = Console(), Console(stderr=True)
    try:
        with errors.status("Reading the state", spinner="dots"):  # a terminal shows it
            found = read_state(checkpoint, stage=stage)
    except GpuWindowsError as error:
        errors.print(Text(f"bad input: {error}"), soft_wrap=True)
        return BAD_INPUT
    if json:
        console.print(
            as_json(found, details=details), soft_wrap=True, markup=False, highlight=False
        )
    else:
        show(console, found, details=details)
    return OK
