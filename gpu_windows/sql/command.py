"""The command ``gpu-windows sql``: runs a query over files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_windows.column_types.local_times import check_zone
from gpu_windows.errors import GpuWindowsError, QueryError
from gpu_windows.sql.files import open_streams, table_reader
from gpu_windows.sql.query import sql
from gpu_windows.sql.scripts.script import sql_script

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
    script : str, optional
        The file of a script instead; ``-`` is the standard input.
    checkpoint : str, optional
        Where the statements of a script that insert run as a stream.
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
    script: str | None = None
    checkpoint: str | None = None
    event_times: Sequence[str] = ()
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
            if request.script is not None:
                _run_script(console, text, request, read)
                return OK
            zone = None if request.time_zone is None else check_zone(request.time_zone)
            streams = open_streams(request.tables, request.event_times, read, zone)
            query = sql(text, **streams)
            if request.explain:
                console.print(Text(query.explain()), soft_wrap=True)
            elif request.output is not None:
                result = _as_arrow(query.result())
                pq.write_table(result, request.output)
                console.print(Text(f"{len(result):,} rows in {request.output}"), soft_wrap=True)
            else:
                _show(console, _as_arrow(query.result()), request.rows)
    except (GpuWindowsError, ImportError, OSError, pa.ArrowException) as error:
        errors.print(Text(f"bad input: {error}"), soft_wrap=True)
        return BAD_INPUT
    return OK


def _text(request: Request) -> str:
    given = [each for each in (request.query, request.file, request.script) if each is not None]
    if len(given) != 1:
        rule = "give a query as FILE (- is the standard input) or as --query TEXT, or a --script"
        raise QueryError(rule, value=", ".join(given) or None)
    if request.checkpoint is not None and (request.script is None or not request.on_spark):
        rule = "a stream is a --script with --runner spark: leave out --checkpoint"
        raise QueryError(rule, value=request.checkpoint)
    if request.query is not None:
        return request.query
    return sys.stdin.read() if given[0] == "-" else Path(given[0]).read_text("utf-8")


def _run_script(console: Console, text: str, request: Request, read: Callable[[Path], Any]) -> None:
    """Write what a script inserts, and print what it selects."""
    if request.event_times or request.time_zone or request.output:
        rule = "a script has its event times, in WATERMARK FOR, and its outputs"
        raise QueryError(rule, value="--event-time, --time-zone, --output")
    script = sql_script(text, **open_streams(request.tables, (), read))
    if request.on_spark:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        assert session is not None, "the reader of tables has a session"
        script = script.on_spark(session)
    if request.explain:
        console.print(Text(script.explain()), soft_wrap=True)
        return
    if request.checkpoint is not None:
        script.write_stream(request.checkpoint).awaitTermination()
        return
    for name, written in script.write().items() if script.inserts else ():
        console.print(Text(f"{name}: {written.rows:,} rows in {written.path}"), soft_wrap=True)
    for name in script.targets:
        if name not in script.inserts:
            _show(console, _as_arrow(script.outputs()[name].result()), request.rows)


def _as_arrow(result: Any) -> pa.Table:
    return result if isinstance(result, pa.Table) else result.toArrow()


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
