"""Gap filling window by window, in plain Python: the truth, written apart from the operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[Any, ...]
Window = tuple[int, int]
#: Results of a key and window, by name.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Filling:
    """Settings of gap filling.

    Parameters
    ----------
    of_no_rows : mapping of str to object
        The aggregates of no rows, by name.
    carry_forward, interpolate : sequence of str
    until : int, optional
        In ticks.
    given : sequence of Key, optional
    start, end : int
    """

    of_no_rows: Values
    carry_forward: Sequence[str] = ()
    interpolate: Sequence[str] = ()
    until: int | None = None
    given: Sequence[Key] | None = None
    start: int = 0
    end: int = 0


def fill(
    results: Mapping[tuple[Key, Window], Values], windows: Sequence[Window], filling: Filling
) -> dict[tuple[Key, Window], Values]:
    """Return the results of windows with rows and without.

    Parameters
    ----------
    results : mapping of (Key, Window) to Values
        Of windows with rows.
    windows : sequence of Window
        All that may have results, in order.
    filling : Filling
    """
    by_key: dict[Key, dict[Window, Values]] = defaultdict(dict)
    for (key, window), values in results.items():
        by_key[key][window] = values
    for key in filling.given or ():
        by_key[key] = by_key[key]
    filled: dict[tuple[Key, Window], Values] = dict(results)
    for key, own in by_key.items():
        for window in windows:
            if window not in own and _is_filled(key, window, own, filling):
                filled[key, window] = _values(window, own, windows, filling)
    return filled


def _place(window: Window) -> Window:
    """Return what orders windows: two of a calendar may end together, after a skipped day."""
    return window[1], window[0]


def _before(window: Window, own: Mapping[Window, Values]) -> Window | None:
    earlier = (each for each in own if _place(each) < _place(window))
    return max(earlier, key=_place, default=None)


def _after(window: Window, own: Mapping[Window, Values]) -> Window | None:
    later = (each for each in own if _place(each) > _place(window))
    return min(later, key=_place, default=None)


def _is_filled(key: Key, window: Window, own: Mapping[Window, Values], filling: Filling) -> bool:
    if filling.given is not None:
        return key in filling.given and filling.start <= window[0] and window[1] <= filling.end
    before = _before(window, own)
    if before is None:
        return False
    if filling.until is not None:
        return window[1] <= before[1] + filling.until
    return _after(window, own) is not None


def _values(
    window: Window, own: Mapping[Window, Values], windows: Sequence[Window], filling: Filling
) -> Values:
    values = dict(filling.of_no_rows)
    before, after = _before(window, own), _after(window, own)
    for name in filling.carry_forward:
        values[name] = None if before is None else own[before][name]
    for name in filling.interpolate:
        values[name] = None
        if before is None or after is None:
            continue
        if not all(_is_near(each, own, filling) for each in _between(before, after, windows)):
            continue
        left, right = own[before][name], own[after][name]
        if left is not None and right is not None:
            at, low, high = (windows.index(each) for each in (window, before, after))
            values[name] = left + (right - left) * (at - low) / (high - low)
    return values


def _between(before: Window, after: Window, windows: Sequence[Window]) -> Iterator[Window]:
    return (each for each in windows if _place(before) < _place(each) < _place(after))


def _is_near(window: Window, own: Mapping[Window, Values], filling: Filling) -> bool:
    """Whether a window may be filled, whichever is the next one with rows."""
    if filling.given is not None:
        return window[1] <= filling.end
    before = _before(window, own)
    assert before is not None
    return filling.until is None or window[1] <= before[1] + filling.until
