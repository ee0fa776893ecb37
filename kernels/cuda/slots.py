"""Run the slots of windows that do not merge, a thread a slot."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts, HostInts
from gpu_windows.kernels.cuda import machine, primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import INT, INTS
from gpu_windows.kernels.machine import Run, allocate, counting
from gpu_windows.kernels.records import ELEMENTS, EVENTS, PROGRAM, SETTINGS, SLOTS
from gpu_windows.rules.window_operator.layout import Elements, Program, Settings, Slots


def run(
    program: Program, settings: Settings, slots: Slots, elements: Elements,
    begins: HostInts, news: HostInts,
) -> Run:  # fmt: skip
    """See `contract.machines.Slots.run`."""
    count, place = len(news), primitives.place
    fixed = place(program), settings
    rest = place(elements), primitives.to_device(begins), primitives.to_device(news)
    events = place(counting(count))
    _run(count, 0, *fixed, place(slots), *rest, events)
    after, events = place(slots), place(allocate(primitives.to_host(events.cursors)))
    _run(count, 1, *fixed, after, *rest, events)
    return Run(primitives.fetch(after), primitives.fetch(events), np.empty(0, np.int8))


@kernel((INT, PROGRAM, SETTINGS, SLOTS, ELEMENTS, INTS, INTS, EVENTS))
def _run(
    fill: Any, program: Any, settings: Any, slots: Any, elements: Any, begins: Any, news: Any,
    events: Any,
) -> None:  # fmt: skip
    for slot in range(cuda.grid(1), news.size, cuda.gridsize(1)):
        machine.begin_slot(slot, begins[slot], news[slot], settings, slots, elements)
        machine.run_slot(
            slot, slot, fill, news[slot], begins[slot + 1], settings.advance,
            program, settings, slots, elements, events,
        )  # fmt: skip
        machine.hand_over(slot, slot, fill, settings, slots, elements, events)


def members(order: DeviceInts, firsts: DeviceInts, counts: HostInts) -> DeviceInts:
    """See `contract.machines.Slots.members`."""
    total = int(counts.sum())
    if total == 0:
        return primitives.empty(0, np.int64)
    begins = primitives.to_device(np.cumsum(counts) - counts)
    rows, slots = primitives.empty(total, np.int64), primitives.empty(total, np.int64)
    _members(total, order, firsts, begins, rows, slots)
    by_row = primitives.argsort(rows)
    by_slot = primitives.argsort(primitives.gather(slots, by_row))
    return primitives.gather(primitives.gather(rows, by_row), by_slot)


@kernel((INTS, INTS, INTS, INTS, INTS))
def _members(order: Any, firsts: Any, begins: Any, rows: Any, slots: Any) -> None:
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        slot = owner(begins, i)
        slots[i] = slot
        rows[i] = order[firsts[slot] + i - begins[slot]]
