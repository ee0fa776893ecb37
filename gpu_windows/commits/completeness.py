"""Checks the number of rows in the files of a micro-batch against its commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from gpu_windows.commits.records import Commit
from gpu_windows.errors import OutputError, QueryError

logger = logging.getLogger(__name__)
#: How to treat missing rows.
Missing = Literal["raise", "skip"]
#: Names of files to the rows in their footers; None for a file without a footer.
FileRows = Mapping[str, int | None]


def check_missing(missing: object) -> None:
    """Raise `QueryError` for a value that is not one of `Missing`."""
    if missing not in get_args(Missing):
        raise QueryError('missing is "raise" or "skip"', value=repr(missing))


def check_generations(path: str, generations: Sequence[int]) -> None:
    """Raise `OutputError` if the record of a query that wrote to a path is missing.

    ``generations``: those of existing records, in order.
    """
    gone = sorted({*range(generations[-1])} - {*generations})
    if gone:
        rule = (
            "a path has a record of each query that wrote there: files were removed. Put them "
            'back, or read what is left by missing="skip"'
        )
        raise OutputError(rule, value=f"{path}: no generation {', '.join(map(str, gone))}")


def select_files(
    path: str, commit: Commit, output: str, files: FileRows, missing: Missing
) -> list[str]:
    """Return the files of a micro-batch's output that can be read, in order.

    Parameters
    ----------
    path : str
        Of the results.
    commit : Commit
        It has this output.
    output : str
    files : FileRows
        In the output's folder now.
    missing : {"raise", "skip"}
        How to treat missing rows.

    Raises
    ------
    OutputError
        If there are fewer rows than were written, and they are not skipped; or more.
    """
    part = commit.outputs[output]
    readable = {name: rows for name, rows in sorted(files.items()) if rows is not None}
    found = sum(readable.values())
    if found > part.rows or (found < part.rows and missing == "raise"):
        rule = (
            f"micro-batch {commit.number} has written {part.rows} rows of the output {output}, and "
            f"its files have {found} now: files were removed, replaced or added. Put them back"
        )
        skipped = ', or read what is left by missing="skip"' if found < part.rows else ""
        raise OutputError(rule + skipped, value=f"{path}/{part.folder}: {_describe_files(files)}")
    if found < part.rows:
        logger.warning(
            "%d of %d rows of micro-batch %d are left out: %s/%s: %s",
            *(
                part.rows - found,
                part.rows,
                commit.number,
                path,
                part.folder,
                _describe_files(files),
            ),
        )
    return list(readable)


def _describe_files(files: FileRows) -> str:
    descriptions = (
        f"{name} {'cannot be read' if rows is None else f'has {rows}'}"
        for name, rows in sorted(files.items())
    )
    return ", ".join(descriptions) or "no file"
