"""State in memory that counts what is read and written, and keeps live files only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gpu_windows.operators.state.files import MemoryFiles
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.runs import Run


class CountingFiles(MemoryFiles):
    """Files in memory that count ranges and bytes that are read, and files and bytes written.

    Attributes
    ----------
    counts : Counter of str
        ``reads``, ``bytes_read``, ``writes``, ``bytes_written``.
    ranges : list of (str, int, int)
        File, offset and length of each range that was read.
    """

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        super().__init__(files)
        self.counts: Counter[str] = Counter()
        self.ranges: list[tuple[str, int, int]] = []

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file."""
        super().write(name, self._counted(parts))
        self.counts["writes"] += 1

    def _counted(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.counts["bytes_written"] += len(part)
            yield part

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of a file."""
        data = super().read_ranges(name, ranges)
        self.counts.update(reads=len(data), bytes_read=sum(map(len, data)))
        self.ranges += [(name, *each) for each in ranges]
        return data

    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file."""
        data = super().read_end(name, length)
        self.counts.update(reads=1, bytes_read=len(data))
        return data


class Counting(MemoryLog):
    """The state of a shard in memory; files that are no longer live are removed."""

    def __init__(self) -> None:
        self.counting = CountingFiles()
        self._noted: list[Run] = []
        super().__init__(self.counting)

    @property
    def counts(self) -> Counter[str]:
        """See `CountingFiles`."""
        return self.counting.counts

    def reopen(self) -> StateLog:
        """Write what was saved, remove what is not live; then return the log as it is now."""
        super().reopen()
        live = self.live_files
        for name in self.counting.files.keys() - set(live):
            del self.counting.files[name]
        return self

    def _live_runs(self) -> list[Run]:
        return [run for name in self.table_names for run in self.runs(name)]

    def forget_counts(self) -> None:
        """Count from now on."""
        self.counts.clear()
        self.counting.ranges.clear()
        self._noted = self._live_runs()

    @property
    def table_ranges(self) -> Counter[str]:
        """How many ranges were read of each table that was live when counting began."""
        return Counter(
            run.table
            for file, offset, length in self.counting.ranges
            for run in self._noted
            if run.file == file and run.begin <= offset and offset + length <= run.end
        )


def reopened(log: StateLog, *, live_only: bool = True) -> StateLog:
    """Return the state that was finished, read from its files: of those that are live, or all."""
    files = log.files
    assert isinstance(files, MemoryFiles)
    names = log.live_files if live_only else files.files
    left = {name: files.files[name] for name in names if name in files.files}
    return StateLog(CountingFiles(left), log.newest)


def state_of(log: MemoryLog) -> list[object]:
    """Return what a log has, but for the names of its files: two of the same state are equal."""
    log.reopen()
    runs = [run for name in log.table_names for run in log.runs(name)]
    data: list[object] = [log.files.read_ranges(run.file, [(run.begin, run.size)]) for run in runs]
    return [*data, log.saved_numbers]
