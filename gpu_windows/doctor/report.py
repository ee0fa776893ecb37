"""Reports findings on the terminal or as JSON."""

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
