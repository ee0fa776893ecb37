"""Steps of Spark's Python workers: Arrow batches in, an operator, Arrow batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import pyarrow as pa

from gpu_windows.operators.base import Emission, MergesPartials, Operator, TakesKeys
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import gather, gather_batches, rows_per_call
from gpu_windows.operators.slices.preaggregation import Preaggregation, split_counts
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.tasks.device import task_number, task_threads, use_task_device
from gpu_windows.spark_glue.tasks.given_keys import plan_of_tasks, split_given
from gpu_windows.spark_glue.tasks.packing import (
    FRAGMENT_BYTES,
    ShardChunk,
    pack,
    split_by_shard,
    unpack,
)
from gpu_windows.spark_glue.tasks.planned_types import to_planned_types

#: Names of the columns of counters in the tagged output: of this package; names and counts of user
#: code. Not a map: the RAPIDS Accelerator takes `mapInArrow` to the GPU for arrays, not for maps.
COUNTERS, USER_COUNTERS, USER_COUNTS = "__counters", "__user_counters", "__user_counts"
#: Their fields, in their order.
TAG_FIELDS = (
    pa.field(COUNTERS, pa.list_(pa.int64())),
    pa.field(USER_COUNTERS, pa.list_(pa.string())),
    pa.field(USER_COUNTS, pa.list_(pa.int64())),
)

#: Rows after which the end of a shard is used to release memory.
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
    """First step with partials: aggregates a task's rows to slices, packed by shard.

    ``max_bytes``: bytes of a fragment; ``gpu_share``: a task's share of a GPU.
    """

    plan: WindowPlan
    max_bytes: int = FRAGMENT_BYTES
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        use_task_device(self.gpu_share)
        stage = Preaggregation(self.plan, threads=task_threads(self.plan))
        tables = stage.run(to_planned_types(batches))
        yield from pack(self.plan, tables, max_bytes=self.max_bytes, sender=task_number())


@dataclass(frozen=True)
class PackRows:
    """First step without partials: packs a task's rows by shard.

    ``ids``: of shards, default their numbers; ``max_bytes``: bytes of a fragment.
    """

    plan: Plan
    ids: tuple[int, ...] | None = None
    max_bytes: int = FRAGMENT_BYTES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        yield from self.pack(gather(to_planned_types(batches), self.plan.call_rows()))

    def pack(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield tables as rows of `PACKED`."""
        yield from pack(self.plan, tables, self.ids, self.max_bytes, task_number())


@dataclass(frozen=True)
class RunShards:
    """Last step: evaluates a partition's partials or rows, which are sorted by shard.

    ``packed``: whether they come in messages; else as rows with a column `SHARD`. ``gpu_share``: a
    task's share of a GPU. ``side``: the tag of the side output to emit instead of the results.
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
        nothing = [_nothing(field) for field in [*schema][: -len(TAG_FIELDS)]]
        yield pa.record_batch([*nothing, *tag_values(run.counters)], schema=schema)

    def start(self) -> PartitionRun:
        """Prepare a Spark task; return the evaluation of its partition."""
        use_task_device(self.gpu_share)
        return PartitionRun(self.plan, self.side, packed=self.packed)


class PartitionRun:
    """Evaluates the shards of a partition one after another, several small ones at once.

    Spark sorts the rows of a partition by shard, and that sort spills: so the largest shard bounds
    the memory of a worker.

    Parameters
    ----------
    plan : Plan
    side : str, optional
        The tag of the side output to emit instead of the results.
    packed : bool
        Whether rows come in messages.
    """

    def __init__(self, plan: Plan, side: str | None, *, packed: bool) -> None:
        self._plan, self._side, self._packed = plan_of_tasks(plan), side, packed
        #: Sums of the counters so far.
        self.counters = Counters()
        self._operator = self._build_operator()
        # each shard stores broadcast rows of its own
        self._max_rows = 1 if plan.query.broadcasts else _SHARD_ROWS
        self._shard = -1
        self._rows = 0

    def results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the results of a partition."""
        if self._packed:
            chunks = unpack(batches, rows_per_call(self._plan))
        else:
            tables = gather_batches(self._plan, to_planned_types(batches))
            chunks = split_by_shard(tables, every_shard=self._plan.query.broadcasts)
        for chunk in chunks:
            yield from self._feed(chunk)
        yield from self._finish()

    def _build_operator(self) -> Operator:
        return build_operator(self._plan, in_order=False, threads=task_threads(self._plan))

    def _feed(self, chunk: ShardChunk) -> Iterator[pa.Table]:
        if chunk.first != self._shard and self._rows >= self._max_rows:
            yield from self._finish()
            self._operator, self._rows = self._build_operator(), 0
        plan, operator = self._plan, self._operator
        keys, data = split_given(plan, chunk.rows)
        self._shard = chunk.last
        self._rows += len(data)
        if keys is not None:
            assert isinstance(operator, TakesKeys), "given keys are those of filled gaps"
            operator.add_keys(keys)
            if not len(data):
                return
        if isinstance(operator, MergesPartials) and _of_partials(plan):
            partials, counters = split_counts(plan, data)
            self.counters += counters
            operator.merge(partials)
        else:
            yield from self._outputs(operator.process(data))

    def _finish(self) -> Iterator[pa.Table]:
        yield from self._outputs(self._operator.advance_watermark(LONG_MAX))

    def _outputs(self, emissions: Iterator[Emission]) -> Iterator[pa.Table]:
        for emission in emissions:
            self.counters += emission.counters
            yield emission.results if self._side is None else self._side_rows(emission)

    def _side_rows(self, emission: Emission) -> pa.Table:
        assert self._side is not None
        rows = emission.sides.get(self._side)
        return self._plan.query.side_outputs[self._side].empty_table() if rows is None else rows


def tag_values(counters: Counters) -> list[list[Any]]:
    """Return the columns `TAG_FIELDS` of a row of counters."""
    counts = [getattr(counters, name) for name in Counters.names()]
    user = dict(counters.user)
    return [[counts], [[*user]], [[*user.values()]]]


def _nothing(field: pa.Field) -> pa.Array:
    """Return an array of one null, or of one zero where the field is not nullable."""
    if field.nullable:
        return pa.nulls(1, field.type)
    return pa.array([0]).cast(field.type)


def _null_lists(length: int, dtype: pa.ListType) -> pa.Array:
    """Return null lists without values; those of `pyarrow.nulls` have some, which Arrow sends."""
    valid, offsets = bytes(-(-length // 8)), bytes(4 * (length + 1))
    buffers = [pa.py_buffer(valid), pa.py_buffer(offsets)]
    values = pa.array([], dtype.value_type)
    return pa.ListArray.from_buffers(dtype, length, buffers, length, children=[values])


def _of_partials(plan: Plan) -> TypeGuard[WindowPlan]:
    """Whether operators receive partials."""
    return is_plan_of(plan, WindowQuery) and plan.makes_partials
