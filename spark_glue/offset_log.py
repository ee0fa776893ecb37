"""What Spark notes in a checkpoint: a micro-batch before it runs, and once it has run."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyarrow import fs

from gpu_windows.commits.log import file_system
from gpu_windows.spark_glue.local_texts import link_whole

logger = logging.getLogger(__name__)
#: What is raised where a checkpoint is out of reach, or not as it is known.
UNREADABLE = (OSError, ValueError, NotImplementedError, LookupError, TypeError)
#: Of a checkpoint: its query's name for itself, and what is noted before and after micro-batches.
QUERY, _OFFSETS, _COMMITS = "metadata", "offsets", "commits"
_WATERMARK, _AT, _REACHED = "batchWatermarkMs", "batchTimestampMs", "nextBatchWatermarkMs"
#: Where this was said.
_said: set[str] = set()


@dataclass(frozen=True)
class Planned:
    """What Spark notes of a micro-batch: its watermark, 0 before there is one, and when it was.

    Both in milliseconds. When it was tells it from another micro-batch of its number, in another
    copy of the checkpoint; a micro-batch that comes again has the same.
    """

    watermark_ms: int
    at_ms: int


@dataclass(frozen=True)
class OffsetLog:
    """What Spark notes in a checkpoint of its micro-batches.

    Parameters
    ----------
    uri : str
        Of the checkpoint, for `gpu_windows.commits.log.file_system`.
    """

    uri: str

    def planned(self, number: int) -> Planned | None:
        """Return what is noted of a micro-batch; None: it cannot be read."""
        try:
            noted = read_record(self._text(f"{_OFFSETS}/{number}"))
            return Planned(int(noted[_WATERMARK]), int(noted[_AT]))
        except UNREADABLE as error:
            self._say_once(error)
            return None

    def is_of(self, query: str) -> bool:
        """Whether it is in reach, and of the query that calls itself so."""
        try:
            return self._text(QUERY).strip() == query
        except UNREADABLE:
            return False

    def plan_owed(self, *, by_clock: bool) -> int | None:
        """Note a micro-batch in which only time passes, where one is to follow the last one.

        It has that one's offsets, settings and time, and the watermark that was reached with it.
        Spark runs it when the query starts, as one that was interrupted. No timer is due by the
        time of the one before, so no clock moves before rows that wait have been read.

        Parameters
        ----------
        by_clock : bool
            One always is to follow; else where the last one has moved the watermark.

        Returns
        -------
        int or None
            Its number; None: none is to follow, or it is noted already.

        Raises
        ------
        OSError, ValueError, NotImplementedError, LookupError, TypeError
            If the checkpoint is out of reach, or Spark notes something else there.
        """
        last = self._last(_OFFSETS)
        if last is None or last != self._last(_COMMITS):
            return None  # nothing has run, or Spark runs the last one again
        version, settings, offsets = self._text(f"{_OFFSETS}/{last}").split("\n", 2)
        noted = json.loads(settings)
        reached = int(read_record(self._text(f"{_COMMITS}/{last}"))[_REACHED])
        if reached <= int(noted[_WATERMARK]) and not by_clock:
            return None
        noted[_WATERMARK] = max(reached, int(noted[_WATERMARK]))
        text = "\n".join([version, json.dumps(noted, separators=(",", ":")), offsets])
        return last + 1 if self._add(last + 1, text) else None

    @cached_property
    def _system(self) -> tuple[fs.FileSystem, str]:
        return file_system(self.uri)

    def _text(self, name: str) -> str:
        system, root = self._system
        with system.open_input_file(f"{root}/{name}") as file:
            text: bytes = file.read()
        return text.decode()

    def _last(self, folder: str) -> int | None:
        """Return the highest number that a file there has."""
        system, root = self._system
        found = system.get_file_info(fs.FileSelector(f"{root}/{folder}", allow_not_found=True))
        names = (info.base_name for info in found)
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _add(self, number: int, text: str) -> bool:
        """Write what is noted of a micro-batch, whole or not at all; False: it is there.

        On a local disk with links nothing is replaced. Elsewhere what another process notes at the
        same moment may be.
        """
        system, root = self._system
        path, draft = (f"{root}/{_OFFSETS}/{name}" for name in (number, f".{number}.{uuid4().hex}"))
        if isinstance(system, fs.LocalFileSystem):
            # Who has removed the file by hand has left its checksum, and Spark would compare.
            Path(root, _OFFSETS, f".{number}.crc").unlink(missing_ok=True)
            try:
                return link_whole(Path(path), text)
            except OSError:
                logger.debug("%s has no links", root, exc_info=True)
        try:
            with system.open_output_stream(draft) as file:
                file.write(text.encode())
            if system.get_file_info(path).type != fs.FileType.NotFound:
                return False
            system.move(draft, path)
        finally:
            with suppress(OSError):  # it was moved, or Spark passes over it
                system.delete_file(draft)
        return True

    def _say_once(self, error: Exception) -> None:
        """Say why rows cross as they are: once, not for every micro-batch."""
        if self.uri not in _said:
            _said.add(self.uri)
            logger.warning(
                "what Spark planned cannot be read at %s, so rows that might become partials are "
                "shipped as they are: %s",
                self.uri,
                error,
            )


def read_record(text: str) -> dict[str, Any]:
    """Return the settings and times that Spark notes of a micro-batch, in its second line."""
    noted: dict[str, Any] = json.loads(text.splitlines()[1])
    return noted


def planned_at(record: bytes) -> int:
    """Return when Spark planned a micro-batch, in milliseconds since 1970, given ``offsets/N``."""
    return int(read_record(record.decode())[_AT])
