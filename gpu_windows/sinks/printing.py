"""Sinks that print results, as Flink's connector ``print`` does, and that drop them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from gpu_windows.commits.records import RESULT
from gpu_windows.functions.top_changes import Change
from gpu_windows.runners.sink import Sink, SinkBatch, SinkQuery, SinkWriter

_SIGNS = {Change.INSERT.name.lower(): "+I", Change.DELETE.name.lower(): "-D"}


@dataclass(frozen=True)
class PrintSink(Sink):
    """Prints each result in a line: ``+I[ann, 2]``.

    Parameters
    ----------
    prefix : str
        Printed before each line, with ``> ``.
    """

    prefix: str = ""

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return a writer that prints."""
        return _PrintWriter(self.prefix, query.plan.query.change_column)


@dataclass
class _PrintWriter(SinkWriter):
    prefix: str
    change: str | None

    def write(self, batch: SinkBatch) -> None:
        """Print the results of a micro-batch, a partition at a time."""
        frame = batch.read(RESULT, None)
        for row in frame.toLocalIterator():
            print_row(row.asDict(recursive=False), self.prefix, self.change)


def print_row(row: dict[str, Any], prefix: str = "", change: str | None = None) -> None:
    """Print a row with its kind of change."""
    sign = _SIGNS.get(str(row.get(change)), "+U") if change is not None else "+I"
    values = ", ".join(_text(value) for name, value in row.items() if name != change)
    sys.stdout.write(f"{f'{prefix}> ' if prefix else ''}{sign}[{values}]\n")


def _text(value: Any) -> str:
    """Return a value as text; booleans and null as in Java."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


@dataclass(frozen=True)
class DiscardSink(Sink, SinkWriter):
    """Drops results: for measurements."""

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return the sink itself."""
        del query
        return self

    def write(self, batch: SinkBatch) -> None:
        """Drop a micro-batch, which has been computed."""
