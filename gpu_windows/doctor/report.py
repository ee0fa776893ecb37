"""The report of the doctor: on the terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_windows.doctor.finding import Finding, Status

_MARKS = {
    Status.OK: Text("ok", "green"),
    Status.WARN: Text("warn", "yellow"),
    Status.FAIL: Text("fail", "bold red"),
}


def show(console: Console, findings: Sequence[Finding]) -> None:
    """Write a line for each finding, and under it how to mend it."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(finding.found)
        if finding.mend:
            text.append(f"\n→ {finding.mend}", "cyan")
        table.add_row(_MARKS[finding.status], finding.name, text)
    console.print(table)
    counts = {status: sum(f.status is status for f in findings) for status in Status}
    console.print(", ".join(f"{count} {status}" for status, count in counts.items()))


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings as a JSON list of objects: name, status, found, mend."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)
