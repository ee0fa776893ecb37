"""The results as a page of Markdown, and in short."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from benchmarks.gpu.drive import Outcome, Row
from benchmarks.gpu.targets import Verdict, judge

#: What the output shows of a step: lines, characters of each, and of one about a failure.
_LINES, _WIDTH, _FAILED = 60, 130, 300
_MORE = "  ..."
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


def in_short(outcome: Outcome, room: int, for_failures: int) -> tuple[list[str], int]:
    """Return lines about a step: of each thing that it measured the last, which is the largest.

    And the last whose result was wrong.

    Parameters
    ----------
    outcome : Outcome
    room : int
        Characters that the lines may have.
    for_failures : int
        Characters that may tell why something failed: each reason once, of the first one more.

    Returns
    -------
    lines : list of str
    of_failures : int
        Characters of the lines that tell why something failed.
    """
    last: dict[Any, Row] = {}
    for row in outcome.rows:
        kind = "failed" if "failed" in row else row.get("cache", row.get("device", ""))
        last[row["what"], kind, row.get("equal", True)] = row
    first = f"{outcome.step}: {_said(outcome)}"[:_WIDTH]
    room -= len(first) + 1
    most = max(min(for_failures, room), 0)
    failures = _fitting(_failures(outcome, most * 4 // 5), most)  # a fifth begins its lines
    of_failures = sum(len(line) + 1 for line in failures)
    lines = _fitting([f"  {_brief(row)}" for row in last.values()], room - of_failures)
    return [first, *lines, *failures], of_failures


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """Return the first of the lines, as many as may be; a mark if some had to go."""
    ends = [*accumulate(len(line) + 1 for line in lines)]
    count = min(bisect_right(ends, room), _LINES)
    if count == len(lines):
        return [*lines]
    return [*lines[: bisect_right(ends, room - len(_MORE) - 1, hi=count)], _MORE]


def _brief(row: Row) -> str:
    named = (f"{name} {_cell(value)}" for name, value in row.items() if name not in _UNSHOWN)
    return f"{row['what']}: {', '.join(named)}"[: _FAILED if "failed" in row else _WIDTH]


def _failures(outcome: Outcome, room: int) -> list[str]:
    """Return why things failed, from where each is told of; without that, the log's end."""
    reasons: dict[str, str] = {}
    for row in outcome.rows:
        if text := row.get("output", "").strip():
            reasons.setdefault(_reason(text), text)
    shown, most = [], room * 2 // 3 if len(reasons) > 1 else room
    for text in reasons.values():
        shown.append(text if len(text) <= most else _cut(text, most))
        most = room // 6
    written = shown or [outcome.output.strip()[-max(room, 1) :]]
    return [f"  | {line[:_WIDTH]}" for text in written for line in text.splitlines()]


def _reason(output: str) -> str:
    """Return the line that says what went wrong: pytest marks it; else the last one."""
    lines = output.strip().splitlines()
    return next((line for line in lines if line.startswith("E ")), lines[-1] if lines else "")


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, and a quarter as much of its end."""
    return f"{text[: most * 3 // 4]}\n...\n{text[-(most // 4) :]}"
