"""A runner of recorded batch cases by `gpu_windows.scan`: their rows are in Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import gpu_windows as gw
from gpu_windows.planning.own_columns import REASON
from gpu_windows.vocabulary.options import Options
from tests.conformance.batch import BatchRunner
from tests.conformance.cases import Case
from tests.conformance.compare import compare_rows, compare_sides
from tests.conformance.frames import emissions_of
from tests.conformance.scenario import Scenario
from tests.conformance.verdict import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ScanRunner:
    """Runs scenarios over files, by the local runner or on Spark.

    Parameters
    ----------
    options : Options
    folder : Path
        For the files.
    session : SparkSession, optional
    """

    ticks_per_ms = 1

    def __init__(self, options: Options, folder: Path, session: SparkSession | None = None) -> None:
        self._options, self._folder, self._session = options, folder, session
        self.read_in_tasks: list[bool] = []
        self._cases = 0

    def skips(self, scenario: Scenario) -> str | None:
        return BatchRunner(self._options).skips(scenario)

    def run(self, scenario: Scenario, case: Case) -> Run:
        scans: list[Any] = []
        for side in case.sides:
            records = [record for record in scenario.records if record.side == side]
            scans.append(self._scan(case.table(records, self.ticks_per_ms)))
        watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
        outputs = case.outputs(scans, self._options, watermarks)
        self.read_in_tasks.append("read in the tasks" in outputs.explain())
        found = emissions_of(_table(outputs.result()), case, self.ticks_per_ms)
        sides = {
            tag: [*emissions_of(_table(outputs.side(tag)), case, self.ticks_per_ms)]
            for tag in outputs.plan.query.side_outputs
        }
        steps = range(len(scenario.input) + 1)
        differences = (
            *compare_rows(scenario, list(found)),
            *compare_sides(scenario, steps, sides),
        )
        reasons: list[str] = []
        if scenario.expected_error is not None:
            reasons = _table(outputs.rejected()).column(REASON).to_pylist()
        return Run(outputs.plan.strategy, differences, frozenset(reasons))

    def _scan(self, table: pa.Table) -> Any:
        """Return rows as a scan of three files of small row groups, in order."""
        self._cases += 1
        folder = self._folder / str(self._cases)
        folder.mkdir()
        third = len(table) // 3 + 1
        for number in range(3):
            rows = table.slice(number * third, third)
            pq.write_table(rows, folder / f"{number}.parquet", row_group_size=7)
        return gw.scan(folder, self._session)


class TableRunner(ScanRunner):
    """The same of Arrow tables, by the local runner."""

    def _scan(self, table: pa.Table) -> Any:
        return table


def _table(found: Any) -> pa.Table:
    return found if isinstance(found, pa.Table) else found.toArrow()
