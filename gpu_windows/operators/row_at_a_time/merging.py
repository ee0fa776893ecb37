"""Windows that merge: which windows of a key are there, and where the contents of each are kept.

Source: org.apache.flink.streaming.runtime.operators.windowing.MergingWindowSet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpu_windows.vocabulary.windows import MergingWindowAssigner, TimeWindow, Window

#: Told of a merge: the new window, the ones it is made of, the window under which contents stay,
#: and those whose contents go there.
OnMerge = Callable[[TimeWindow, Sequence[TimeWindow], TimeWindow, Sequence[TimeWindow]], None]


class MergingWindows:
    """The windows of one key, and for each the *state window*: the name its contents have.

    Contents keep their first name when windows are merged, so they need not move.
    """

    def __init__(self, assigner: MergingWindowAssigner) -> None:
        self._assigner = assigner
        self._state_windows: dict[TimeWindow, TimeWindow] = {}

    def __len__(self) -> int:
        return len(self._state_windows)

    def __iter__(self) -> Iterator[TimeWindow]:
        return iter(self._state_windows)

    def state_window(self, window: Window) -> TimeWindow | None:
        """Return under which window the contents are kept; None if there is no such window."""
        return self._state_windows.get(window)  # type: ignore[arg-type]

    def retire(self, window: Window) -> None:
        """Forget a window."""
        self._state_windows.pop(window, None)  # type: ignore[arg-type]

    def load(self, window: TimeWindow, state_window: TimeWindow) -> None:
        """Take a window that was kept."""
        self._state_windows[window] = state_window

    def add(self, window: TimeWindow, on_merge: OnMerge) -> TimeWindow:
        """Add a row's window; return the window that it is part of, after merging.

        A window that is there already stays what it is. Flink maps it to new contents and loses
        those of a session that several rows have made (docs/windows.md).
        """
        known = self._state_windows
        result = window
        merged = False
        for whole, parts in self._assigner.merge_windows([*dict.fromkeys([*known, window])]):
            if window in parts:
                merged, result = True, whole
            others = [part for part in self._assigner.merge_order(parts) if part != window]
            stays, *moved = (known.pop(part) for part in others)
            known[whole] = stays
            if others != [whole]:
                on_merge(whole, others, stays, moved)
        if not merged:
            known.setdefault(result, result)
        return result
