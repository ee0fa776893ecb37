"""Byte ranges of objects: merged, so that one request reads several, and read as a file."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Sequence
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


class RangeReader(io.RawIOBase):
    """The bytes of an object, to read and to seek in.

    Parameters
    ----------
    read : callable
        Takes the offset and the length of a range, and returns its bytes: fewer at the end.
    size : int or callable
        Bytes of the object; or what finds their number, which is called only if it is needed.
    """

    def __init__(self, read: Callable[[int, int], Any], size: int | Callable[[], int]) -> None:
        super().__init__()
        self._read, self._size = read, size
        self._place = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it can seek: always."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position; return it."""
        begin = 0
        if whence == io.SEEK_CUR:
            begin = self._place
        elif whence == io.SEEK_END:
            begin = self._size = self._size() if callable(self._size) else self._size
        self._place = begin + offset
        return self._place

    def readinto(self, target: Any, /) -> int:
        """Read bytes into a buffer, up to its size or the end of the object."""
        count, size = len(target), self._size
        if not callable(size):
            count = min(count, max(size - self._place, 0))
        content = self._read(self._place, count) if count else b""
        target[: len(content)] = memoryview(content)
        self._place += len(content)
        if callable(size) and len(content) < count:
            self._size = self._place
        return len(content)
