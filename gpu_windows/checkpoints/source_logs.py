"""Logs of Spark's file sources, with the files that each batch has read.

A file source has an offset ``{"logOffset": N}``, and a log ``sources/PLACE`` with an entry for each
number up to N: a line of JSON for each file. Every tenth entry (``N.compact``) repeats all entries
before it. Other sources store at most their initial offset, which must not be changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.errors import CheckpointError
from gpu_windows.spark_glue.streams.spark_offsets import list_numbered

_VERSION = "v1"
_LOG_OFFSET = "logOffset"
_NOTHING = "-"
_COMPACT = ".compact"
#: Instead of a number in a log: nothing was read; an offset of another kind.
_NONE, _OTHER = -1, -2
#: Lines of a record of offsets before those of the sources.
_HEAD = 2


@dataclass(frozen=True)
class FileLog:
    """The log of a file source.

    Parameters
    ----------
    files : CheckpointFiles
        Of the whole checkpoint.
    folder : str
    entries : mapping of int to list of str
        Numbers, in order, to the names of their files and checksums.
    """

    files: CheckpointFiles
    folder: str
    entries: Mapping[int, list[str]]

    def split(self, last: int) -> tuple[list[str], list[str]]:
        """Return the names up to an entry, and those after it, the newest first.

        Raises
        ------
        CheckpointError
            If the entry, or an earlier one that it needs, is missing.
        """
        compact = (n for n, names in self.entries.items() if names[-1].endswith(_COMPACT))
        first = max((number for number in compact if number <= last), default=0)
        gone = sorted({*range(first, last + 1)} - {*self.entries})
        if gone:
            rule = "Spark's log of the files that the micro-batch read must exist"
            raise CheckpointError(rule, value=f"{self.folder}/{gone[0]} is not there")
        numbers = sorted(self.entries)
        before = [name for n in numbers if n <= last for name in self.entries[n]]
        after = [name for n in reversed(numbers) if n > last for name in self.entries[n]]
        return before, after

    def check_inputs(self, last: int) -> None:
        """Raise `CheckpointError` if a file that was read after an entry no longer exists.

        Only files on a disk of this machine are checked.
        """
        for number, names in self.entries.items():
            if number > last:
                for line in _read_lines(self.files, names[-1]):
                    path = _local_path(line)
                    if line["batchId"] > last and path is not None and not path.exists():
                        rule = "input files that were read after the commit must still exist"
                        raise CheckpointError(rule, value=path)


def find_file_logs(files: CheckpointFiles, sources: int) -> dict[int, FileLog]:
    """Return the positions of file sources to their logs.

    Parameters
    ----------
    files : CheckpointFiles
        Of the whole checkpoint.
    sources : int
        Number of sources.
    """
    logs = {}
    for place in range(sources):
        log = FileLog(files, f"sources/{place}", list_numbered(files, f"sources/{place}"))
        if log.entries and _is_of_files(files, log.entries[max(log.entries)][-1]):
            logs[place] = log
    return logs


def read_sources(record: bytes) -> list[str] | None:
    """Return the offsets of a record of Spark's, by source; None if it has another format."""
    version, *lines = record.decode().splitlines()
    return lines[_HEAD - 1 :] if version == _VERSION else None


def find_log_offsets(
    records: Mapping[int, bytes], number: int, logs: Mapping[int, FileLog]
) -> dict[int, int] | None:
    """Return the last entry of each log that was read up to a micro-batch.

    Spark has an offset for each use of a source, and a log for each source: a stream that a query
    uses twice has two offsets, which are always equal.

    Parameters
    ----------
    records : mapping of int to bytes
        ``offsets/NUMBER`` by number, in order.
    number : int
        Of the micro-batch; -1: before all.
    logs : mapping of int to FileLog
        By place.

    Returns
    -------
    dict of int to int, optional
        By position; -1 if nothing was read. None if offsets cannot be assigned to logs.
    """
    if number < 0:
        return dict.fromkeys(logs, _NONE)
    every = [read_sources(record) for record in records.values()]
    texts = [each for each in every if each is not None]
    if len(texts) < len(every) or len({len(each) for each in texts}) > 1:
        return None
    of_mentions = [tuple(column) for column in zip(*texts, strict=True)]
    at = list(records).index(number)
    for columns in (of_mentions, list(dict.fromkeys(of_mentions))):
        offsets = [tuple(map(_log_offset, column)) for column in columns]
        if _fits(offsets, logs):
            return {place: offsets[place][at] for place in logs}
    return None


def _fits(offsets: Sequence[tuple[int, ...]], logs: Mapping[int, FileLog]) -> bool:
    """Whether exactly the sources with logs have offsets that are numbers in logs."""
    possible = {place for place, column in enumerate(offsets) if _OTHER not in column}
    certain = {place for place in possible if max(offsets[place], default=_NONE) > _NONE}
    return certain <= logs.keys() <= possible


def _log_offset(text: str) -> int:
    """Return the number of the log entry in an offset."""
    if text == _NOTHING:
        return _NONE
    try:
        offset = json.loads(text)
    except ValueError:
        return _OTHER
    is_number = isinstance(offset, dict) and offset.keys() == {_LOG_OFFSET}
    return int(offset[_LOG_OFFSET]) if is_number else _OTHER


def _is_of_files(files: CheckpointFiles, name: str) -> bool:
    try:
        lines = _read_lines(files, name)
        return bool(lines) and all("path" in each and "batchId" in each for each in lines)
    except (ValueError, TypeError):
        return False


def _read_lines(files: CheckpointFiles, name: str) -> list[dict[str, Any]]:
    version, *lines = files.read(name).decode().splitlines()
    return [json.loads(line) for line in lines] if version == _VERSION else [{}]


def _local_path(line: Mapping[str, Any]) -> Path | None:
    uri = urlsplit(line["path"])
    return Path(url2pathname(uri.path)) if uri.scheme in ("", "file") else None
