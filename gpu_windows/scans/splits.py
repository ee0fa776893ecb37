"""Splits files into parts, and assigns the parts to tasks by bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol, TypeVar

from gpu_windows.scans.files import ScannedFile

#: Cost of opening a file, in bytes that could be read meanwhile (Spark's own estimate).
OPEN_BYTES = 4 << 20


class Sized(Protocol):
    """A file of a known length."""

    @property
    def length(self) -> int:
        """Its bytes."""


class Costly(Protocol):
    """A part of files that one task reads whole."""

    @property
    def cost(self) -> int:
        """Cost of reading it, in bytes."""


Part = TypeVar("Part", bound=Costly)


@dataclass(frozen=True)
class Split:
    """A range of bytes of a file: the row groups whose middle is in it.

    Parameters
    ----------
    file : ScannedFile
    start, stop : int
        The first byte, and the one after the last.
    """

    file: ScannedFile
    start: int
    stop: int

    @property
    def cost(self) -> int:
        """Cost of reading it, in bytes."""
        return self.stop - self.start + OPEN_BYTES

    def has_middle(self, begin: int, length: int) -> bool:
        """Whether the middle of a range of bytes is in this split, and so in no other one."""
        return self.start <= begin + length // 2 < self.stop


def split_bytes(files: Sequence[Sized], tasks: int, max_bytes: int) -> int:
    """Return the bytes that a task reads, by the rule of Spark's own readers.

    Parameters
    ----------
    files : sequence of Sized
    tasks : int
        How many run at a time.
    max_bytes : int
        Of a task.
    """
    total = sum(file.length + OPEN_BYTES for file in files)
    return max(1, min(max_bytes, max(OPEN_BYTES, -(-total // max(tasks, 1)))))


def split_files(files: Iterable[ScannedFile], size: int) -> Iterator[Split]:
    """Yield the splits of files, of ``size`` bytes each except the last of a file."""
    for file in files:
        for start in range(0, file.length, size):
            yield Split(file, start, min(start + size, file.length))


def fill_bins(parts: Iterable[tuple[int, Part]], size: int) -> list[tuple[tuple[int, Part], ...]]:
    """Return parts of files in the fewest bins of ``size`` bytes, with similar costs.

    The longest is placed first, each into the bin with the lowest cost so far.

    Parameters
    ----------
    parts : iterable of (int, Costly)
        Each with the number of what it is a part of.
    size : int
    """
    every = sorted(parts, key=lambda each: each[1].cost, reverse=True)
    count = max(1, round(sum(part.cost for _, part in every) / size))
    bins: list[list[tuple[int, Part]]] = [[] for _ in range(min(count, len(every)))]
    costs = [(0, number) for number in range(len(bins))]
    for of, part in every:
        cost, number = heappop(costs)
        bins[number].append((of, part))
        heappush(costs, (cost + part.cost, number))
    return [tuple(each) for each in bins]
