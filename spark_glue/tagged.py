"""The one physical output of a streaming query: blobs of results, late rows and counters."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from gpu_windows.commits import records
from gpu_windows.commits.records import side_name
from gpu_windows.monitoring.progress import OWN, USER
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.batches import gather
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.plan import Plan
from gpu_windows.query.base import REASON
from gpu_windows.spark_glue.garbage import spare_modules
from gpu_windows.spark_glue.meter import Measures
from gpu_windows.spark_glue.packing import BLOB, Room, by_bytes, from_ipc, to_blobs

#: Name of the column that says what a row holds, and its values; side outputs have those from
#: `SIDES` on.
KIND = "__kind"
RESULT, LATE, METRICS, SIDES = 0, 1, 2, 3
#: Results that came after the stage had reached the watermark of the micro-batch, where another
#: stage goes on from them.
AFTER = -1

#: Name of the column of counters and measures; the counters of user code are `USER` in it.
MEASURED = "__measured"
_TYPES = {"int": "bigint", "float": "double"}
_FIELDS = (
    *(f"{name}: bigint" for name in Counters.names()),
    *(f"{field.name}: {_TYPES[str(field.type)]}" for field in fields(Measures)),
    *(f"{name}: bigint" for name in OWN),
    f"{USER}: map<string, bigint>",
)
TAGGED = f"{KIND} int, {BLOB} binary, {MEASURED} struct<{', '.join(_FIELDS)}>"

#: Rows of a batch of results.
_ROWS = 1 << 16


def pack_emissions(
    emissions: Iterable[tuple[int, Emission]], room: Room
) -> Generator[pd.DataFrame, None, Counters]:
    """Yield what an operator gave as rows of `TAGGED`; return the sum of its counters.

    Parameters
    ----------
    emissions : iterable of (int, Emission)
        With the kind that results have, `RESULT` or `AFTER`.
    room : Room
    """
    counters = Counters()
    for results, emission in emissions:
        counters += emission.counters
        yield from _blobs(results, emission.results, room)
        yield from _blobs(LATE, emission.late, room)
        for kind, rows in enumerate(emission.sides.values(), SIDES):
            yield from _blobs(kind, rows, room)
    return counters


def _blobs(kind: int, table: pa.Table, room: Room) -> Iterator[pd.DataFrame]:
    for blobs in by_bytes(to_blobs(table, room), len):
        yield _rows(kind, blobs)


def measured(
    counters: Counters, measures: Measures, held: Mapping[str, int | None]
) -> pd.DataFrame:
    """Return the row of `TAGGED` that says what a shard did in a micro-batch, and what it cost.

    ``held``: what it tells of the watermark, by the names in `OWN`; nothing if that is Spark's.
    """
    values = {**asdict(counters), **asdict(measures), **dict.fromkeys(OWN), **held}
    values[USER] = dict(counters.user)
    return _rows(METRICS, [None], values)


def _rows(
    kind: int, blobs: Sequence[bytes | None], values: dict[str, Any] | None = None
) -> pd.DataFrame:
    count = len(blobs)
    return frame_of([kind] * count, blobs, [values] * count)


def frame_of(
    kinds: Sequence[int], blobs: Sequence[bytes | None], values: Sequence[dict[str, Any] | None]
) -> pd.DataFrame:
    """Return rows of `TAGGED`."""
    return pd.DataFrame({KIND: kinds, BLOB: blobs, MEASURED: values})


def kinds_of(plan: Plan) -> dict[str, int]:
    """Return the outputs of a query, by name, and the kinds of their rows."""
    sides = map(side_name, plan.query.side_outputs)
    return {
        records.RESULT: RESULT,
        records.LATE: LATE,
        **{n: i for i, n in enumerate(sides, SIDES)},
    }


def late_schema(plan: Plan) -> pa.Schema:
    """Return the Arrow schema of late rows: the columns that crossed, time in ticks, the reason."""
    kept = plan.query.in_ticks(plan.input_columns)
    return kept.append(pa.field(REASON, pa.string()))


@dataclass(frozen=True)
class Unpack:
    """Blobs of one kind to the rows in them, all of ``schema``."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        spare_modules()
        blobs = chain.from_iterable(batch.column(0) for batch in batches)
        names = self.schema.names
        tables = (from_ipc(b.as_buffer()).select(names).cast(self.schema) for b in blobs)
        for table in gather(chain.from_iterable(t.to_batches() for t in tables), _ROWS):
            yield from table.to_batches()
