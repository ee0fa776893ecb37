"""The one physical output of a streaming query: blobs of results, late rows and counters."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import pandas as pd
import pyarrow as pa

from gpu_windows.operators.base import Counters, Emission
from gpu_windows.plan import Plan
from gpu_windows.query import REASON
from gpu_windows.spark_glue.blobs import BLOB, from_ipc, to_ipc
from gpu_windows.spark_glue.meter import Measures

#: Name of the column that says what a row holds, and its values.
KIND = "__kind"
RESULT, LATE, METRICS = 0, 1, 2

#: Name of the column of counters and measures, and of the one in it of the counters of user code.
MEASURED, USER = "__measured", "user"
_TYPES = {"int": "bigint", "float": "double"}
_FIELDS = (
    *(f"{name}: bigint" for name in Counters.names()),
    *(f"{field.name}: {_TYPES[str(field.type)]}" for field in fields(Measures)),
    f"{USER}: map<string, bigint>",
)
TAGGED = f"{KIND} int, {BLOB} binary, {MEASURED} struct<{', '.join(_FIELDS)}>"

#: Rows in one blob at most.
_BLOB_ROWS = 1 << 17


def pack_emissions(emissions: Iterable[Emission]) -> Generator[pd.DataFrame, None, Counters]:
    """Yield what an operator gave as rows of `TAGGED`; return the sum of its counters."""
    counters = Counters()
    for emission in emissions:
        counters += emission.counters
        yield from _blobs(RESULT, emission.results)
        yield from _blobs(LATE, emission.late)
    return counters


def _blobs(kind: int, table: pa.Table) -> Iterator[pd.DataFrame]:
    for begin in range(0, len(table), _BLOB_ROWS):
        yield _row(kind, to_ipc(table.slice(begin, _BLOB_ROWS)), None)


def measured(counters: Counters, measures: Measures) -> pd.DataFrame:
    """Return the row of `TAGGED` that says what a shard did in a micro-batch, and what it cost."""
    return _row(METRICS, None, {**asdict(counters), **asdict(measures), USER: dict(counters.user)})


def _row(kind: int, blob: bytes | None, values: dict[str, Any] | None) -> pd.DataFrame:
    return pd.DataFrame({KIND: [kind], BLOB: [blob], MEASURED: [values]})


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
