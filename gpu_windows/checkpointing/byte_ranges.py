"""Merges byte ranges of a file into spans, which are read by one request each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any


def merge_ranges(ranges: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Return the spans to read, as (begin, end), in order; ranges at most ``gap`` apart are merged.

    The library could merge ranges itself, but its thread ends if one is after the end of the file,
    as ranges of a damaged state file may be.
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
    """Return a range from the contents of spans; bytes that these lack are left out."""
    number = bisect_right(spans, offset, key=lambda span: span[0]) - 1
    if number < 0:
        return b""
    begin = offset - spans[number][0]
    return bytes(memoryview(contents[number])[begin : begin + length])
