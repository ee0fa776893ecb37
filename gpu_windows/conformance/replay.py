"""Replays a scenario on an operator, Arrow in and Arrow out; a tick is a millisecond."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_windows.conformance.cases import Case
from gpu_windows.conformance.scenario import ProcessingTime, Record, Scenario, Watermark
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.options import Device
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import LONG_MAX, LONG_MIN


@dataclass(frozen=True)
class Replayed:
    """What came of a scenario, in the words of scenario files.

    ``step`` is None where a batch of several rows does not tell which of them fired. ``left`` is
    the state that is held after the end of the input; not of windows that do not end with it.
    """

    emissions: tuple[dict[str, Any], ...]
    late: tuple[dict[str, Any], ...]
    sides: Mapping[str, tuple[dict[str, Any], ...]]
    counters: Counters
    left: dict[str, int]


def replay(
    scenario: Scenario,
    plan: Plan,
    case: Case,
    *,
    device: Device = "auto",
    split: int | None = None,
) -> Replayed:
    """Run a scenario through the operator of a plan.

    Parameters
    ----------
    scenario : Scenario
    plan : Plan
        The plan of its query.
    case : Case
    device : {"auto", "cpu", "cuda"}
        Where kernels run.
    split : int, optional
        Most rows a batch. Default: all rows between two watermarks are one batch.
    """
    operator = build_operator(plan, trace=True, device=device)
    emissions: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    sides: dict[str, list[dict[str, Any]]] = {tag: [] for tag in plan.query.side_outputs}
    counters = Counters()
    for part in parts_of(scenario, ends_of(scenario), split):
        step: int | None = None
        if isinstance(part, Watermark):
            step, emitted = part.seq, operator.advance_watermark(part.time)
        elif isinstance(part, ProcessingTime):
            step, emitted = part.seq, operator.advance_processing_time(part.time)
        else:
            # of a statement only the watermark before a row is known: one for all of them
            step = part[0].seq if len(part) == 1 or scenario.is_statement else None
            emitted = operator.process(case.batch(part, plan))
        for emission in emitted:
            emissions += _emissions(emission, step, case)
            late += _late(emission, scenario, case)
            for tag, rows in emission.sides.items():
                sides[tag] += map(case.emission, rows.to_pylist())
            counters += emission.counters
    left = operator.state_size() if plan.query.ends_with_time else {}
    aside = {tag: tuple(rows) for tag, rows in sides.items()}
    return Replayed(tuple(emissions), tuple(late), aside, counters, left)


def ends_of(scenario: Scenario) -> tuple[Watermark, ...]:
    """Return how the input ends: where process functions see two, the left one ends first."""
    sides = ("left", "right") if scenario.operator.kind == "co_process" else (None,)
    return tuple(Watermark(len(scenario.input), LONG_MAX, side) for side in sides)


def parts_of(
    scenario: Scenario, ends: Sequence[Watermark], split: int | None
) -> Iterator[list[Record] | Watermark | ProcessingTime]:
    """Yield runs of records and the markers between them, the end of input last.

    A watermark of one side is the least of both.
    """
    run: list[Record] = []
    reached = dict.fromkeys(("left", "right"), LONG_MIN)
    for element in (*scenario.input, *ends):
        if isinstance(element, Record):
            run.append(element)
            continue
        size = split or len(run) or 1
        yield from (run[i : i + size] for i in range(0, len(run), size))
        run = []
        if isinstance(element, Watermark):
            for side in reached if element.side is None else (element.side,):
                reached[side] = max(reached[side], element.time)
            yield Watermark(element.seq, min(reached.values()))
        else:
            yield element


def _emissions(emission: Emission, step: int | None, case: Case) -> Iterator[dict[str, Any]]:
    for row in emission.results.to_pylist():
        by_timer = row["fired"] != "element"
        yield {
            "step": case.step_of(row, step),
            "fired": row["fired"],
            **({"fired_time": row["fired_time"]} if by_timer else {}),
            **case.emission(row),
        }


def _late(emission: Emission, scenario: Scenario, case: Case) -> Iterator[dict[str, Any]]:
    """Yield the late rows, completed from the scenario by their order of arrival."""
    for row in emission.late.to_pylist():
        seq = case.seq_of(row)
        record = scenario.input[seq]
        assert isinstance(record, Record)
        whole = {"key": record.key, "ts": record.ts, "value": record.value, "seq": seq}
        given = {name: row[name] for name in whole if name in row}
        yield {"step": seq, **whole, **given}
