"""Merging windows of a key, and the window under which the contents of each are stored.

Source: org.apache.flink.streaming.runtime.operators.windowing.MergingWindowSet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpu_windows.vocabulary.windows import MergingWindowAssigner, TimeWindow, Window

#: Called for a merge with the new window, its parts, the state window of the result, and the state
#: windows whose contents are merged into that.
OnMerge = Callable[[TimeWindow, Sequence[TimeWindow], TimeWindow, Sequence[TimeWindow]], None]


class MergingWindows:
    """The windows of one key, and the *state window* of each: the key of its contents.

    A merged window keeps the state window of one of its parts, whose contents need not move.
    """

    def __init__(self, assigner: MergingWindowAssigner) -> None:
        self._assigner = assigner
        self._state_windows: dict[TimeWindow, TimeWindow] = {}

    def __len__(self) -> int:
        return len(self._state_windows)

    def __iter__(self) -> Iterator[TimeWindow]:
        return iter(self._state_windows)

    def state_window(self, window: Window) -> TimeWindow | None:
        """Return the state window of a window; None if there is no such window."""
        return self._state_windows.get(window)  # type: ignore[arg-type]

    def retire(self, window: Window) -> None:
        """Remove a window."""
        self._state_windows.pop(window, None)  # type: ignore[arg-type]

    def load(self, window: TimeWindow, state_window: TimeWindow) -> None:
        """Load a stored window."""
        self._state_windows[window] = state_window

    def add(self, window: TimeWindow, on_merge: OnMerge) -> TimeWindow:
        """Add a row's window; return the window that contains it after merging.

        A window that already exists keeps its contents. Flink maps it to new contents and loses
        those of a session that several rows have made (docs/windows.md).
        """
        state_windows = self._state_windows
        result = window
        merged = False
        for whole, parts in self._assigner.merge_windows(
            [*dict.fromkeys([*state_windows, window])]
        ):
            if window in parts:
                merged, result = True, whole
            others = [part for part in self._assigner.merge_order(parts) if part != window]
            stays, *moved = (state_windows.pop(part) for part in others)
            state_windows[whole] = stays
            if others != [whole]:
                on_merge(whole, others, stays, moved)
        if not merged:
            state_windows.setdefault(result, result)
        return result
