"""Which windows have a row in the table that changes keep up to date, one window at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.top_changes import Change
from gpu_windows.operators.keyed.timers import Pane
from gpu_windows.operators.row_at_a_time.functions import Values
from gpu_windows.vocabulary.windows import Window


class EmittedWindows:
    """The windows whose rows stand in the table, by the window of their key that they are part of.

    That is the window itself, and those that were merged into it since it fired last. What is known
    of a window is dropped with the window; its row stays.

    Parameters
    ----------
    is_asked : bool
        Whether results say what they change; else nothing is known.
    """

    def __init__(self, *, is_asked: bool) -> None:
        self._is_asked = is_asked
        self._windows: dict[Pane, list[Window]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._windows.values()))

    def __iter__(self) -> Iterator[tuple[Pane, Window]]:
        for pane, windows in self._windows.items():
            yield from ((pane, window) for window in windows)

    def load(self, pane: Pane, window: Window) -> None:
        """Take a window that was kept."""
        self._windows.setdefault(pane, []).append(window)

    def merge(self, whole: Pane, parts: Sequence[Pane]) -> None:
        """Know windows as parts of another one."""
        windows = [window for part in parts for window in self._windows.pop(part, ())]
        if windows:
            self._windows[whole] = [*self._windows.get(whole, ()), *windows]

    def drop(self, pane: Pane) -> None:
        """Forget a window that is not there any longer."""
        self._windows.pop(pane, None)

    def fire(
        self, pane: Pane, rows: Iterable[Values], show: Callable[[Pane], str]
    ) -> tuple[list[Pane], Change | None, Iterable[Values]]:
        """Note a firing, and what it gives.

        Returns
        -------
        gone : list of Pane
            The windows whose rows go, in order.
        change : Change, optional
            What the result is; None where nobody asks.
        rows : iterable
            The results.

        Raises
        ------
        InvalidFunctionError
            If there are several.
        """
        if not self._is_asked:
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
