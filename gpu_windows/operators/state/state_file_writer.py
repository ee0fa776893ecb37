"""Writer of a state file: chooses the segments to compact, and yields the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.state.manifest import HEADER, Manifest, Segment
from gpu_windows.operators.state.runs import RunWriter
from gpu_windows.operators.state.writable_table import WritableTable

#: Segments of a size class that are compacted into one.
MERGE_FANIN = 8
#: Bits of a size class: each is eight times as large as the one below; and the bits of the largest
#: segment of the first class, 256 KiB.
_CLASS_BITS, _FIRST_CLASS_BITS = 3, 18
#: Maximum number of segments of a shard; beyond, the newest ones are compacted.
_MAX_SEGMENTS = 48
#: Bytes in memory that become one in a file, about.
_COMPRESSION = 3


class StateFileWriter:
    """Writes a state file: drain `parts`, then `manifest` is its manifest.

    Parameters
    ----------
    name : str
    tables : mapping of str to WritableTable
        By name.
    before : Manifest
        Of the last file, with the current numbers.
    segments : list of Segment
        All live ones, oldest first.
    new_bytes : int
        Bytes in memory of unflushed rows.
    """

    def __init__(
        self,
        name: str,
        tables: Mapping[str, WritableTable],
        before: Manifest,
        segments: Sequence[Segment],
        new_bytes: int,
    ) -> None:
        self._name, self._tables, self._before = name, tables, before
        self._segments = segments
        self._has_new = new_bytes > 0
        self._rewritten, self._untouched_count = self._choose(new_bytes // _COMPRESSION)
        self._offset = 0
        self.manifest = Manifest()

    def _choose(self, new_size: int) -> tuple[set[int], int]:
        """Return the segments to rewrite alone, and how many of the oldest are not compacted."""
        live = [sum(run.live_size for run in each.values()) for each in self._segments]
        classes = [size_class(size) for size in live]
        if self._has_new:
            classes.append(size_class(new_size))
        merged = count_to_merge(classes)
        if self._has_new and not merged:  # the size of the new one is an estimate
            merged = count_to_merge(classes[:-1])
            merged += merged > 0
        merged = max(merged, len(classes) - _MAX_SEGMENTS + 1)
        if any(table.needs_full_compaction for table in self._tables.values()):
            merged = len(classes)
        left = len(self._segments) - max(merged - self._has_new, 0)
        sparse = self._find_sparse_files()
        again = {
            number
            for number, segment in enumerate(self._segments[:left])
            if any(run.file in sparse for run in segment.values())
        }
        return again, left

    def _find_sparse_files(self) -> set[str]:
        """Return the emptiest files, to abandon while more than half of all bytes have expired."""
        sizes = self._before.sizes
        live = dict.fromkeys(sizes, 0)
        for segment in self._segments:
            for run in segment.values():
                live[run.file] += run.live_size
        total, total_live = sum(sizes.values()), sum(live.values())
        sparse: set[str] = set()
        for file in sorted(sizes, key=lambda name: live[name] / max(sizes[name], 1)):
            if total <= 2 * total_live:
                break
            sparse.add(file)
            total -= sizes[file] - live[file]
        return sparse

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes of the file."""
        yield self._count(HEADER)
        segments: list[Segment] = []
        for number, segment in enumerate(self._segments[: self._untouched_count]):
            if number in self._rewritten:
                made: Segment = {}
                yield from self._write([segment], made, with_new=False, are_oldest=number == 0)
                segments.append(made)
            else:
                segments.append(segment)
        newest: Segment = {}
        rest = self._segments[self._untouched_count :]
        if rest or self._has_new:
            is_all = self._untouched_count == 0
            yield from self._write(rest, newest, with_new=True, are_oldest=is_all)
            segments.append(newest)
        segments = [each for each in segments if each]
        for name, table in self._tables.items():
            table.count_written([each[name] for each in segments if name in each])
        used = {run.file for each in segments for run in each.values()}
        sizes = {file: size for file, size in self._before.sizes.items() if file in used}
        if self._name in used:
            sizes[self._name] = self._offset
        numbers = {owner: dict(each) for owner, each in self._before.numbers.items()}
        self.manifest = Manifest(segments, sizes, numbers)
        yield self.manifest.to_bytes()

    def _write(
        self, segments: Sequence[Segment], made: Segment, *, with_new: bool, are_oldest: bool
    ) -> Iterator[bytes]:
        """Yield the bytes of a segment that replaces some; put its runs into ``made``."""
        tables = self._tables
        unknown = {name for each in segments for name in each} - set(tables)
        if unknown:
            rule = "the state of a shard has the tables of its operator"
            raise StateCorruptedError(rule, value=", ".join(sorted(unknown)))
        for name, table in tables.items():
            runs = [each[name] for each in segments if name in each]
            if not runs and not (with_new and table.new_bytes):
                continue
            blocks = table.merge(runs, with_new=with_new, are_oldest=are_oldest)
            writer = RunWriter(name, self._name, self._offset, blocks)
            for part in writer.parts():
                yield self._count(part)
            consumed = 0 if table.needs_full_compaction else sum(run.consumed for run in runs)
            if (run := writer.run(consumed)) is not None:
                made[name] = run

    def _count(self, part: bytes) -> bytes:
        self._offset += len(part)
        return part


def size_class(size: int) -> int:
    """Return the size class of a number of bytes: a power of eight."""
    return max(size.bit_length() - _FIRST_CLASS_BITS + _CLASS_BITS - 1, 0) // _CLASS_BITS


def count_to_merge(classes: Sequence[int]) -> int:
    """Return the number of the newest segments to compact: 0, or several.

    Parameters
    ----------
    classes : sequence of int
        `size_class` of all of them, oldest first.
    """
    newest = classes[::-1]
    count = 0
    for size in sorted(set(classes)):
        larger = (index for index, each in enumerate(newest) if each > size)
        upto = next(larger, len(newest))
        if newest[:upto].count(size) >= MERGE_FANIN:
            count = upto
    return count
