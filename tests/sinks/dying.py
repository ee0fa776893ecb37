"""Streaming queries whose sink dies after it has written, before Spark hears of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gpu_windows as gw

NOW = {"availableNow": True}


class Dies(gw.Sink, gw.SinkWriter):
    """Another sink, which dies once it has written a micro-batch."""

    def __init__(self, sink: gw.Sink, number: int) -> None:
        self._sink, self._number = sink, number

    def open(self, query: gw.typing.SinkQuery) -> gw.SinkWriter:
        self._writer = self._sink.open(query)
        return self

    def begin(self, query: gw.typing.SinkQuery) -> None:
        self._writer.begin(query)

    def write(self, batch: gw.typing.SinkBatch) -> None:
        self._writer.write(batch)
        if batch.number == self._number:
            raise KeyError("dies here")


def run(
    outputs: gw.typing.Outputs, sink: gw.Sink | Path | Callable[..., None], checkpoint: Path
) -> None:
    """Run a query over what is there."""
    gw.write_stream(outputs, sink, checkpoint, trigger=NOW).awaitTermination()


def fails(call: Callable[[], None], text: str) -> None:
    """Call what must fail."""
    with pytest.raises(Exception, match=text):
        call()
