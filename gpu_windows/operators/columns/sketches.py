"""Partials that are sketches of the Apache DataSketches library: approximate, small, mergeable.

Sketches stay on the host, whatever the back end: the library works on one sketch per call. So there
is one call for each key and slice of a batch, with all their rows, and three for each window.

Source: Karnin, Lang and Liberty, "Optimal Quantile Approximation in Streams" (2016); Flajolet et
al., "HyperLogLog" (2007). Windows of a moving pair of ends are combined by two stacks, as in
Tangwongsan, Hirzel and Schneider, "Low-Latency Sliding-Window Aggregation in Worst-Case Constant
Time" (2017), their amortised algorithm.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.numeric import one_chunk
from gpu_windows.operators.columns.partials import PartialColumn, Rows, State
from gpu_windows.operators.columns.ranges import offsets

if TYPE_CHECKING:
    from datasketches import hll_union, kll_doubles_sketch

Sketch = Any

#: Put before every string, because the library ignores empty ones.
_TEXT, _EMPTY = "t", ""


class SketchColumn(PartialColumn):
    """A sketch of the values that are not null. State: (sketches,), lifted: (values, valid).

    Sketches of a state are shared between states and never changed.
    """

    @property
    def fields(self) -> list[pa.Field]:
        """One column of serialised sketches."""
        return [pa.field(self.name, pa.binary())]

    @abstractmethod
    def make(self) -> Sketch:
        """Return an empty sketch."""

    @abstractmethod
    def feed(self, sketch: Sketch, values: NDArray[Any]) -> None:
        """Add values to a sketch."""

    @abstractmethod
    def merge(self, sketch: Sketch, other: Sketch) -> None:
        """Merge another sketch into a sketch."""

    @abstractmethod
    def to_bytes(self, sketch: Sketch) -> bytes:
        """Serialise a sketch, in the format of the library."""

    @abstractmethod
    def from_bytes(self, data: bytes) -> Sketch:
        """Read a sketch."""

    @abstractmethod
    def lift(self, rows: Rows) -> State:
        """Return (values, valid)."""

    def merge_all(self, sketches: Sequence[Sketch]) -> Sketch:
        """Return a new sketch that merges some."""
        found = self.make()
        for sketch in sketches:
            self.merge(found, sketch)
        return found

    def materialise(self, state: State, count: int) -> State:
        """Make every row a sketch of its own."""
        values, valid = state
        valid = np.ones(count, np.bool_) if len(valid) == 0 else valid
        ends = offsets(valid.astype(np.int64))
        return (self._sketch_values(values[valid], ends),)

    def _sketch_values(self, values: NDArray[Any], ends: NDArray[np.int64]) -> NDArray[Any]:
        """Return sketches of consecutive values, cut at ``ends``."""
        sketches = np.empty(len(ends) - 1, object)
        for i, (begin, end) in enumerate(pairwise(ends.tolist())):
            sketches[i] = self.make()
            if begin < end:
                self.feed(sketches[i], values[begin:end])
        return sketches

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Sketch the values of every group, or merge its sketches."""
        order = backend.to_host(backend.grouping.order_of(groups))
        ends = offsets(backend.to_host(groups.rows))
        if len(state) == 1:
            ordered = state[0][order]
            pieces = (ordered[begin:end] for begin, end in pairwise(ends.tolist()))
            return (_objects([p[0] if len(p) == 1 else self.merge_all(p) for p in pieces]),)
        values, valid = state
        if len(valid):
            mask = valid[order]
            order, ends = order[mask], offsets(mask.astype(np.int64))[ends]
        return (self._sketch_values(values[order], ends),)

    def prepare(self, backend: Backend, state: State) -> Any:
        """Return the sketches."""
        del backend
        return state[0]

    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
        """Merge the sketches of every window."""
        first, last = (backend.to_host(part) for part in (windows.first, windows.last))
        order = np.lexsort((last, first))
        found = np.empty(len(order), object)
        found[order] = list(
            self._combine_windows(prepared, first[order].tolist(), last[order].tolist())
        )
        return (found,)

    def _combine_windows(
        self, sketches: Sequence[Sketch], firsts: Sequence[int], lasts: Sequence[int]
    ) -> Iterator[Sketch]:
        """Yield the sketches of windows [first, last] whose ends both ascend.

        ``front[i]`` merges the sketches from ``i`` to ``middle``, ``back`` those after ``middle``.
        """
        front: dict[int, Sketch] = {}
        middle, end, back = -1, -1, None
        for first, last in zip(firsts, lasts, strict=True):
            if first > middle:
                front = {last: sketches[last]}
                for i in range(last - 1, first - 1, -1):
                    front[i] = self.merge_all([front[i + 1], sketches[i]])
                middle, end, back = last, last, None
            if last > end:
                back = self.make() if back is None else back
                for i in range(end + 1, last + 1):
                    self.merge(back, sketches[i])
                end = last
            yield front[first] if back is None else self.merge_all([front[first], back])

    def running(self, begins: NDArray[np.int64], state: State) -> State:
        """Merge every sketch with those before it in its run."""
        heads = set(begins.tolist())
        found: list[Sketch] = []
        for i, sketch in enumerate(state[0]):
            found.append(sketch if i in heads else self.merge_all([found[-1], sketch]))
        return (_objects(found),)

    def nothing(self) -> State:
        """Return an empty sketch."""
        return (_objects([self.make()]),)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the serialised sketches."""
        return [pa.array([self.to_bytes(sketch) for sketch in state[0]], pa.binary())]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the serialised sketches; a null is an empty one."""
        blobs = columns[0].to_pylist()
        return (_objects([self.make() if b is None else self.from_bytes(b) for b in blobs]),)


