"""The JSON of a machine: a run replaces the outcomes of the steps that it took, and no others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.gpu.drive import STEPS, Outcome, as_dict
from benchmarks.gpu.launch import NAME
from benchmarks.gpu.table import in_short, to_markdown

#: Characters of all steps in the output, at the least of one, and of all that tell of failures:
#: what calls it may keep no more than the last 12,000.
_ROOM, _A_STEP, _FOR_FAILURES = 10_300, 160, 5_000

_FIELDS = {field.name for field in fields(Outcome)}


class OtherMachineError(Exception):
    """Results to go on from that another GPU gave; the text says which."""


class Results:
    """Writes all outcomes as each step ends, and lines about it.

    Parameters
    ----------
    file, table : Path, optional
        Of the JSON and of the Markdown; what is not given is not written.
    facts : mapping
        What the JSON says of the run: "machine", "versions", "missing" and others.
    before : sequence of Outcome
        Of earlier runs on this machine.
    """

    def __init__(
        self,
        file: Path | None,
        table: Path | None,
        facts: Mapping[str, Any],
        before: Sequence[Outcome],
    ) -> None:
        self._json, self._table = file, table
        self._facts = facts
        self._before = before
        self._room, self._for_failures = _ROOM, _FOR_FAILURES
        self.all: Sequence[Outcome] = before

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Write the outcomes so far, together with the earlier ones."""
        self._print(outcomes[-1], later=max(len(STEPS) + 1 - len(outcomes), 0))
        self.all = merged(self._before, outcomes)
        if self._json is not None:
            whole = {**self._facts, "steps": as_dict(self.all)}
            self._json.write_text(json.dumps(whole, indent=1) + "\n")
        if self._table is not None:
            shown = {**self._facts["machine"], **self._facts["versions"]}
            self._table.write_text(to_markdown(self.all, shown, self._facts["missing"]))

    def _print(self, outcome: Outcome, later: int) -> None:
        """Print a step in short; of what is left for failures it has half, if it needs that."""
        room = self._room - _A_STEP * later
        lines, of_failures = in_short(outcome, room, self._for_failures // 2)
        self._for_failures -= of_failures
        self._room -= sum(len(line) + 1 for line in lines)
        print(*lines, sep="\n", flush=True)


def merged(before: Sequence[Outcome], now: Sequence[Outcome]) -> list[Outcome]:
    """Return the last outcome of every step, in the order of the steps.

    A step that got nowhere, or had no time for all that it measured earlier, leaves that.
    """
    found = {outcome.step: outcome for outcome in before}
    for outcome in now:
        earlier = len(found.get(outcome.step, outcome).rows)
        least = {"done": 0, "failed": 1, "stopped": earlier}[outcome.status]
        if len(outcome.rows) >= min(least, earlier):
            found[outcome.step] = outcome
    known = [NAME, *(step.name for step in STEPS)]
    order = sorted(found, key=lambda name: known.index(name) if name in known else len(known))
    return [found[name] for name in order]


def read(file: Path | None, gpu: str) -> list[Outcome]:
    """Return the outcomes that a file holds; none if there is no file.

    Raises
    ------
    OtherMachineError
        If they are of another GPU.
    """
    if file is None or not file.exists():
        return []
    whole = json.loads(file.read_text())
    if whole["machine"]["gpu"] != gpu:
        raise OtherMachineError(f"{file} is of {whole['machine']['gpu'] or 'no GPU'}, not of {gpu}")
    kept = [{k: v for k, v in step.items() if k in _FIELDS} for step in whole["steps"]]
    return [Outcome(**step) for step in kept]
