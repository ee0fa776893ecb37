"""Run the panes of windows that do not merge, a thread a pane."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts, HostInts
from gpu_windows.kernels.cuda import machine, primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.types import ELEMENTS, EVENTS, INT, INTS, PANES, PROGRAM, SETTINGS
from gpu_windows.kernels.machine import Run, allocate, counting
from gpu_windows.rules.window_operator.layout import Elements, Panes, Program, Settings


def run(
    program: Program, settings: Settings, panes: Panes, elements: Elements,
    begins: HostInts, news: HostInts,
) -> Run:  # fmt: skip
    """See `contract.machines.Panes.run`."""
    count, place = len(news), primitives.place
    fixed = place(program), settings
    rest = place(elements), primitives.to_device(begins), primitives.to_device(news)
    events = place(counting(count))
    _run(count, 0, *fixed, place(panes), *rest, events)
    after, events = place(panes), place(allocate(primitives.to_host(events.cursors)))
    _run(count, 1, *fixed, after, *rest, events)
    return Run(primitives.fetch(after), primitives.fetch(events), np.empty(0, np.int8))


@kernel((INT, PROGRAM, SETTINGS, PANES, ELEMENTS, INTS, INTS, EVENTS))
def _run(
    fill: Any, program: Any, settings: Any, panes: Any, elements: Any, begins: Any, news: Any,
    events: Any,
) -> None:  # fmt: skip
    for pane in range(cuda.grid(1), news.size, cuda.gridsize(1)):
        machine.begin_pane(pane, begins[pane], news[pane], settings, panes, elements)
        machine.run_pane(
            pane, pane, fill, news[pane], begins[pane + 1], settings.advance,
            program, settings, panes, elements, events,
        )  # fmt: skip
        machine.hand_over(pane, pane, fill, settings, panes, elements, events)


def members(order: DeviceInts, firsts: DeviceInts, counts: HostInts) -> DeviceInts:
    """See `contract.machines.Panes.members`."""
    total = int(counts.sum())
    if total == 0:
        return primitives.empty(0, np.int64)
    begins = primitives.to_device(np.cumsum(counts) - counts)
    rows, panes = primitives.empty(total, np.int64), primitives.empty(total, np.int64)
    _members(total, order, firsts, begins, rows, panes)
    by_row = primitives.argsort(rows)
    by_pane = primitives.argsort(primitives.gather(panes, by_row))
    return primitives.gather(primitives.gather(rows, by_row), by_pane)


@kernel((INTS, INTS, INTS, INTS, INTS))
def _members(order: Any, firsts: Any, begins: Any, rows: Any, panes: Any) -> None:
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        pane = owner(begins, i)
        panes[i] = pane
        rows[i] = order[firsts[pane] + i - begins[pane]]
