"""Rescaling: writes the state of a new shard, selected from the state of the old ones.

All state is read and written once, at a start. References into the old files would avoid that, but
then every read, filter, count and compaction would have to skip the rows of other shards until all
files were compacted. A copy keeps that logic in one module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.manifest import HEADER, Manifest, Segment
from gpu_windows.operators.state.runs import RunWriter

#: Prefix of the names of numbers that are the next of a sequence, unique among rows of a shard.
NEXT = "next "


def write_rescaled(sources: Sequence[StateLog], files: StateFiles, name: str) -> None:
    """Write the state of a new shard into one file.

    Parameters
    ----------
    sources : sequence of StateLog
        Logs of old shards, in their order; each has a `Rescaling`, and the tables of its operator.
    files : StateFiles
    name : str
        Of the file, unique to this attempt.

    Raises
    ------
    OSError
    StateCorruptedError
        If a source is damaged.
    """
    files.write(name, _parts(sources, name))


def _parts(sources: Sequence[StateLog], name: str) -> Iterator[bytes]:
    yield HEADER
    offset, segments = len(HEADER), list[Segment]()
    for source in sources:
        segment: Segment = {}
        for table in source.tables.values():
            runs = table.runs
            if not runs:
                continue
            blocks = table.merge(runs, with_new=False, are_oldest=True)
            writer = RunWriter(table.name, name, offset, blocks)
            for part in writer.parts():
                offset += len(part)
                yield part
            if (run := writer.run()) is not None:
                segment[table.name] = run
        segments.append(segment)
    segments = [each for each in segments if each]
    sizes = {name: offset} if segments else {}
    yield Manifest(segments, sizes, _merge_numbers(sources)).to_bytes()


def _merge_numbers(sources: Sequence[StateLog]) -> dict[str, dict[str, int]]:
    """Return the numbers of a new shard: watermarks are the same in all old ones."""
    merged: dict[str, dict[str, int]] = {}
    for source in sources:
        assert source.rescaling is not None
        for owner, numbers in source.saved_numbers.items():
            own = merged.setdefault(owner, {})
            counted = source.rescaling.counts.get(owner)
            for number_name, number in numbers.items():
                if counted is not None:
                    own[number_name] = own.get(number_name, 0) + counted[number_name]
                elif number_name.startswith(NEXT):
                    own[number_name] = sum(map(count_numbers, sources))  # each shard's shifted
                else:
                    own[number_name] = max(own.get(number_name, number), number)
    return merged


def count_numbers(source: StateLog) -> int:
    """Return the next number of rows of a shard."""
    return max(
        (
            number
            for numbers in source.saved_numbers.values()
            for name, number in numbers.items()
            if name.startswith(NEXT)
        ),
        default=0,
    )
