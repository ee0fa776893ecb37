"""What runs in Spark's Python workers: Arrow batches in, an operator, Arrow batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

import pyarrow as pa
from pyspark import TaskContext

from gpu_windows.operators.base import Emission, Operator
from gpu_windows.operators.batch_size import gather_batches, rows_per_call
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.columns.batches import gather
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.firing import FiringOperator
from gpu_windows.operators.slices.preaggregation import Preaggregation, split_counts
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.tasks.crossing import as_planned
from gpu_windows.spark_glue.tasks.device import task_threads, use_task_device
from gpu_windows.spark_glue.tasks.freeze_gc import spare_modules
from gpu_windows.spark_glue.tasks.packing import (
    FRAGMENT_BYTES,
    Piece,
    cut,
    pack,
    unpack,
)

#: Names of the columns of counters in the tagged output: ours; those of user code and their counts.
#: Not a map: the RAPIDS Accelerator takes `mapInArrow` to the GPU for arrays, not for maps.
COUNTERS, USER_COUNTERS, USER_COUNTS = "__counters", "__user_counters", "__user_counts"
#: All of them, in their order.
TAGS = (COUNTERS, USER_COUNTERS, USER_COUNTS)
#: Their fields.
TAG_FIELDS = tuple(
    pa.field(name, pa.list_(dtype))
    for name, dtype in zip(TAGS, (pa.int64(), pa.string(), pa.int64()), strict=True)
)

#: Rows after which a shard's end is used to let go of what is in memory.
_SHARD_ROWS = 1 << 20
#: Rows of a batch of results.
_OUTPUT_ROWS = 1 << 17


def tagged_schema(plan: Plan, side: str | None = None) -> pa.Schema:
    """Return the schema of the tagged output: results, or counters in the last columns.

    ``side``: the tag of the side output that stands for the results.
    """
    rows = plan.result_schema if side is None else plan.query.side_outputs[side]
    return pa.schema([*rows, *TAG_FIELDS])


@dataclass(frozen=True)
class MakePartials:
    """First stage: a task's rows to partials of slices, packed by shard.

    ``most``: bytes of a fragment; ``gpu_share``: how much of a GPU is a task's.
    """

    plan: WindowPlan
    most: int = FRAGMENT_BYTES
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        spare_modules()
        use_task_device(self.gpu_share)
        stage = Preaggregation(self.plan, threads=task_threads(self.plan))
        tables = stage.run(as_planned(batches))
        yield from pack(self.plan, tables, most=self.most, sender=_task_number())


@dataclass(frozen=True)
class PackRows:
    """First stage without partials: a task's rows, packed by shard.

    ``ids``: what shards are called, if not by their numbers; ``most``: bytes of a fragment.
    """

    plan: Plan
    ids: tuple[int, ...] | None = None
    most: int = FRAGMENT_BYTES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        spare_modules()
        yield from self.packed(gather(as_planned(batches), self.plan.call_rows()))

    def packed(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield tables, packed."""
        yield from pack(self.plan, tables, self.ids, self.most, _task_number())


@dataclass(frozen=True)
class RunShards:
    """Last stage: a partition's partials (or rows), sorted by shard, to results.

    ``packed``: they come from `MakePartials`, in messages; else as rows with a column `SHARD`.
    ``gpu_share``: how much of a GPU is a task's. ``side``: the tag of the side output that is given
    instead of the results.
    """

    plan: Plan
    packed: bool
    gpu_share: float = 1.0
    side: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        run, schema = self.start(), tagged_schema(self.plan, self.side)
        for table in run.results(batches):
            for field in TAG_FIELDS:
                table = table.append_column(field, _null_lists(len(table), field.type))
            yield from table.cast(schema).to_batches(_OUTPUT_ROWS)
        columns = [_nothing(field) for field in schema]
        columns[-len(TAGS) :] = tag_values(run.counters)
        yield pa.record_batch(columns, schema=schema)

    def start(self) -> ShardRun:
        """Return what makes the results of a Spark task."""
        spare_modules()
        use_task_device(self.gpu_share)
        return ShardRun(self.plan, self.side, packed=self.packed)


