"""The manifest at the end of a state file: all live runs, their files, and numbers of operators.

It includes the live runs of earlier files, so the name of the newest file is enough to read state.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from gpu_windows.errors import StateCorruptedError, StateVersionError
from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.frames import pack_frame, unpack_frame
from gpu_windows.operators.state.runs import Run

#: Version of the format of state files; in 1 each table of a block was one record batch.
VERSION = 2
MAGIC = b"gpst"
HEADER = struct.pack("<4sI", MAGIC, VERSION)
#: Length of the manifest, version, magic.
_FOOTER = struct.Struct("<QI4s")
#: Bytes of the first read: most manifests are shorter.
_TAIL = 1 << 13

#: Runs of the same age, by their tables.
Segment = dict[str, Run]


@dataclass(frozen=True)
class Manifest:
    """The live state after a micro-batch.

    Parameters
    ----------
    segments : list of Segment
        Oldest first.
    sizes : mapping of str to int
        Bytes of the files that have them, by name.
    numbers : mapping
        Owner to name to number: state of operators and tables other than runs.
    """

    segments: Sequence[Segment] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the end of a state file."""
        files = {name: number for number, name in enumerate(self.sizes)}
        segments = [[_to_list(run, files) for run in each.values()] for each in self.segments]
        content = {"files": self.sizes, "segments": segments, "numbers": self.numbers}
        frame = pack_frame(json.dumps(content, separators=(",", ":")).encode())
        return frame + _FOOTER.pack(len(frame), VERSION, MAGIC)


def read_manifest(files: StateFiles, name: str) -> Manifest:
    """Return the manifest at the end of a state file.

    Raises
    ------
    StateCorruptedError
        If the file is missing or damaged.
    StateVersionError
        If it has another version.
    """
    tail = read_end(files, name, _TAIL)
    damaged = StateCorruptedError("a state file must be as it was written", value=name)
    if len(tail) < _FOOTER.size:
        raise damaged
    length, version, magic = _FOOTER.unpack(tail[-_FOOTER.size :])
    if magic != MAGIC:
        raise damaged
    if version != VERSION:
        rule = f"state files of version {VERSION} can be read: {name} was written by another"
        raise StateVersionError(rule, value=version)
    if length + _FOOTER.size > len(tail):
        tail = read_end(files, name, length + _FOOTER.size)
    if length + _FOOTER.size > len(tail):
        raise damaged
    frame = tail[len(tail) - _FOOTER.size - length : len(tail) - _FOOTER.size]
    content = json.loads(bytes(unpack_frame(frame, name)))
    names = list(content["files"])
    segments = [
        {run.table: run for run in (_from_list(record, names) for record in each)}
        for each in content["segments"]
    ]
    return Manifest(segments, content["files"], content["numbers"])


def read_end(files: StateFiles, name: str, length: int) -> bytes:
    """Return the last bytes of a state file.

    Raises
    ------
    StateCorruptedError
        If there is no such file.
    """
    try:
        return files.read_end(name, length)
    except FileNotFoundError as error:
        raise missing_file(name) from error


def missing_file(name: str) -> StateCorruptedError:
    """Return the error for a missing state file."""
    return StateCorruptedError("a state file that the last commit needs must be there", value=name)


def _to_list(run: Run, files: Mapping[str, int]) -> list[Any]:
    table, file, *numbers = astuple(run)
    return [table, files[file], *numbers]


def _from_list(record: Sequence[Any], names: Sequence[str]) -> Run:
    table, file, *numbers = record
    return Run(table, names[file], *numbers)
