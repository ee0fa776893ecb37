"""Tells tasks before the shuffle which watermark is in force in their micro-batch.

Spark tells that to what is behind the shuffle only. But it stands in the checkpoint before the
micro-batch runs: the sink, which runs it, reads it there, and a setting of the session carries it,
for Spark gives tasks the settings of the session that runs them. Where either fails, tasks know
nothing, and ship all rows as they are: that is slower, and gives the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import TaskContext
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
#: Whether it was.
_said = Event()


@dataclass(frozen=True)
class Notice:
    """What carries the watermark of a query's micro-batches to tasks: a setting of the session.

    Parameters
    ----------
    setting : str
        Its name. Queries may share a session, so each start of one has its own. It begins with
        ``spark``, as those do that Spark gives to tasks.
    """

    setting: str = field(default_factory=lambda: f"spark.gpu_windows.watermark.{uuid4().hex}")

    @contextmanager
    def posted(self, session: SparkSession, watermark_ms: int | None) -> Iterator[None]:
        """Have the tasks of a session know a watermark (None: nothing) for a while."""
        if watermark_ms is None or not self._post(session, watermark_ms):
            yield
            return
        try:
            yield
        finally:
            session.conf.unset(self.setting)

    def _post(self, session: SparkSession, watermark_ms: int) -> bool:
        try:
            session.conf.set(self.setting, str(watermark_ms))
        except PySparkException as error:  # some services allow known settings only
            _say_once(error)
            return False
        return True

    def watermark_ms(self) -> int | None:
        """Return the latest watermark, of Spark's, in this task's micro-batch; None if not known.

        0 is that before there is one.
        """
        context = TaskContext.get()
        text = None if context is None else context.getLocalProperty(self.setting)
        return None if text is None else int(text)


def _say_once(error: Exception) -> None:
    """Say why rows cross as they are: once, not for every micro-batch."""
    if not _said.is_set():
        _said.set()
        logger.warning(
            "no setting can be made by this session, so rows that might become partials are "
            "shipped as they are: %s",
            error,
        )
