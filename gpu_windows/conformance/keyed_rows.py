"""Statements of Flink's SQL whose results are of rows of keys, in our words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import gpu_windows as gw
from gpu_windows.conformance.cases import Case
from gpu_windows.conformance.functions import SCHEMA
from gpu_windows.conformance.scenario import Record
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.options import Options
from gpu_windows.query.base import Query
from gpu_windows.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeyedRows(Case):
    """Results of rows of keys; ``at`` is the time of a row as a column."""

    @abstractmethod
    def _outputs(self, keyed: KeyedStream, options: Options) -> gw.Outputs:
        """Return the outputs over rows of keys."""

    def query(self, options: Options) -> Query:
        """Return the query that the public API makes of a table without rows."""
        nothing = SCHEMA.append(SCHEMA.field("ts").with_name("at")).empty_table()
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        keyed = gw.stream(nothing).event_time("ts", strategy).key_by("key")
        return self._outputs(keyed, options).plan.query

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.Outputs:
        """Return the outputs of the public API over a DataFrame."""
        (frame,) = frames
        keyed = gw.stream(frame).event_time("ts", watermarks).key_by("key")
        return self._outputs(keyed, options)

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of the query's input."""
        return {
            "key": self.keys(records),
            "ts": [record.ts for record in records],
            "value": [record.value for record in records],
            "seq": [record.seq for record in records],
            "at": [record.ts for record in records],
        }
