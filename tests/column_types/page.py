"""``docs/types.md``, written from the table of types and uses.

``python -m tests.column_types.page`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from gpu_windows.column_types.uses import FORMS, LOGICAL, USES, name_of

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

Written from `gpu_windows/column_types/uses.py` by `python -m tests.column_types.page`; a test
walks every cell.

A column has a logical type, Spark's. Arrow, pandas, Polars, DuckDB, cuDF and Parquet have several
forms for the same values: they become the logical type when a table, a reader or a file is read,
**exactly**, and only columns in another form are converted. What would be lost is refused with a
`ColumnTypeError` that names the column and what to do: a `date64` that is no whole day, or a time
that does not fit 64 bits of microseconds (as event time it is a rejected row, as any time that is
out of range). Durations stay in their units, for one that is too long is a rejected row, too.
"""
_LOCAL = """\
## Times without a zone

A TIMESTAMP_NTZ (an Arrow timestamp without a zone) names no instant, so as event time it is refused
until the zone is said: `event_time("ts", watermarks, time_zone="Europe/Zurich")`, on tables, files
and DataFrames alike, batch and streaming; `gpu-windows sql --time-zone`. The zone of the session
has no part in it. Where clocks go back and show a time twice, it is the first of both instants;
a time that they leave out is as much later as they go forward: 02:30 on the day of summer time is
03:30. So does Spark cast them. Rows of such times are therefore in the windows of those instants.
"""
_TWO = """\
## Columns of two inputs

Keys of [joins](joins.md), co-groups and connected streams, and columns of unions, need not be of
the same type: of two widths of whole numbers or of floats it is the wider one, of whole numbers
and decimals the decimal that holds both, as in Spark. Instants of two zones are one type (that of
the first input); times of ns become microseconds, exactly. Others are refused
(`ColumnTypeError`): whole numbers with floats, texts with numbers. Cast one of them, with
`with_columns`.
"""


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
    listed = [(numbered[name], *cells) for name, cells in zip(USES, uses, strict=True)]
    return "\n".join(
        [
            _HEAD,
            "## Forms, and what they become\n",
            _table(["logical type", "is read from"], forms),
            "Fields of structs, entries of lists and values of maps become theirs alike.\n",
            "## Uses\n",
            _table(["", "use", "gives", "of other types"], listed),
            "## Which type in which use\n",
            "`-` is refused with a typed error before anything runs.\n",
            _table(["type", *numbered.values()], matrix),
            _TWO,
            _LOCAL,
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page_text(), "utf-8")
