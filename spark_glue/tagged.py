"""The one physical output of a streaming query: blobs of results, late rows and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from gpu_windows.operators.base import Counters, Emission
from gpu_windows.plan import Plan
from gpu_windows.query import REASON
from gpu_windows.spark_glue.blobs import BLOB, from_ipc, to_ipc

#: Name of the column that says what a blob holds, and its values.
KIND = "__kind"
RESULT, LATE, METRICS = 0, 1, 2
TAGGED = f"{KIND} int, {BLOB} binary"

#: Rows in one blob at most.
_BLOB_ROWS = 1 << 17


def pack_emissions(emissions: Iterable[Emission]) -> Iterator[pd.DataFrame]:
    """Yield what an operator gave as rows of `TAGGED`, the sum of its counters at last."""
    counters = Counters()
    for emission in emissions:
        counters += emission.counters
        yield from _rows(RESULT, emission.results)
        yield from _rows(LATE, emission.late)
    yield from _rows(METRICS, _counted(counters))


def _rows(kind: int, table: pa.Table) -> Iterator[pd.DataFrame]:
    for begin in range(0, len(table), _BLOB_ROWS):
        blob = to_ipc(table.slice(begin, _BLOB_ROWS))
        yield pd.DataFrame({KIND: [kind], BLOB: [blob]})


def _counted(counters: Counters) -> pa.Table:
    columns = {name: [getattr(counters, name)] for name in Counters.names()}
    return pa.table({**columns, "user": pa.array([counters.user], _USER)})


_USER = pa.map_(pa.string(), pa.int64())

#: Arrow schema of the counters of one shard in one micro-batch.
METRICS_SCHEMA = pa.schema(
    [*((name, pa.int64()) for name in Counters.names()), pa.field("user", _USER)]
)


def late_schema(plan: Plan) -> pa.Schema:
    """Return the Arrow schema of late rows: the columns that crossed, time in ticks, the reason."""
    query = plan.query
    fields = [
        pa.field(name, pa.int64()) if name == query.time else query.schema.field(name)
        for name in plan.input_columns
    ]
    return pa.schema([*(field.with_nullable(True) for field in fields), (REASON, pa.string())])


@dataclass(frozen=True)
class Unpack:
    """Blobs of one kind to the rows in them, all of ``schema``."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        for batch in batches:
            for blob in batch.column(0):
                table = from_ipc(blob.as_buffer())
                yield from table.select(self.schema.names).cast(self.schema).to_batches()