class ShardRun:
    """One shard after the other (several small ones at once) through an operator.

    Spark sorts the rows of a partition by shard, and that sort spills: so a shard bounds the memory
    of a worker.

    Parameters
    ----------
    plan : Plan
    side : str, optional
        The tag of the side output that is given instead of the results.
    packed : bool
        Whether rows come in messages.
    """

    def __init__(self, plan: Plan, side: str | None, *, packed: bool) -> None:
        self._plan, self._side, self._packed = plan, side, packed
        #: What has been counted so far.
        self.counters = Counters()
        self._operator = self._fresh()
        # each shard keeps its own of what is broadcast
        self._most = 1 if plan.query.broadcasts else _SHARD_ROWS
        self._shard = -1
        self._rows = 0

    def results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the results of a partition."""
        if self._packed:
            pieces = unpack(batches, rows_per_call(self._plan))
        else:
            tables = gather_batches(self._plan, as_planned(batches))
            pieces = cut(tables, everywhere=self._plan.query.broadcasts)
        for piece in pieces:
            yield from self._feed(piece)
        yield from self._finish()

    def _fresh(self) -> Operator:
        return build_operator(self._plan, in_order=False, threads=task_threads(self._plan))

    def _feed(self, piece: Piece) -> Iterator[pa.Table]:
        if piece.first != self._shard and self._rows >= self._most:
            yield from self._finish()
            self._operator, self._rows = self._fresh(), 0
        self._shard, data = piece.last, piece.rows
        self._rows += len(data)
        plan, operator = self._plan, self._operator
        if isinstance(operator, FiringOperator) and _of_partials(plan):
            partials, counters = split_counts(plan, data)
            self.counters += counters
            operator.merge(partials)
        else:
            yield from self._taken(operator.process(data))

    def _finish(self) -> Iterator[pa.Table]:
        yield from self._taken(self._operator.advance_watermark(LONG_MAX))

    def _taken(self, emissions: Iterator[Emission]) -> Iterator[pa.Table]:
        for emission in emissions:
            self.counters += emission.counters
            yield emission.results if self._side is None else self._aside(emission)

    def _aside(self, emission: Emission) -> pa.Table:
        assert self._side is not None
        rows = emission.sides.get(self._side)
        return self._plan.query.side_outputs[self._side].empty_table() if rows is None else rows


def _task_number() -> int:
    """Return the number of this task among those before the shuffle; 0 where Spark runs none."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def tag_values(counters: Counters) -> list[pa.Array]:
    """Return the values of `TAGS` in a row of counters."""
    counts = [getattr(counters, name) for name in Counters.names()]
    user = dict(counters.user)
    values = (counts, [*user], [*user.values()])
    return [pa.array([each], field.type) for each, field in zip(values, TAG_FIELDS, strict=True)]


def _nothing(field: pa.Field) -> pa.Array:
    """Return one value that says nothing: null where that is allowed."""
    if field.nullable:
        return pa.nulls(1, field.type)
    return pa.array([0]).cast(field.type)


def _null_lists(length: int, dtype: pa.ListType) -> pa.Array:
    """Return null lists; those of `pyarrow.nulls` have memory for values, which Arrow sends."""
    valid, offsets = bytes(-(-length // 8)), bytes(4 * (length + 1))
    buffers = [pa.py_buffer(valid), pa.py_buffer(offsets)]
    values = pa.array([], dtype.value_type)
    return pa.ListArray.from_buffers(dtype, length, buffers, length, children=[values])


def _of_partials(plan: Plan) -> TypeGuard[WindowPlan]:
    """Whether operators are fed partials."""
    return is_plan_of(plan, WindowQuery) and plan.makes_partials
