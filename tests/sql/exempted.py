"""The rows whose values over Arrow tables are not Flink's: ``python -m tests.sql.exempted``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.errors import ExpressionError, SqlError
from tests.oracle.expressions.tables import TABLES
from tests.sql.known_differences import is_known, may_raise
from tests.sql.recorded import IN
from tests.sql.recorded_values import Recorded, differences, recorded, rows

FILE = Path(__file__).with_name("known_differences.json")
_WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


def values_on_arrow(table: str, expression: str, places: Sequence[int]) -> pa.ChunkedArray:
    """Return the values of an expression for some rows of a table."""
    stream = gw.stream(rows(table).take([*places])).event_time("at", _WATERMARKS)
    return gw.sql(f"SELECT i, {expression} AS x {IN}", t=stream).result().sort_by("i")["x"]


@cache
def refusal_on_arrow(table: str, expression: str) -> SqlError | None:
    """Return the error of an expression that is refused."""
    stream = gw.stream(rows(table)).event_time("at", _WATERMARKS)
    try:
        gw.sql(f"SELECT {expression} AS x {IN}", t=stream).outputs()
    except SqlError as error:
        return error
    return None


def _raises(recording: Recorded, places: Sequence[int]) -> bool:
    try:
        values_on_arrow(recording.table, recording.expression, places)
    except ExpressionError:
        return True
    return False


def find_rows(recording: Recorded) -> dict[str, list[int]]:
    """Return the rows of an expression that differ from Flink's, and those that raise an error.

    A row that raises an error in Flink differs if it has a value.
    """
    valid, raising = recording.valid_rows, []
    if may_raise(recording) and _raises(recording, valid):
        raising = [row for row in valid if _raises(recording, [row])]
    places = [row for row in valid if row not in raising]
    found = values_on_arrow(recording.table, recording.expression, places)
    differing = [row for row, _, _ in differences(found, recording, places)]
    for row in set(range(len(recording.values))) - set(valid):
        if not _raises(recording, [row]):
            value = values_on_arrow(recording.table, recording.expression, [row])[0]
            differing += [row] if value.is_valid else []
    all_rows = {"differ": sorted(differing), "raise": raising}
    return {name: each for name, each in all_rows.items() if each}


@cache
def known_rows() -> Mapping[str, Mapping[str, Mapping[str, list[int]]]]:
    """Return the rows by table, expression, and ``differ`` or ``raise``."""
    found: Mapping[str, Mapping[str, Mapping[str, list[int]]]] = json.loads(FILE.read_text())
    return found


def main() -> None:
    """Write the rows; raise ValueError for one without a reason in `known_differences`."""
    lines = []
    for table in TABLES:
        entries = []
        for recording in recorded(table):
            if refusal_on_arrow(table, recording.expression) is not None:
                continue
            found = find_rows(recording)
            for row in found.get("differ", []):
                if not is_known(recording, row):
                    raise ValueError(f"{recording.expression} of row {row} differs")
            if found:
                entries.append(f"{json.dumps(recording.expression)}: {json.dumps(found)}")
        lines.append(f"{json.dumps(table)}: {{\n" + ",\n".join(entries) + "}")
    FILE.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
