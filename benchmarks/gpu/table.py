"""The results as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gpu.drive import Outcome, Row


def to_markdown(
    outcomes: Sequence[Outcome], facts: Mapping[str, Any], missing: Sequence[str]
) -> str:
    """Return a page: the machine, what was missing, and a table a step.

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
    for outcome in outcomes:
        lines += [f"## {outcome.step}: {outcome.about}", ""]
        said = f"{outcome.status} after {outcome.seconds:.0f} of {outcome.budget_s:.0f} s"
        lines += [f"{said[0].upper()}{said[1:]}.", ""]
        lines += [*_table(outcome.rows), ""] if outcome.rows else []
    return "\n".join(lines).rstrip() + "\n"


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
