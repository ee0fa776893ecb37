"""Ranges of a file that are asked for together: spans, from one offset to another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any


def merge_ranges(ranges: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Return the spans to read, begin and end of each, in order and with gaps between them.

    The library merges ranges, too, but ends the process's thread where one is behind the end of the
    file: as ranges of a damaged state file may be.
    """
    spans: list[tuple[int, int]] = []
    for offset, length in sorted(ranges):
        if spans and length and offset - spans[-1][1] <= gap:
            spans[-1] = spans[-1][0], max(spans[-1][1], offset + length)
        elif length:
            spans.append((offset, offset + length))
    return spans


def cut_range(
    spans: Sequence[tuple[int, int]], contents: Sequence[Any], offset: int, length: int
) -> bytes:
    """Return a range out of the bytes of the spans; what these do not have is left out."""
    number = bisect_right(spans, offset, key=lambda span: span[0]) - 1
    if number < 0:
        return b""
    begin = offset - spans[number][0]
    return bytes(memoryview(contents[number])[begin : begin + length])
