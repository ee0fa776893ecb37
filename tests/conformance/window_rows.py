"""Statements of Flink's SQL that give each row with the windows that it is in, in our words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gpu_windows as gw
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.planning.own_columns import SPREAD
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import MergingWindowAssigner, WindowAssigner
from tests.conformance.cases import ByTheApi, columns_of
from tests.conformance.scenario import Record, Scenario
from tests.conformance.statements import tvf_assigner


class RowsInWindows(ByTheApi):
    """The rows of a window table-valued function; those of sessions are by key.

    Parameters
    ----------
    assigner : WindowAssigner
    records : sequence of Record
    """

    def __init__(self, assigner: WindowAssigner, records: Sequence[Record]) -> None:
        self._assigner = assigner
        self._times = {record.seq: record.ts for record in records}

    def _outputs(self, timed: TimedStream, options: Options) -> gw.typing.Outputs:
        given = {name: each for name, each in vars(options).items() if each is not None}
        by = ("key",) if isinstance(self._assigner, MergingWindowAssigner) else ()
        columns = ("key", "value", "seq")
        return timed.with_windows(
            self._assigner, columns=columns, partition_by=by, arrival_order=("seq",), **given
        )

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of the query's input, and the one that spreads rows."""
        return {**columns_of(self, records), SPREAD: [0] * len(records)}

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of the row."""
        return {**{name: row[name] for name in ("key", "value", "seq")},
                "ts": self._times[row["seq"]]}  # fmt: skip

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the statement, whose time is the last one of the window."""
        bounds = {WINDOW_START: row[WINDOW_START], WINDOW_END: row[WINDOW_END]}
        last = row[WINDOW_END] - 1
        return {"op": "+I", **self.payload(row), **bounds, "window_time": last, "timestamp": last}


def rows_in_windows(scenario: Scenario, ticks_per_ms: int) -> RowsInWindows:
    """Return the rows of a window table-valued function."""
    return RowsInWindows(tvf_assigner(scenario, ticks_per_ms), scenario.records)
