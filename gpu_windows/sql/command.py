"""The command ``gpu-windows sql``: runs a query over files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_windows.column_types.local_times import check_zone
from gpu_windows.errors import GpuWindowsError, QueryError
from gpu_windows.sql.files import open_streams, table_reader
from gpu_windows.sql.query import SqlQuery, sql

OK, BAD_INPUT = 0, 2


@dataclass(frozen=True)
class Request:
    """Arguments of the command.

    Parameters
    ----------
    query : str, optional
        The text of the query.
    file : str, optional
        The file with the text instead; ``-`` is the standard input.
    tables : sequence of str
        ``NAME=PATH`` of Parquet or CSV files, or of folders of Parquet files.
    event_times : sequence of str
        ``COLUMN`` for all tables, or ``NAME=COLUMN`` for one.
    time_zone : str, optional
        Makes instants of event times without a time zone.
    on_spark : bool
        Whether to run the query on Spark.
    rows : int
        Maximum rows to print.
    output : Path, optional
        Write the results to this Parquet file instead of printing them.
    explain : bool
        Print the query in Python and its plan instead of running it.
    """

    query: str | None
    file: str | None
    tables: Sequence[str]
    event_times: Sequence[str] = field(default=())
    time_zone: str | None = None
    on_spark: bool = False
    rows: int = 20
    output: Path | None = None
    explain: bool = False


def run(request: Request) -> int:
    """Run a query, and print or write its results.

    Parameters
    ----------
    request : Request

    Returns
    -------
    int
        The exit status: 2 on bad input, else 0.
    """
    console, errors = Console(), Console(stderr=True)
    try:
        text = _text(request)
        with table_reader(on_spark=request.on_spark) as read:
            zone = None if request.time_zone is None else check_zone(request.time_zone)
            streams = open_streams(request.tables, request.event_times, read, zone)
            query = sql(text, **streams)
            if request.explain:
                console.print(Text(query.explain()), soft_wrap=True)
            elif request.output is not None:
                _write(console, _result(query), request.output)
            else:
                _show(console, _result(query), request.rows)
    except (GpuWindowsError, ImportError, OSError, pa.ArrowException) as error:
        errors.print(Text(f"bad input: {error}"), soft_wrap=True)
        return BAD_INPUT
    return OK


def _text(request: Request) -> str:
    if (request.query is None) == (request.file is None):
        raise QueryError("give a query as FILE (- is the standard input) or as --query TEXT")
    if request.query is not None:
        return request.query
    return sys.stdin.read() if request.file == "-" else Path(str(request.file)).read_text("utf-8")


def _result(query: SqlQuery) -> pa.Table:
    result = query.result()
    return result if isinstance(result, pa.Table) else result.toArrow()


def _write(console: Console, result: pa.Table, path: Path) -> None:
    pq.write_table(result, path)
    console.print(Text(f"{len(result):,} rows in {path}"), soft_wrap=True)


def _show(console: Console, result: pa.Table, rows: int) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for column in result.schema:
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        table.add_column(Text(column.name), justify="right" if is_number else "left")
    for row in result.slice(0, rows).to_pylist():
        table.add_row(*(Text("null" if value is None else str(value)) for value in row.values()))
    console.print(table)
    more = len(result) - rows
    if more > 0:
        console.print(Text(f"{more:,} more rows: use --rows to print them, --output to write all"))
