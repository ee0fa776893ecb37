"""Reads Spark's part of a checkpoint: its logs of planned and of finished micro-batches."""

from __future__ import annotations

import json
import re
from collections import defaultdict

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import StateCommit

#: Folders of a checkpoint: offsets and times of planned micro-batches; finished micro-batches.
FOLDER, COMMITS = "offsets", "commits"
_PLANNED_AT = "batchTimestampMs"
#: A number with the suffixes of Spark's logs and of Hadoop's checksums.
_NUMBERED = re.compile(r"\.?(\d+)(?:\.compact)?(?:\.crc)?")


def planned_at(record: bytes) -> int:
    """Return when Spark planned a micro-batch, in milliseconds since 1970.

    Parameters
    ----------
    record : bytes
        ``offsets/NUMBER``: its second line has settings and times, as JSON.
    """
    return int(json.loads(record.decode().splitlines()[1])[_PLANNED_AT])


def list_numbered(files: CheckpointFiles, folder: str) -> dict[int, list[str]]:
    """Return the numbers in a log of Spark's, in order, to the names of their files.

    A checksum is listed before its file, so that it is deleted first: a file without one is read,
    but a checksum that is left would reject the file that Spark writes next.

    Parameters
    ----------
    files : CheckpointFiles
        Of the whole checkpoint.
    folder : str
        ``offsets``, ``commits``, or ``sources/NUMBER`` of a source of files.
    """
    names: dict[int, list[str]] = defaultdict(list)
    for name in files.names(folder):
        match = _NUMBERED.fullmatch(name.rpartition("/")[2])
        if match is not None:
            names[int(match[1])].append(name)
    return dict(sorted(names.items()))


def is_ahead(files: CheckpointFiles, last: StateCommit) -> bool:
    """Whether Spark has planned or run micro-batches that cannot follow the last commit.

    Parameters
    ----------
    files : CheckpointFiles
        Of the whole checkpoint.
    last : StateCommit
    """
    planned, done = (max(list_numbered(files, each), default=-1) for each in (FOLDER, COMMITS))
    return planned > last.number + 1 or done > last.number
