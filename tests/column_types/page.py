"""``docs/types.md``, written from the table of types and uses.

``python -m tests.column_types.page`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from gpu_windows.column_types.logical import LOGICAL, name_of
from tests.column_types.uses import FORMS, USES

PAGE = Path(__file__).parents[2] / "docs" / "types.md"
#: Forms whose names have parameters, as they are shown.
_SHOWN = {
    pa.dictionary(pa.int32(), pa.string()): "dictionary (categories of pandas and Polars)",
    pa.run_end_encoded(pa.int32(), pa.string()): "run_end_encoded",
    pa.binary(2): "fixed_size_binary, uuid",
    pa.decimal32(9, 2): "decimal32(9, 2)",
    pa.decimal64(18, 2): "decimal64(18, 2)",
    pa.large_list(pa.int32()): "large_list",
    pa.list_view(pa.int32()): "list_view, large_list_view",
    pa.list_(pa.uint16(), 2): "fixed_size_list",
    pa.time32("ms"): "time32",
    pa.timestamp("s", "UTC"): "timestamp[s], [ms]",
    pa.timestamp("us", "Europe/Zurich"): "timestamp of another zone",
    pa.float16(): "float16",
    pa.date64(): "date64",
}
_HEAD = """\
# Types of columns

Written from `tests/column_types/uses.py` by `python -m tests.column_types.page`; a test
checks every cell.

A column has a logical type of Spark's. Arrow, pandas, Polars, DuckDB, cuDF and Parquet represent
the same values in several ways. A table, a reader or a file is converted **exactly** to the logical
type when it is read, and only columns in another representation are converted.

- **A value that would change** raises a `ColumnTypeError` that names the column and a remedy, for
  example a `date64` that is not a whole day.
- **A time that does not fit 64 bits of microseconds** raises it, too; as event time the row is
  rejected, like any row whose time is out of range.
- **Durations** keep their units; a row whose duration is too long is rejected.
"""
_LOCAL = """\
## Times without a zone

A TIMESTAMP_NTZ (an Arrow timestamp without a zone) is what a clock shows, not an instant. As event
time it may be used in two ways. The time zone of the session has no part in either.

**As it is**: `event_time("ts", watermarks)`. Windows are of the times that clocks show, as those of
Flink's TIMESTAMP are: an hour of a window is an hour on the dial, also where clocks go forward or
back, and a window of a day begins at midnight of the clock. Bounds of windows, and other times that
results get from event times, are TIMESTAMP_NTZ too. User functions, metrics and logs have times as
ticks or watermarks: microseconds since 1970 as if the clock were in UTC.

- Both inputs of a join, a union, a co-group or connected streams have times with a zone, or both
  without; a mixture raises `ColumnTypeError`. So does a watermark column of the other type.
- A watermark strategy that looks at a clock (`guard`, `close_when_idle`) is refused.

**As instants**, if it is known where the clocks were: name the zone, on tables, files and
DataFrames, batch and streaming: `event_time("ts", watermarks, time_zone="Europe/Zurich")`, or
`gpu-windows sql --time-zone`.

When clocks go back, a local time that occurs twice is the first of both instants. When clocks go
forward, a local time that does not exist is shifted forward by the same amount: 02:30 becomes
03:30. Spark casts them in the same way. Rows of such times are in the windows of these instants.
"""
_TWO = """\
## Columns of two inputs

Keys of [joins](joins.md), co-groups and connected streams, and columns of unions, may have
different types:

| types | common type |
| --- | --- |
| integers, or floats, of two widths | the wider one |
| integers and decimals | the decimal that holds both, as in Spark |
| instants of two time zones | that of the first input |
| times in nanoseconds and in microseconds | microseconds, exactly |

Others raise `ColumnTypeError`: integers with floats, strings with numbers. Cast one of them, with
`with_columns`.
"""
#: Uses in the first of the two tables of types and uses.
_IN_FIRST_TABLE = 11


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join([_row(head), _row(["---"] * len(head)), *map(_row, rows)])


def page_text() -> str:
    """Return the page."""
    shown: dict[str, list[str]] = {}
    for form in FORMS:
        name = _SHOWN.get(form, str(form))
        if form != pa.timestamp("ms", "Europe/Zurich"):
            shown.setdefault(name_of(form), []).append(name)
    forms = [(name, ", ".join(names)) for name, names in shown.items()]
    uses = [(use.title, use.gives, use.remedy or "takes all") for use in USES.values()]
    numbered = {name: str(number) for number, name in enumerate(USES, 1)}
    matrix = [
        (name, *("yes" if name in use.takes else "-" for use in USES.values())) for name in LOGICAL
    ]
    head, first = ["type", *numbered.values()], _IN_FIRST_TABLE + 1
    rest = [(row[0], *row[first:]) for row in matrix]
    listed = [(numbered[name], *cells) for name, cells in zip(USES, uses, strict=True)]
    return "\n".join(
        [
            _HEAD,
            "## What each type is read from\n",
            _table(["logical type", "is read from"], forms),
            "Fields of structs, entries of lists and values of maps are converted, too.\n",
            "## Uses\n",
            _table(["", "use", "gives", "of other types"], listed),
            "## Which type in which use\n",
            "The columns are the numbers of the uses above. `-` is refused with a typed error"
            " before anything runs.\n",
            _table(head[:first], [row[:first] for row in matrix]),
            _table(["type", *head[first:]], rest),
            _TWO,
            _LOCAL,
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page_text(), "utf-8")
