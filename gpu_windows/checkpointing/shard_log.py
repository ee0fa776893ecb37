"""The state of a shard as a log of state files: each micro-batch writes one, with what it changed.

Reads go by the directory of the newest file. A file is written again into the next one when half of
it is dead, or when it is one of several small ones: so files stay few, and a byte of state is
written again a few times in its life, however many micro-batches there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_file import (
    EMPTY,
    BlobName,
    Directory,
    read_blob,
    read_blobs,
    read_directory,
    write_state_file,
)
from gpu_windows.operators.state.store import Store, missing

#: Files of a size class that become one.
_MERGE_COUNT = 8
#: Bits by which size classes differ: each has eight times the bytes of the one below; and the bits
#: of the largest size in the first class, 64 KiB.
_CLASS_BITS, _FIRST_CLASS_BITS = 3, 16


class ShardLog(Store):
    """Blobs of a shard: those of its state files, and what the micro-batch has changed since.

    Nothing is written before `finish`, so a call that fails leaves the state as it was.

    Parameters
    ----------
    files : CheckpointFiles
    newest : str, optional
        Name of the newest state file of the shard; None: it has no state yet.

    Raises
    ------
    StateCorruptedError, StateVersionError
        If that file is not what was written.
    """

    def __init__(self, files: CheckpointFiles, newest: str | None) -> None:
        self._files = files
        self.directory = EMPTY if newest is None else read_directory(files, newest)
        self.has_saved = newest is not None
        self._newest = newest
        self._written: dict[BlobName, bytes] = {}
        self._removed: set[BlobName] = set()

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        name = kind, bucket
        if name in self._removed:
            return None
        if name in self._written:
            return self._written[name]
        place = self.directory.places.get(name)
        return None if place is None else read_blob(self._files, place)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        del held
        self._written[kind, bucket] = blob
        self._removed.discard((kind, bucket))

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob.

        Raises
        ------
        StateCorruptedError
            If there is none.
        """
        del held
        name = kind, bucket
        if name not in self._written and (
            name in self._removed or name not in self.directory.places
        ):
            raise missing(kind, bucket)
        self._written.pop(name, None)
        self._removed.add(name)

    def names(self) -> Iterator[BlobName]:
        """Yield the table and bucket of every blob."""
        yield from self._written
        for name in self.directory.places:
            if name not in self._written and name not in self._removed:
                yield name

    def finish(self, name: str) -> str | None:
        """Write what was changed into a state file; return the name of the newest one.

        Parameters
        ----------
        name : str
            For the file, of this attempt only. Not used if nothing was changed.
        """
        if not self._written and not self._removed.intersection(self.directory.places):
            return self._newest
        places = {
            each: place
            for each, place in self.directory.places.items()
            if each not in self._written and each not in self._removed
        }
        live = Directory(places, self.directory.sizes)
        merged = set(_files_to_merge(live, sum(map(len, self._written.values()))))
        moved = {each: place for each, place in places.items() if place.file in merged}
        in_order = sorted(moved, key=lambda each: (moved[each].file, moved[each].offset))
        blobs = read_blobs(self._files, [moved[each] for each in in_order])
        carried = dict(zip(in_order, blobs, strict=True))
        rest = {each: place for each, place in places.items() if each not in moved}
        self.directory = write_state_file(
            self._files, name, {**carried, **self._written}, Directory(rest, live.sizes)
        )
        self._newest, self._written, self._removed = name, {}, set()
        return name


def _files_to_merge(directory: Directory, written: int) -> Iterator[str]:
    """Yield the files whose live blobs go into the file that is to be written.

    ``written``: bytes of the blobs that it has anyway.
    """
    classes: defaultdict[int, list[str]] = defaultdict(list)
    live_bytes = directory.live_bytes
    for file, live in live_bytes.items():
        if 2 * live < directory.sizes[file]:
            yield file
            written += live
        else:
            classes[_size_class(live)].append(file)
    for number in sorted(classes):
        members = classes[number]
        if len(members) + (_size_class(written) == number) >= _MERGE_COUNT:
            yield from members
            written += sum(live_bytes[file] for file in members)


def _size_class(size: int) -> int:
    return max(size.bit_length() - _FIRST_CLASS_BITS, 0) // _CLASS_BITS
