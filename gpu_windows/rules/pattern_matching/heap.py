"""Binary heaps, as java.util.PriorityQueue has them: equals keep the order that it gives them."""

from __future__ import annotations

from typing import Any

from gpu_windows.rules.pattern_matching.layout import NO_ROW


def precedes_in_heap(one: int, other: int) -> bool:
    """Whether what begins with one row comes before what begins with another; no row is last."""
    if one == NO_ROW:
        return False
    return other == NO_ROW or one < other


def push(heap: Any, size: int, item: int, start: Any) -> int:
    """Put an item into a heap; return how large it is then.

    Parameters
    ----------
    heap : int64[room]
    size : int
    item : int
    start : int64[items]
        What each begins with.
    """
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if not precedes_in_heap(start[item], start[heap[above]]):
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item
    return size + 1


def sink(heap: Any, size: int, place: int, item: int, start: Any) -> None:
    """Put an item at a place or below, where it belongs."""
    half = size >> 1
    while place < half:
        child = 2 * place + 1
        if child + 1 < size and precedes_in_heap(start[heap[child + 1]], start[heap[child]]):
            child += 1
        if not precedes_in_heap(start[heap[child]], start[item]):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item


def pop(heap: Any, size: int, start: Any) -> int:
    """Take the first item, which is ``heap[0]``, out; return how large the heap is then."""
    left = size - 1
    if left > 0:
        sink(heap, left, 0, heap[left], start)
    return left


def drop_until(heap: Any, size: int, last: int, start: Any) -> int:
    """Take out all that begin with a row up to ``last``; return how large the heap is then."""
    left = 0
    for place in range(size):
        item = heap[place]
        if start[item] == NO_ROW or start[item] > last:
            heap[left] = item
            left += 1
    if left < size:
        for above in range(left >> 1):
            place = (left >> 1) - 1 - above
            sink(heap, left, place, heap[place], start)
    return left
