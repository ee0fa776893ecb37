"""Run the panes of windows that do not merge: their new rows, then their due timers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import machine
from gpu_windows.kernels.cpu.runs import sort_runs
from gpu_windows.kernels.cpu.types import OUT_INTS
from gpu_windows.kernels.machine import Run, run_in_guessed_memory
from gpu_windows.kernels.records import ELEMENTS, EVENTS, PANES, PROGRAM, SETTINGS
from gpu_windows.rules.window_operator.layout import Elements, Events, Panes, Program, Settings

Ints = NDArray[np.int64]


def run(
    program: Program, settings: Settings, panes: Panes, elements: Elements, begins: Ints, news: Ints
) -> Run:
    """See `contract.machines.Panes.run`."""

    def work(after: Panes, events: Events) -> None:
        _run(program, settings, after, elements, begins, news, events)

    after, events, _ = run_in_guessed_memory(panes, len(elements.rows), work)
    return Run(after, events, np.empty(0, np.int8))


@kernel((PROGRAM, SETTINGS, PANES, ELEMENTS, OUT_INTS, OUT_INTS, EVENTS))
def _run(
    program: Any, settings: Any, panes: Any, elements: Any, begins: Any, news: Any, events: Any
) -> None:
    for pane in range(news.size):
        machine.begin_pane(pane, begins[pane], news[pane], settings, panes, elements)
        machine.run_pane(
            pane, 0, 1, news[pane], begins[pane + 1], settings.advance,
            program, settings, panes, elements, events,
        )  # fmt: skip
        machine.hand_over(pane, 0, 1, settings, panes, elements, events)


def members(order: Ints, firsts: Ints, counts: Ints) -> Ints:
    """See `contract.machines.Panes.members`."""
    begins = np.append(0, np.cumsum(counts))
    rows = np.empty(int(begins[-1]), np.int64)
    _members(order, firsts, begins, rows)
    sort_runs(begins, rows)
    return rows


@kernel((OUT_INTS, OUT_INTS, OUT_INTS, OUT_INTS))
def _members(order: Any, firsts: Any, begins: Any, rows: Any) -> None:
    for pane in range(firsts.size):
        for i in range(begins[pane + 1] - begins[pane]):
            rows[begins[pane] + i] = order[firsts[pane] + i]
