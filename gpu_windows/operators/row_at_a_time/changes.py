"""Changelog of window results: which windows have a row in the result table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.top_changes import Change
from gpu_windows.operators.keyed.timers import Pane
from gpu_windows.operators.row_at_a_time.functions import Values
from gpu_windows.vocabulary.windows import Window


class EmittedWindows:
    """The windows that have a row in the result table, by the live window that contains them.

    A live window contains itself and those that were merged into it since it last fired. When it is
    dropped it is removed here; its row stays in the table.

    Parameters
    ----------
    is_enabled : bool
        Whether results have a change column; else this stays empty.
    """

    def __init__(self, *, is_enabled: bool) -> None:
        self._is_enabled = is_enabled
        self._windows: dict[Pane, list[Window]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._windows.values()))

    def __iter__(self) -> Iterator[tuple[Pane, Window]]:
        for pane, windows in self._windows.items():
            yield from ((pane, window) for window in windows)

    def load(self, pane: Pane, window: Window) -> None:
        """Load a stored window."""
        self._windows.setdefault(pane, []).append(window)

    def merge(self, whole: Pane, parts: Sequence[Pane]) -> None:
        """Make windows parts of the one that they were merged into."""
        windows = [window for part in parts for window in self._windows.pop(part, ())]
        if windows:
            self._windows[whole] = [*self._windows.get(whole, ()), *windows]

    def drop(self, pane: Pane) -> None:
        """Remove a dropped window."""
        self._windows.pop(pane, None)

    def fire(
        self, pane: Pane, rows: Iterable[Values], show: Callable[[Pane], str]
    ) -> tuple[list[Pane], Change | None, Iterable[Values]]:
        """Return the changes of a firing, and record it.

        Returns
        -------
        gone : list of Pane
            The windows whose rows are deleted, in order.
        change : Change, optional
            Kind of change of the result; None if disabled.
        rows : iterable
            The results.

        Raises
        ------
        InvalidFunctionError
            If there are several results.
        """
        if not self._is_enabled:
            return [], None, rows
        given, before = [*rows], self._windows.pop(pane, [])
        if len(given) > 1:
            rule = f"changes are of windows with one row or none, at {show(pane)}"
            raise InvalidFunctionError(rule, value=f"{len(given)} rows")
        if given:
            self._windows[pane] = [pane.window]
        gone = sorted(
            (window for window in before if not given or window != pane.window),
            key=lambda window: (window.start, window.end),
        )
        change = Change.UPDATE_AFTER if pane.window in before else Change.INSERT
        return [Pane(pane.key, window) for window in gone], change, given
