"""Findings of checks, functions that checks share, and reports of findings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata

from rich.console import Console
from rich.table import Table
from rich.text import Text

#: A version, to its leading numbers: ``"13.4.92"`` is ``(13, 4, 92)``.
Version = tuple[int, ...]


class Status(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Parameters
    ----------
    name : str
        What was checked.
    status : Status
        ``fail``: something of this package cannot work; ``warn``: it works worse than it could,
        or a part of it does not.
    found : str
        What was found.
    mend : str
        What to do about it, in one line; empty if nothing.
    """

    name: str
    status: Status
    found: str
    mend: str = ""


def ok(name: str, found: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(name, Status.OK, found)


def warn(name: str, found: str, mend: str) -> Finding:
    """Return a finding that had better be mended."""
    return Finding(name, Status.WARN, found, mend)


def fail(name: str, found: str, mend: str) -> Finding:
    """Return a finding that must be mended."""
    return Finding(name, Status.FAIL, found, mend)


def run_check(name: str, check: Callable[[], Finding]) -> Finding:
    """Run a check; an error in it becomes a finding."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks still run
        return fail(name, f"the check itself failed: {first_line(error)}", "report this")


def parse_version(text: str) -> Version:
    """Return the leading numbers of a version."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def show_versions(versions: Mapping[str, str]) -> str:
    """Write names and versions on one line."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


# ---- reports

_MARKS = {
    Status.OK: Text("ok", "green"),
    Status.WARN: Text("warn", "yellow"),
    Status.FAIL: Text("fail", "bold red"),
}
#: Columns that the longest mark takes.
_WIDTH = max(map(len, _MARKS.values()))


def show(console: Console, findings: Sequence[Finding]) -> None:
    """Write each finding, and under it how to mend it: in a line that can be copied as it is."""
    longest = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(no_wrap=True, width=_WIDTH)
        table.add_column(no_wrap=True, style="bold", width=longest)
        table.add_column(overflow="fold")
        table.add_row(_MARKS[finding.status], finding.name, Text(finding.found))
        console.print(table)
        if finding.mend:
            indent = " " * (_WIDTH + 2)
            console.print(Text(f"{indent}→ {finding.mend}", "cyan"), soft_wrap=True)
    counts = {status: sum(f.status is status for f in findings) for status in Status}
    console.print(", ".join(f"{count} {status}" for status, count in counts.items()))


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings as a JSON list of objects: name, status, found, mend."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)