class DistinctColumn(SketchColumn):
    """HyperLogLog sketches of the distinct values, with ``2 ** sketch_size`` registers."""

    @property
    def entry_bytes(self) -> int:
        """One byte per register, and overhead."""
        return (1 << self.partial.sketch_size) + 256

    def lift(self, rows: Rows) -> State:
        """Return integers, floats or strings that stand for the values."""
        column = one_chunk(rows.table.column(str(self.partial.column)))
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            numeric = rows.numeric(str(self.partial.column), self.partial.where)
            return numeric.values, numeric.valid
        tag, nothing = (pa.scalar(text, column.type) for text in (_TEXT, _EMPTY))
        column = pc.binary_join_element_wise(tag, column, nothing)
        valid = rows.valid(str(self.partial.column), self.partial.where)
        return column.to_numpy(zero_copy_only=False), valid

    def make(self) -> hll_union:
        """Return an empty sketch: a union, which takes values and sketches."""
        from datasketches import hll_union

        return hll_union(self.partial.sketch_size)

    def feed(self, sketch: hll_union, values: NDArray[Any]) -> None:
        """Add values to a sketch; the loop is in C."""
        deque(map(sketch.update, values.tolist()), maxlen=0)

    def merge(self, sketch: hll_union, other: hll_union) -> None:
        """Merge another sketch into a sketch."""
        from datasketches import tgt_hll_type

        sketch.update(other.get_result(tgt_hll_type.HLL_8))

    def to_bytes(self, sketch: hll_union) -> bytes:
        """Serialise a sketch as an `hll_sketch` of 8 bits a register."""
        from datasketches import tgt_hll_type

        return bytes(sketch.get_result(tgt_hll_type.HLL_8).serialize_compact())

    def from_bytes(self, data: bytes) -> hll_union:
        """Read an `hll_sketch`."""
        from datasketches import hll_sketch

        sketch = self.make()
        sketch.update(hll_sketch.deserialize(data))
        return sketch


class QuantilesColumn(SketchColumn):
    """KLL sketches of the distribution of the values, NaN aside; ``sketch_size`` is their k."""

    @property
    def entry_bytes(self) -> int:
        """Three values for each of ``sketch_size``, and levels of eight for very many rows."""
        return 24 * self.partial.sketch_size + 64 * 40 + 2048

    def lift(self, rows: Rows) -> State:
        """Return float64 values."""
        numeric = rows.numeric(str(self.partial.column), self.partial.where)
        return numeric.values.astype(np.float64), numeric.valid

    def make(self) -> kll_doubles_sketch:
        """Return an empty sketch."""
        from datasketches import kll_doubles_sketch

        return kll_doubles_sketch(self.partial.sketch_size)

    def feed(self, sketch: kll_doubles_sketch, values: NDArray[Any]) -> None:
        """Add values to a sketch at once."""
        sketch.update(values)

    def merge(self, sketch: kll_doubles_sketch, other: kll_doubles_sketch) -> None:
        """Merge another sketch into a sketch."""
        sketch.merge(other)

    def to_bytes(self, sketch: kll_doubles_sketch) -> bytes:
        """Serialise a sketch."""
        return bytes(sketch.serialize())

    def from_bytes(self, data: bytes) -> kll_doubles_sketch:
        """Read a sketch."""
        from datasketches import kll_doubles_sketch

        return kll_doubles_sketch.deserialize(data)


def distinct(sketch: hll_union) -> int:
    """Estimate the number of distinct values.

    Merging a sketch with itself adds no values, but makes the library treat them as unordered, so
    that the estimate depends on the set of values alone.
    """
    from datasketches import hll_union, tgt_hll_type

    seen = sketch.get_result(tgt_hll_type.HLL_8)
    whole = hll_union(seen.lg_config_k)
    whole.update(seen)
    whole.update(seen)
    estimate: float = whole.get_estimate()
    return round(estimate)


def quantile(sketch: kll_doubles_sketch, fraction: float) -> float | None:
    """Return a value whose rank is about the fraction; None if there are no values."""
    return None if sketch.is_empty() else sketch.get_quantile(fraction, True) + 0.0


def _objects(sketches: Sequence[Sketch]) -> NDArray[Any]:
    found = np.empty(len(sketches), object)
    found[:] = sketches
    return found
