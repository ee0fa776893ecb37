"""Replays a scenario on an operator, Arrow in and Arrow out; a tick is a millisecond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_windows.conformance.functions import SCHEMA, NamedFunction
from gpu_windows.conformance.scenario import ProcessingTime, Record, Scenario, Watermark
from gpu_windows.conformance.translate import Case
from gpu_windows.operators.base import Counters, Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.options import Device
from gpu_windows.plan import ARRIVAL, Plan
from gpu_windows.query import WINDOW_END, WINDOW_START
from gpu_windows.rules import LONG_MAX


@dataclass(frozen=True)
class Replayed:
    """What came of a scenario, in the words of scenario files.

    ``step`` is None where a batch of several rows does not tell which of them fired. ``left`` is
    the state that is held after the end of the input.
    """

    emissions: tuple[dict[str, Any], ...]
    late: tuple[dict[str, Any], ...]
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
    split : int, optional
        Most rows a batch. Default: all rows between two watermarks are one batch.
    """
    operator = build_operator(plan, trace=True, device=device)
    emissions: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    counters = Counters()
    end = Watermark(len(scenario.input), LONG_MAX)
    for part in parts_of(scenario, end, split):
        step: int | None = None
        if isinstance(part, Watermark):
            step, emitted = part.seq, operator.advance_watermark(part.time)
        elif isinstance(part, ProcessingTime):
            step, emitted = part.seq, operator.advance_processing_time(part.time)
        else:
            step = part[0].seq if len(part) == 1 else None
            emitted = operator.process(batch_of(part, plan, case))
        for emission in emitted:
            emissions += _emissions(emission, step, case.function)
            late += _late(emission, scenario)
            counters += emission.counters
    return Replayed(tuple(emissions), tuple(late), counters, operator.state_size())


def parts_of(
    scenario: Scenario, end: Watermark, split: int | None
) -> Iterator[list[Record] | Watermark | ProcessingTime]:
    """Yield runs of records and the markers between them, the end of input last."""
    run: list[Record] = []
    for element in (*scenario.input, end):
        if isinstance(element, Record):
            run.append(element)
        else:
            size = split or len(run) or 1
            yield from (run[i : i + size] for i in range(0, len(run), size))
            yield element
            run = []


def batch_of(records: list[Record], plan: Plan, case: Case) -> pa.Table:
    """Return records as rows, with the columns that the plan's operator takes."""
    columns: dict[str, Iterable[object]] = {
        "key": [record.key for record in records],
        "ts": [record.ts for record in records],
        "value": [record.value for record in records],
        "seq": [record.seq for record in records],
        "gap": [case.gap(record.value) for record in records],
    }
    fields = [SCHEMA.field(name) for name in plan.input_columns]
    arrays = [pa.array(columns[field.name], field.type) for field in fields]
    if ARRIVAL in plan.order:
        fields.append(pa.field(ARRIVAL, pa.int64()))
        arrays.append(pa.array(columns["seq"], pa.int64()))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _emissions(
    emission: Emission, step: int | None, function: NamedFunction
) -> Iterator[dict[str, Any]]:
    for row in emission.results.to_pylist():
        by_timer = row["fired"] != "element"
        yield {
            "step": step,
            "fired": row["fired"],
            **({"fired_time": row["fired_time"]} if by_timer else {}),
            "key": row["key"],
            "window_start": row[WINDOW_START],
            "window_end": row[WINDOW_END],
            **function.payload(row),
            "timestamp": LONG_MAX if row[WINDOW_END] is None else row[WINDOW_END] - 1,
        }


def _late(emission: Emission, scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield the late rows, completed from the scenario by their order of arrival."""
    for row in emission.late.to_pylist():
        seq = row.get(ARRIVAL, row.get("seq"))
        record = scenario.input[seq]
        assert isinstance(record, Record)
        whole = {"key": record.key, "ts": record.ts, "value": record.value, "seq": seq}
        given = {name: row[name] for name in whole if name in row}
        yield {"step": seq, **whole, **given}
