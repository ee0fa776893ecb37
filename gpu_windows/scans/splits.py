"""Files cut into parts for tasks, and the parts dealt to tasks by bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from gpu_windows.scans.files import ScannedFile

#: Bytes that opening a file costs, in bytes that are read meanwhile (Spark's own estimate).
OPEN_BYTES = 4 << 20


@dataclass(frozen=True)
class Split:
    """A range of bytes of a file: the row groups whose middle is in it.

    Parameters
    ----------
    file : ScannedFile
    start, stop : int
        The first byte, and the one behind the last.
    """

    file: ScannedFile
    start: int
    stop: int

    @property
    def cost(self) -> int:
        """How long it takes, in bytes."""
        return self.stop - self.start + OPEN_BYTES

    def has_middle(self, begin: int, length: int) -> bool:
        """Whether the middle of a range of bytes is in this split, and so in no other one."""
        return self.start <= begin + length // 2 < self.stop


def split_bytes(files: Sequence[ScannedFile], tasks: int, most: int) -> int:
    """Return how long splits are, as Spark decides it for its own readers.

    Parameters
    ----------
    files : sequence of ScannedFile
    tasks : int
        How many run at a time.
    most : int
        Bytes of a split.
    """
    total = sum(file.length + OPEN_BYTES for file in files)
    return max(1, min(most, max(OPEN_BYTES, -(-total // max(tasks, 1)))))


def split_files(files: Iterable[ScannedFile], size: int) -> Iterator[Split]:
    """Yield the splits of files, of ``size`` bytes and a rest."""
    for file in files:
        for start in range(0, file.length, size):
            yield Split(file, start, min(start + size, file.length))


def fill_bins(
    splits: Iterable[tuple[int, Split]], size: int
) -> list[tuple[tuple[int, Split], ...]]:
    """Return splits in as few bins as hold them, of ``size`` bytes and similar costs each.

    The longest split goes first, each into the bin that costs least until then.

    Parameters
    ----------
    splits : iterable of (int, Split)
        Each with the number of what it is part of.
    size : int
    """
    every = sorted(splits, key=lambda each: each[1].cost, reverse=True)
    count = max(1, round(sum(split.cost for _, split in every) / size))
    bins: list[list[tuple[int, Split]]] = [[] for _ in range(min(count, len(every)))]
    costs = [(0, number) for number in range(len(bins))]
    for part, split in every:
        cost, number = heappop(costs)
        bins[number].append((part, split))
        heappush(costs, (cost + split.cost, number))
    return [tuple(each) for each in bins]
