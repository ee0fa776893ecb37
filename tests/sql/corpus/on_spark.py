"""Outcomes of texts over DataFrames of Spark: bounded ones, and streams of few micro-batches."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import gpu_windows as gw
from gpu_windows.errors import GpuWindowsError
from gpu_windows.planning.kinds.pairs import IntervalJoinQuery
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.kinds.top import TopQuery
from gpu_windows.planning.query import Query
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.sink import Sink, SinkWriter
from tests.sql.corpus.compare import present_rows
from tests.sql.corpus.ddl import Table
from tests.sql.corpus.inputs import arrow_table, time_value
from tests.sql.corpus.outcomes import (
    INTERNAL,
    NOT_STREAMING,
    Outcome,
    answer_of,
    compare,
    outcome,
    refused,
)
from tests.sql.corpus.record import rows_of
from tests.sql.corpus.texts import Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The time of the last rows of a stream: they close all windows before, and no result has them.
_END = datetime(2090, 1, 1, tzinfo=UTC)
#: A column of all tables of statements, which results leave out.
_ORDER = "arrival__"
_PARTS, _SHARDS, _TIMEOUT_S = 2, 2, 300


@dataclass(frozen=True)
class OnSpark:
    """Runs texts on Spark.

    Parameters
    ----------
    session : SparkSession
    streaming : bool
        Whether tables are streams, except those without a time and with a key.
    """

    session: SparkSession
    streaming: bool

    def outcome(self, text: Text) -> Outcome:
        """Return the outcome of a statement or a script."""
        answer = answer_of(text)
        if self.streaming and not any(map(_is_streamed, text.tables)):
            return Outcome(text, NOT_STREAMING, "it reads no stream", ran=False)
        if not text.tables:
            return outcome(text)
        with tempfile.TemporaryDirectory() as folder:
            try:
                results = self._results(text, Path(folder))
            except GpuWindowsError as error:
                return refused(text, answer, error)
            except Exception as error:  # noqa: BLE001 - any other is a finding
                detail = f"{type(error).__name__}: {str(error)[:600]}"
                return Outcome(text, INTERNAL, detail, ran=False)
        return compare(text, answer, {name: _without_order(e) for name, e in results.items()})

    def _results(self, text: Text, folder: Path) -> dict[str, pa.Table]:
        """Return the results by target."""
        tables = _tables(text)
        zone = None if text.kind == "scripts" else "UTC"  # as on Arrow tables
        streamed = [table for table in tables if self.streaming and _is_streamed(table)]
        for table, rows in tables.items():
            count = len(rows) // 2 if table in streamed else len(rows)
            _write(folder, table, rows[:count], 0, zone)
        given = {
            table.name: self._stream(text, table, folder, streaming=table in streamed)
            for table in tables
        }
        inserts, outputs = self._outputs(text, given)
        if not self.streaming:
            return {name: _as_arrow(each.result()) for name, each in outputs.items()}
        end = _End([query for each in outputs.values() for query in _queries(each)])
        for table in streamed:
            rows = tables[table]
            half = len(rows) // 2
            _write(folder, table, rows[half:], half, zone)
            if last := end.rows(table, rows):
                _write(folder, table, last, len(rows), zone)
        return self._write_stream(inserts or outputs, folder / "state")

    def _outputs(
        self, text: Text, given: Mapping[str, Any]
    ) -> tuple[dict[str, Outputs], dict[str, Outputs]]:
        """Return the outputs that INSERT writes, and all."""
        if text.kind != "scripts":
            query = gw.sql(text.sql, **given).options(shards=_SHARDS)
            query = query if "UNION" in text.sql.upper() else query.arrival_order(_ORDER)
            return {}, {"SELECT 1": query.outputs()}
        script = gw.sql_script(text.sql, **given).options(shards=_SHARDS)
        outputs = script.on_spark(self.session, streaming=self.streaming).outputs()
        return {name: outputs[name] for name in script.inserts}, outputs

    def _stream(self, text: Text, table: Table, folder: Path, *, streaming: bool) -> Any:
        """Return rows as a stream of the API, with their event time if the text has none."""
        path = str(folder / table.name)
        frame = self.session.read.parquet(path)
        if streaming:
            reader = self.session.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1)
            frame = reader.parquet(path)
        given = gw.stream(frame)
        if table.time is None or text.kind == "scripts":
            return given
        delay = gw.WatermarkStrategy.for_bounded_out_of_orderness(f"{table.delay_ms} ms")
        return given.event_time(table.time, delay)

    def _write_stream(self, outputs: Mapping[str, Outputs], state: Path) -> dict[str, pa.Table]:
        sinks = {name: _Collect(waits=_End(_queries(each)).waits) for name, each in outputs.items()}
        query = gw.write_stream(outputs, sinks, state, trigger={"availableNow": True})
        if not query.awaitTermination(_TIMEOUT_S):
            query.stop()
            raise TimeoutError(f"it ran for {_TIMEOUT_S} s")
        return {name: sink.result() for name, sink in sinks.items()}


@dataclass
class _Collect(Sink, SinkWriter):
    """Keeps the results of micro-batches: of all, or without those of the last rows."""

    waits: bool
    query: Any = None
    batches: dict[int, pa.Table] = field(default_factory=dict)

    def open(self, query: Any) -> SinkWriter:
        self.query = query
        return self

    def write(self, batch: Any) -> None:
        self.batches[batch.number] = batch.outputs["result"].toArrow()

    def result(self) -> pa.Table:
        """Return the rows that are there in the end, without those of the last row of a stream."""
        numbers = [number for number in sorted(self.batches) if self.waits or number < _PARTS]
        found = pa.concat_tables([self.batches[number] for number in numbers])
        change = self.query.plan.query.change_column
        if change is not None:
            keys = (*self.query.key_columns, *self.query.plan.query.number_columns)
            found = present_rows(found, change, keys)
        return _without_end(found)


def _tables(text: Text) -> dict[Table, list[dict[str, Any]]]:
    rows = rows_of(text)
    return {table: rows[table.name] for table in text.tables}


def _without_order(table: pa.Table) -> pa.Table:
    names = [name for name in table.column_names if name.startswith(_ORDER)]
    return table.drop_columns(names)


def _is_streamed(table: Table) -> bool:
    return table.time is not None or not table.key


def _as_arrow(result: Any) -> pa.Table:
    return result if isinstance(result, pa.Table) else result.toArrow()


def _write(
    folder: Path, table: Table, rows: list[dict[str, Any]], first: int, zone: str | None
) -> None:
    """Write a file of rows, with their order of arrival from ``first`` on."""
    path = folder / table.name
    path.mkdir(exist_ok=True)
    order = pa.array(range(first, first + len(rows)), pa.int64())
    made = arrow_table(table, rows, zone=zone).append_column(_ORDER, order)
    pq.write_table(made, path / f"{len([*path.iterdir()])}.parquet")


def _queries(outputs: Outputs) -> list[Query]:
    """Return the queries of all stages."""
    stages: Iterable[Any] = getattr(outputs, "stages", ())
    return [each.reader.plan.query for each in stages] or [outputs.plan.query]


@dataclass(frozen=True)
class _End:
    """Rows that follow all others of a stream, so that the watermark passes those.

    Parameters
    ----------
    queries : sequence of Query
        Without any that waits for the watermark there are none. An interval join would pair these
        rows: then they have nothing but their time. Others are like rows before, since a row that
        WHERE leaves out does not move the watermark.
    """

    queries: Sequence[Query]

    @property
    def waits(self) -> bool:
        """Whether there are such rows."""
        return not all(isinstance(each, SelectQuery | TopQuery) for each in self.queries)

    def rows(self, table: Table, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return such rows of a table."""
        if table.time is None or not self.waits:
            return []
        [time] = [column for column in table.columns if column.name == table.time]
        end = {time.name: time_value(_END, time.type, table.time_unit)}
        if any(isinstance(each, IntervalJoinQuery) for each in self.queries):
            return [{**dict.fromkeys(column.name for column in table.columns), **end}]
        return [{**row, **end} for row in rows]


def _without_end(table: pa.Table) -> pa.Table:
    """Leave out rows with the time of the last rows of a stream."""
    keeps = [
        not any(isinstance(v, datetime) and v.year >= _END.year for v in row.values())
        for row in table.to_pylist()
    ]
    return table.filter(pa.array(keeps, pa.bool_()))
