"""Tasks whose log records have the fields of their micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.monitoring.logs import log_fields, log_to_stderr

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class LoggedTask:
    """A function of record batches, as `mapInArrow` takes it, that logs with fields.

    Parameters
    ----------
    task : callable
    fields : mapping of str to object
    """

    task: Task
    fields: Mapping[str, object]

    @property
    def __name__(self) -> str:
        """The name of the task."""
        return getattr(self.task, "__name__", type(self.task).__name__)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task."""
        log_to_stderr()
        with log_fields(**self.fields):
            yield from self.task(batches)
