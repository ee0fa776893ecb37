"""Steps of a query, which know what comes after them: ``aggregate`` is asked of a window."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from gpu_windows.errors import MissingStepError

_SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: What Spark and Flink call steps, to the name that they have here.
_MEANT = {
    "agg": "aggregate",
    "groupBy": "key_by",
    "groupby": "key_by",
    "group_by": "key_by",
    "withWatermark": "event_time",
    "with_watermark": "event_time",
    "assignTimestampsAndWatermarks": "event_time",
    "apply": "process",
}


class Step:
    """A step of a query: who asks it for what only a later one has is told what comes between."""

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives, in order."""
        return {}

    if not TYPE_CHECKING:  # for what it has, and no more, type checkers look at the class

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `MissingStepError`, which is an `AttributeError`, with what is missing.

            Names of Spark and of Flink are told those that the steps have here.
            """
            meant, kind = _MEANT.get(name, _SNAKE.sub("_", name).lower()), type(self)
            if meant != name and not name.startswith("_") and meant in dir(kind):
                raise MissingStepError(f"say .{meant} for .{name}", value=kind.__name__)
            between = (said for said, step in self._later().items() if meant in dir(step))
            said = None if name.startswith("_") else next(between, None)
            if said is None:
                object.__getattribute__(self, name)  # raises what it has raised
            raise MissingStepError(f"say .{said} before .{meant}", value=kind.__name__)
