"""Tells what came of the scenarios: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.conformance.compare import Difference, late_by_overflow
from tests.conformance.scenario import Fields
from tests.conformance.verdict import Status, Verdict

#: Differences of a failed scenario, and failed scenarios, that are shown.
SHOWN_DIFFERENCES, SHOWN_FAILURES = 3, 10


def print_report(verdicts: Sequence[Verdict], console: Console) -> None:
    """Print a table by family, why scenarios were skipped, and how the first ones failed.

    The last line is ``N passed, N failed, N skipped``.
    """
    families = sorted({v.scenario.family for v in verdicts})
    console.print(_summary(verdicts, families))
    skipped = [v for v in verdicts if v.status is Status.SKIPPED]
    if skipped:
        console.print(_skips(skipped))
    excused = [v for v in verdicts if v.strategy is not None and late_by_overflow(v.scenario)]
    if excused:
        console.print(
            "Rows that are late in Flink by overflow alone (timestamp + lateness wraps around) "
            f"were left out of the comparison; scenarios with such rows: {len(excused)}"
        )
    failed = [v for v in verdicts if v.status is Status.FAILED]
    for verdict in failed[:SHOWN_FAILURES]:
        _print_failure(verdict, console)
    if len(failed) > SHOWN_FAILURES:
        console.print(f"... and {len(failed) - SHOWN_FAILURES} more failures (see --json)")
    console.print(total_line(verdicts), highlight=False, soft_wrap=True)


def total_line(verdicts: Iterable[Verdict]) -> str:
    """Return ``N passed, N failed, N skipped``."""
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(f"{counts[status]} {status.value}" for status in Status)


def write_json(verdicts: Sequence[Verdict], path: Path, **how: str) -> None:
    """Write a JSON file: ``how`` it was run, the totals, and every scenario."""
    counts = Counter(verdict.status for verdict in verdicts)
    report = {
        **how,
        **{status.value: counts[status] for status in Status},
        "scenarios": [_plain(verdict) for verdict in verdicts],
    }
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _plain(verdict: Verdict) -> dict[str, object]:
    scenario = verdict.scenario
    return {
        "family": scenario.family,
        "name": scenario.name,
        "path": str(scenario.path),
        "status": verdict.status.value,
        "reason": verdict.reason,
        "strategy": None if verdict.strategy is None else verdict.strategy.value,
        "user_code": verdict.is_user_code,
        "late_by_overflow": len(late_by_overflow(scenario)),
        "differences": [
            {"what": d.what, "flink": d.flink, "ours": d.ours} for d in verdict.differences
        ],
    }


# ---- tables


def _table(title: str) -> Table:
    """Return an empty table, tight enough for a terminal of 80 columns."""
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _summary(verdicts: Sequence[Verdict], families: Sequence[str]) -> Table:
    table = _table("Conformance with Apache Flink")
    table.add_column("family", no_wrap=True)
    for header in (*(status.value for status in Status), "user\ncode"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("strategy", no_wrap=True)
    for family in families:
        of_family = [v for v in verdicts if v.scenario.family == family]
        table.add_row(Text(family), *_counts(of_family), _strategies(of_family))
    if len(families) > 1:
        table.add_section()
        table.add_row("all", *_counts(verdicts), _strategies(verdicts))
    return table


def _counts(verdicts: Sequence[Verdict]) -> list[Text]:
    counts = Counter(verdict.status for verdict in verdicts)
    user_code = sum(verdict.is_user_code for verdict in verdicts)
    cells = [Text(str(counts[status])) for status in Status]
    if counts[Status.FAILED]:
        cells[list(Status).index(Status.FAILED)].stylize("bold red")
    return [*cells, Text(str(user_code))]


def _strategies(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(v.strategy.value for v in verdicts if v.strategy is not None)
    return "\n".join(f"{name} {times}" for name, times in counts.most_common())


def _skips(skipped: Sequence[Verdict]) -> Table:
    table = _table("Skipped")
    table.add_column("family", no_wrap=True)
    table.add_column("scenarios", justify="right")
    table.add_column("reason", overflow="fold")
    counts = Counter((v.scenario.family, v.reason) for v in skipped)
    for family, rows in groupby(sorted(counts.items()), key=lambda row: row[0][0]):
        table.add_section()
        for (_, reason), times in rows:
            table.add_row(Text(family), str(times), Text(reason))
    return table


def _print_failure(verdict: Verdict, console: Console) -> None:
    console.print()
    title = Text.assemble(("FAILED ", "bold red"), str(verdict.scenario.path))
    console.print(title, soft_wrap=True)
    console.print(Text(verdict.reason), soft_wrap=True)
    if verdict.differences:
        console.print(_side_by_side(verdict.differences[:SHOWN_DIFFERENCES]))


def _side_by_side(differences: Sequence[Difference]) -> Table:
    table = Table("", show_lines=True)
    table.add_column("Flink", overflow="fold", ratio=1)
    table.add_column("gpu_windows", overflow="fold", ratio=1)
    for difference in differences:
        flink, ours = difference.flink, difference.ours
        table.add_row(difference.what, _fields(flink, ours), _fields(ours, flink))
    return table


def _fields(fields: Fields | None, others: Fields | None) -> Text:
    """Write fields one a line, those that differ from the other side's in red."""
    if fields is None:
        return Text("(nothing)", style="italic red")
    text = Text()
    for name, value in fields.items():
        differs = others is None or name not in others or others[name] != value
        text.append(f"{name} {json.dumps(value)}\n", style="red" if differs else "dim")
    text.rstrip()
    return text
