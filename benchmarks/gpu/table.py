"""The results as a page of Markdown, and in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gpu.drive import Outcome, Row
from benchmarks.gpu.targets import Verdict, judge

#: What the output shows of a step: lines, characters of each, and of one about a failure.
_LINES, _WIDTH, _FAILURE = 30, 150, 1_200
#: What says nothing that others do not say.
_UNSHOWN = ("what", "output", "ideal_bytes", "bytes")


def to_markdown(
    outcomes: Sequence[Outcome], facts: Mapping[str, Any], missing: Sequence[str]
) -> str:
    """Return a page: the machine, what was missing, the targets, and a table a step.

    Parameters
    ----------
    outcomes : sequence of Outcome
    facts : mapping
        Of the machine, to show in one line.
    missing : sequence of str
        What the machine lacked.
    """
    shown = ", ".join(f"{name} {value}" for name, value in facts.items() if value != "")
    lines = ["# Kernels and queries on a GPU", "", f"Made by `make gpu`. {shown}.", ""]
    lines += [f"Missing: {'; '.join(missing)}.", ""] if missing else []
    lines += ["## Targets", "", *_table([_of_target(v) for v in judge(outcomes)]), ""]
    for outcome in outcomes:
        lines += [f"## {outcome.step}: {outcome.about}", "", f"{_said(outcome)}.", ""]
        lines += [*_table(outcome.rows), ""] if outcome.rows else []
    return "\n".join(lines).rstrip() + "\n"


def _of_target(verdict: Verdict) -> Row:
    number = "" if verdict.found is None else verdict.found
    return {
        "target": verdict.target.name,
        "": verdict.word,
        "found": number,
        "wanted": f"{verdict.wanted} {verdict.target.measure}",
        "rows": verdict.rows or "",
    }


def _said(outcome: Outcome) -> str:
    status = f"{outcome.status[0].upper()}{outcome.status[1:]}"
    parts = [f"{status} after {outcome.seconds:.0f} of {outcome.budget_s:.0f} s", outcome.time]
    parts += [f"commit {outcome.commit}"] if outcome.commit else []
    parts += [f"{outcome.compiled} kernels compiled"] if outcome.compiled else []
    return ", ".join(part for part in parts if part)


def _table(rows: Sequence[Row]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row if name != "output"))
    lines = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    cells = ([_cell(row.get(name, "")) for name in names] for row in rows)
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells)]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " ".join(str(value).split())[:200].replace("|", "\\|")


def in_short(outcome: Outcome) -> list[str]:
    """Return lines about a step: of each thing that it measured the last, which is the largest."""
    last: dict[Any, Row] = {}
    for row in outcome.rows:
        kind = "failed" if "failed" in row else row.get("cache", row.get("device", ""))
        last[row["what"], kind] = row
    lines = [f"{outcome.step}: {_said(outcome)}", *(f"  {_brief(row)}" for row in last.values())]
    more = ["  ..."] if len(lines) > _LINES else []
    failed = [row["output"] for row in last.values() if "output" in row]
    written = (failed or [outcome.output])[0].strip()[-_FAILURE:]
    return [*lines[:_LINES], *more, *(f"  | {line}" for line in written.splitlines())]


def _brief(row: Row) -> str:
    named = (f"{name} {_cell(value)}" for name, value in row.items() if name not in _UNSHOWN)
    return f"{row['what']}: {', '.join(named)}"[: _FAILURE if "failed" in row else _WIDTH]
