"""Statements of Flink's SQL whose results are of rows of keys, in our words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import gpu_windows as gw
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.vocabulary.options import Options
from tests.conformance.cases import ByTheApi, columns_of
from tests.conformance.scenario import Record


class KeyedRows(ByTheApi):
    """Results of rows of keys; ``at`` is the time of a row as a column."""

    @abstractmethod
    def _keyed(self, keyed: KeyedStream, options: Options) -> gw.typing.Outputs:
        """Return the outputs over rows of keys."""

    def _outputs(self, timed: TimedStream, options: Options) -> gw.typing.Outputs:
        return self._keyed(timed.key_by("key"), options)

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of the query's input."""
        return {**columns_of(self, records), "at": [record.ts for record in records]}
