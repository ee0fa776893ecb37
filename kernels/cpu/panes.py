"""Run the panes of windows that do not merge: their new rows, then their due timers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import OUT_INTS
from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import machine
from gpu_windows.kernels.cpu.machine import (
    ELEMENTS,
    EVENTS,
    PANES,
    PROGRAM,
    SETTINGS,
    Run,
    run_with_room,
)
from gpu_windows.kernels.cpu.sorting import sort_runs
from gpu_windows.rules.window_operator.layout import Elements, Events, Panes, Program, Settings

Ints = NDArray[np.int64]


def run(
    program: Program, settings: Settings, panes: Panes, elements: Elements, begins: Ints, news: Ints
) -> Run:
    """Add the new rows of every pane, and fire its due timers.

    Parameters
    ----------
    program : Program
        The trigger.
    settings : Settings
    panes : Panes
        s of them; not changed.
    elements : Elements
        By pane, those of a pane in order of arrival. Of ``following`` only the shape counts: it is
        written to.
    begins : int64[s + 1]
        Where the elements of every pane begin, and the last ones end.
    news : int64[s]
        Where its new elements begin; those before were in the window already.

    Returns
    -------
    Run
        The units are the panes; ``late`` is empty.
    """

    def work(after: Panes, events: Events) -> None:
        _run(program, settings, after, elements, begins, news, events)

    after, events, _ = run_with_room(panes, len(elements.rows), work)
    return Run(after, events, np.empty(0, np.int8))


@kernel((PROGRAM, SETTINGS, PANES, ELEMENTS, OUT_INTS, OUT_INTS, EVENTS))
def _run(
    program: Any, settings: Any, panes: Any, elements: Any, begins: Any, news: Any, events: Any
) -> None:
    for pane in range(news.size):
        machine.begin_pane(pane, begins[pane], news[pane], settings, panes, elements)
        machine.run_pane(
            pane, news[pane], begins[pane + 1], settings.advance,
            program, settings, panes, elements, events,
        )  # fmt: skip
        machine.hand_over(pane, settings, panes, elements, events)


def members(order: Ints, firsts: Ints, counts: Ints) -> Ints:
    """Return the rows of windows that are ranges of ``order``, each in order of arrival.

    Parameters
    ----------
    order : int64[n]
        Rows by key and slice.
    firsts, counts : int64[s]
        Where the range of every window begins, and how long it is.

    Returns
    -------
    int64[p]
        p the sum of ``counts``.
    """
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
