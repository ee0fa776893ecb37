"""Replays a scenario on an operator, Arrow in and Arrow out; a tick is a millisecond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.process.base import FunctionOperator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.options import Device, Engine
from tests.conformance.cases import Case
from tests.conformance.scenario import (
    Element,
    ProcessingTime,
    Record,
    Restart,
    Scenario,
    Watermark,
)
from tests.reference.run import reference_operator

#: A part of a scenario: what operators are called with, or stopped by.
Piece = list[Record] | Watermark | ProcessingTime | Restart
#: Kinds of two inputs, of which a watermark of both reaches the left one first.
_ONE_BY_ONE = ("co_process", "broadcast_process")


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
    engine: Engine = "auto",
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
    engine : {"auto", "reference"}
        "reference": by `tests.reference`; then the plan is a `tests.reference.run.reference_plan`.
    split : int, optional
        Most rows a batch. Default: all rows between two watermarks are one batch.
    """
    running = _Running(plan, device, engine, stored=scenario.is_restarted)
    emissions: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    sides: dict[str, list[dict[str, Any]]] = {tag: [] for tag in plan.query.side_outputs}
    counters = Counters()
    for part in parts_of(elements_of(scenario), split):
        step = _step(part, scenario)
        for emission in running.given(part, case):
            emissions += _emissions(emission, step, case)
            late += _late(emission, scenario, case)
            for tag, rows in emission.sides.items():
                sides[tag] += map(case.emission, rows.to_pylist())
            counters += emission.counters
    left = running.operator.state_size() if plan.query.ends_with_time else {}
    aside = {tag: tuple(rows) for tag, rows in sides.items()}
    return Replayed(tuple(emissions), tuple(late), aside, counters, left)


class _Running:
    """The operator that runs: another one after each restart."""

    def __init__(self, plan: Plan, device: Device, engine: Engine, *, stored: bool) -> None:
        self._plan, self._device, self._engine = plan, device, engine
        self._log = MemoryLog()
        self.operator = self._restored() if stored else self._built()

    def given(self, part: Piece, case: Case) -> Iterable[Emission]:
        """Return what a part of the scenario gives."""
        match part:
            case Watermark():
                return self.operator.advance_watermark(part.time)
            case ProcessingTime():
                return self.operator.advance_processing_time(part.time)
            case Restart():
                self._restart()
                return ()
            case _:
                rows = self.operator.process(case.batch(part, self._plan))
                return chain(rows, self.operator.end_rows())

    def _restart(self) -> None:
        assert isinstance(self.operator, FunctionOperator)
        self.operator.save()
        self.operator.close()
        self.operator = self._restored()
        self.operator.forget_watermark()

    def _built(self) -> Operator:
        if self._engine == "reference":
            return reference_operator(self._plan, trace=True)
        return build_operator(self._plan, trace=True, device=self._device)

    def _restored(self) -> FunctionOperator:
        operator = self._built()
        assert isinstance(operator, FunctionOperator)
        operator.restore(self._log)
        return operator


def _step(part: Piece, scenario: Scenario) -> int | None:
    """Return which element a part is; None if it is several."""
    if not isinstance(part, list):
        return part.seq
    # of a statement only the watermark before a row is known: one for all of them
    return part[0].seq if len(part) == 1 or scenario.is_statement else None


def elements_of(scenario: Scenario) -> Iterator[Element]:
    """Yield the input and its end, as they reach the operator."""
    one_by_one = scenario.operator.kind in _ONE_BY_ONE
    for element in (*scenario.input, Watermark(len(scenario.input), LONG_MAX)):
        if one_by_one and isinstance(element, Watermark) and element.side is None:
            yield from (replace(element, side=side) for side in ("left", "right"))
        else:
            yield element


def most_rows(scenario: Scenario) -> int | None:
    """Return how many rows a micro-batch may have; None: all between two watermarks.

    One takes those that are broadcast first, and several rows make fewer changes of a table.
    """
    return 1 if scenario.operator.kind in ("broadcast_process", "top_n") else None


def parts_of(elements: Iterable[Element], split: int | None) -> Iterator[Piece]:
    """Yield runs of records, of at most ``split`` ones, and the markers between them.

    A watermark of one side is the least of both. A marker comes last.
    """
    run: list[Record] = []
    reached = dict.fromkeys(("left", "right"), LONG_MIN)
    for element in elements:
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
            if isinstance(element, Restart):
                reached = dict.fromkeys(reached, LONG_MIN)
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
