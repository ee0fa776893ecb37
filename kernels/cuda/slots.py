"""Run the slots of windows that do not merge, a thread a slot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.cuda import machine, primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import INT, INTS
from gpu_windows.kernels.machine import Run, allocate, counting
from gpu_windows.kernels.records import ELEMENTS, EVENTS, PROGRAM, SETTINGS, SLOTS
from gpu_windows.rules.window_operator.layout import Elements, Program, Settings, Slots

Ints = NDArray[np.int64]


def run(
    program: Program, settings: Settings, slots: Slots, elements: Elements, begins: Ints, news: Ints
) -> Run:
    """Give every slot its new rows, fire its due timers, and say what came of it.

    All arrays are the host's.

    Parameters
    ----------
    program : Program
    settings : Settings
    slots : Slots
        s of them; not changed.
    elements : Elements
        By slot, those of a slot in order of arrival.
    begins : int64[s + 1]
        Where the elements of every slot begin, and where they end.
    news : int64[s]
        Where its new elements begin; those before were in the window already.

    Returns
    -------
    Run
        The units are the slots.
    """
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


def members(order: Ints, firsts: Ints, counts: Ints) -> Ints:
    """Return the rows of windows that are ranges of ``order``, each in order of arrival.

    All arrays are the host's.

    Parameters
    ----------
    order : int64[n]
        Rows by key and slice.
    firsts, counts : int64[s]
        The range of every window.

    Returns
    -------
    int64[p]
    """
    total = int(counts.sum())
    if total == 0:
        return np.empty(0, np.int64)
    begins = primitives.to_device(np.cumsum(counts) - counts)
    rows, slots = primitives.empty(total, np.int64), primitives.empty(total, np.int64)
    on_device = primitives.to_device(order), primitives.to_device(firsts)
    _members(total, *on_device, begins, rows, slots)
    by_row = primitives.argsort(rows)
    by_slot = primitives.argsort(primitives.gather(slots, by_row))
    sorted_rows = primitives.gather(primitives.gather(rows, by_row), by_slot)
    return primitives.to_host(sorted_rows)


@kernel((INTS, INTS, INTS, INTS, INTS))
def _members(order: Any, firsts: Any, begins: Any, rows: Any, slots: Any) -> None:
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        slot = owner(begins, i)
        slots[i] = slot
        rows[i] = order[firsts[slot] + i - begins[slot]]
