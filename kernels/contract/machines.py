"""Machines of windows: Flink's window operator (`gpu_windows.rules.window_operator`), compiled."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gpu_windows.kernels.contract.arrays import DeviceInts, HostInts
from gpu_windows.kernels.machine import Run
from gpu_windows.rules.window_operator import layout


class Spans(NamedTuple):
    """The session that every row would be by itself: [open, close).

    Parameters
    ----------
    opens, closes : int64[n]
        First tick and end of every row's own session.
    """

    opens: HostInts
    closes: HostInts


class Panes(Protocol):
    """Run the panes of windows that do not merge: their new rows, then their due timers."""

    def run(
        self, program: layout.Program, settings: layout.Settings, panes: layout.Panes,
        elements: layout.Elements, begins: HostInts, news: HostInts,
    ) -> Run:  # fmt: skip
        """Give every pane its new rows, fire its due timers, and say what came of it.

        All arrays are the host's, those of the result too: a device counts the firings first, then
        runs again, with fresh copies of what it changes, into as much memory as was counted.

        Parameters
        ----------
        program : Program
            The trigger.
        settings : Settings
        panes : Panes
            s of them; not changed.
        elements : Elements
            By pane, those of a pane in order of arrival. Of ``following`` only the shape counts:
            on CPU it is written to.
        begins : int64[s + 1]
            Where the elements of every pane begin, and where they end.
        news : int64[s]
            Where its new elements begin; those before were in the window already.

        Returns
        -------
        Run
            The units are the panes; ``late`` is empty.
        """

    def members(self, order: DeviceInts, firsts: DeviceInts, counts: HostInts) -> DeviceInts:
        """Return the rows of windows that are ranges of ``order``, each in order of arrival.

        Parameters
        ----------
        order : int64[n]
            Rows by key and slice.
        firsts : int64[s]
            Where the range of every window begins.
        counts : int64[s], of the host
            How long it is: the sum says what to allocate.

        Returns
        -------
        int64[p]
            p the sum of ``counts``.
        """


class Merging(Protocol):
    """Run the sessions of keys: they merge, so those of a key run together."""

    def run(
        self, program: layout.Program, settings: layout.Settings, panes: layout.Panes,
        elements: layout.Elements, units: layout.Units, spans: Spans,
    ) -> Run:  # fmt: skip
        """Put new rows into sessions, fire due timers, and say what came of it.

        All arrays are the host's, as in `Panes.run`.

        Parameters
        ----------
        program : Program
            The trigger.
        settings : Settings
        panes : Panes
            Of every key the sessions that there are, in order of time, then as many free places
            as it has new rows. Not changed.
        elements : Elements
            Of every key the rows of its sessions, then the new ones in order of arrival; as in
            `Panes.run`.
        units : Units
            The keys.
        spans : Spans
            Of every row that ``elements.rows`` may name.

        Returns
        -------
        Run
            The units are the keys; ``late`` says which rows are in no session.
        """
