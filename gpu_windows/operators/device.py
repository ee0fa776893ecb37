"""The kernels of an operator: back end and rows of a call, with fallback to the CPU.

Tables are large enough for a call of an operator: larger if its kernels run on a device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import DeviceMemoryError
from gpu_windows.kernels.backend import Backend, Grant, begin, current_task, probe, select
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Device

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: Bytes of a table that are enough for a call, however few its rows are: on a CPU, on a device.
ENOUGH_BYTES, ENOUGH_DEVICE_BYTES = 1 << 27, 1 << 29
#: Rows of a slice of a table that is handed to an operator at once, at least.
_SLICE_ROWS = 1 << 20
#: With ``device="auto"``, batches of fewer rows run faster on the CPU.
MIN_DEVICE_ROWS = 1 << 16
#: A batch that does not fit device memory is halved down to this many rows, then runs on the CPU.
_MIN_HALVED_ROWS = 1 << 14
#: After this many calls that did not fit device memory, the rest of a task runs on the CPU.
MAX_FALLBACKS = 3


def begin_task(addresses: tuple[str, ...], share: float, number: int) -> None:
    """Begin a task in this process with the GPUs that a scheduler granted, ending the one before.

    Parameters
    ----------
    addresses : tuple of str
        GPUs, as CUDA numbers them or by UUID; empty: none was granted, so ``device="auto"`` uses
        none, unless ``CUDA_VISIBLE_DEVICES`` names some for the process.
    share : float
        Share of a GPU's memory that the task may allocate, in (0, 1].
    number : int
        Of the task: selects the GPU of a task with ``device="cuda"`` that was granted none.
    """
    begin(Grant(addresses, share, number))


class Halvable(Protocol):
    """Rows that can be processed in two halves."""

    def __len__(self) -> int: ...

    def slice(self, begin: int, length: int, /) -> Self:
        """Return consecutive rows."""


class Map(Protocol):
    """The built-in ``map``, or one that calls the function in several threads."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterable[R]:
        """Return the results in the order of the items."""


P = TypeVar("P", bound=Halvable)


@dataclass(frozen=True)
class _Done(Generic[T]):
    """The result of a call that did not run out of memory."""

    result: T


class Kernels:
    """Runs kernels on the back end that ``device`` asks for, and counts calls by back end.

    Work that runs out of device memory is run again, in halves or on the CPU: so it must only
    return results, without side effects.

    On the CPU keys are encoded batch by batch, in order, while threads assign, group and reduce
    earlier batches; then each thread merges and fires one partial at a time. The rows of a call do
    not depend on the number of threads, so results are equal to the last bit.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        Where kernels run; "auto" uses the CPU if there is no usable device.
    threads : int
        Threads in which CPU kernels run; they release the interpreter's lock.

    Attributes
    ----------
    threads : int

    Raises
    ------
    DeviceUnavailableError
        If "cuda" is asked for where it cannot be used.
    """

    def __init__(self, device: Device, threads: int = 1) -> None:
        self._task = current_task()
        self._backend = select(device)
        self._always = device != "auto" or self._backend.name == "cpu"
        self._pool = ThreadPoolExecutor(threads, "kernels") if threads > 1 else None
        self.threads = threads
        self._calls = {"cpu": 0, "cuda": 0}
        self._fallbacks = 0
        #: Rows that are tried in one call, by what it is for, once more have run out of memory.
        self._max_rows = {"batch": LONG_MAX, "prepare": LONG_MAX}

    def run(self, rows: int, work: Callable[[Backend, Map], T]) -> T:
        """Call ``work`` with a back end for ``rows`` rows; on the CPU if memory runs out.

        ``work`` also gets a ``map``, which may run in several threads.
        """
        return self._run(rows, work, on_device=self._wants_device(rows))

    def _run(self, rows: int, work: Callable[[Backend, Map], T], *, on_device: bool) -> T:
        if on_device:
            done = None if self._gave_up else self._try(rows, lambda backend: work(backend, map))
            if done is not None:
                return done.result
            self._fall_back(rows)
        result = work(select("cpu"), self._map)
        self._calls["cpu"] += 1
        return result

    def each(self, pieces: Iterable[P], work: Callable[[Backend, P], T]) -> list[T]:
        """Call ``work`` with a back end and every piece; in halves if memory runs out.

        On the CPU, threads process pieces while the next ones are made.
        """
        if self.uses_device:
            return [result for piece in pieces for result in self._run_piece(piece, work)]
        cpu = select("cpu")
        results = list(self._map(lambda piece: work(cpu, piece), self._count_fallbacks(pieces)))
        self._calls["cpu"] += len(results)
        return results

    def prepare(self, piece: P, work: Callable[[Backend, P], T]) -> list[T]:
        """Call ``work`` on the input of a later call, in this thread; in halves if memory runs out.

        Only the later call counts as a batch. A fallback to the CPU is counted, but does not make
        the task give up its device. If ``work`` changes something, such as a dictionary, running it
        again must change nothing more.
        """
        if self._gave_up or not self._wants_device(len(piece)):
            return [work(select("cpu"), piece)]
        before = self._calls["cuda"]
        made = [*self._run_halving(piece, work, "prepare", self._prepare_small)]
        self._calls["cuda"] = before
        return made

    def _prepare_small(self, piece: P, work: Callable[[Backend, P], T]) -> T:
        rows = len(piece)
        done = self._try(rows, lambda backend: work(backend, piece))
        if done is not None:
            return done.result
        self._fallbacks += 1
        logger.warning("%d rows are prepared on the CPU", rows)
        return work(select("cpu"), piece)

    def run_ahead(self, rows: int, work: Callable[[Backend], T]) -> T | None:
        """Call ``work`` on the device for a later call of ``rows`` rows, which counts instead.

        None where that call will run on the CPU, or if memory runs out: nothing is released for
        what is not needed yet. Another thread may use kernels of its own meanwhile.
        """
        if self._gave_up or not self._wants_device(rows):
            return None
        done = self._once(rows, work)
        return None if done is None else done.result

    def _run_piece(self, piece: P, work: Callable[[Backend, P], T]) -> Iterable[T]:
        if self._wants_device(len(piece)):
            return self._run_halving(piece, work, "batch", self._run_small)
        return [self._run(len(piece), lambda backend, _: work(backend, piece), on_device=False)]

    def _run_small(self, piece: P, work: Callable[[Backend, P], T]) -> T:
        return self._run(len(piece), lambda backend, _: work(backend, piece), on_device=True)

    def _run_halving(
        self,
        piece: P,
        work: Callable[[Backend, P], T],
        purpose: str,
        run_small: Callable[[P, Callable[[Backend, P], T]], T],
    ) -> Iterator[T]:
        """Call ``work`` on the device with a piece, or with halves; ``run_small`` if too few."""
        rows = len(piece)
        if self._gave_up or rows <= _MIN_HALVED_ROWS:
            yield run_small(piece, work)
            return
        if rows <= self._max_rows[purpose]:
            done = self._try(rows, lambda backend: work(backend, piece))
            if done is not None:
                yield done.result
                return
            self._max_rows[purpose] = -(-rows // 2)
        middle = rows // 2
        for half in (piece.slice(0, middle), piece.slice(middle, rows - middle)):
            yield from self._run_halving(half, work, purpose, run_small)

    def _wants_device(self, rows: int) -> bool:
        """Whether a call of this many rows is to run on the device."""
        if self._backend.name == "cpu" or not (self._always or rows >= MIN_DEVICE_ROWS):
            return False
        if not self._always:
            self._backend = probe(self._backend)
        return self._backend.name != "cpu"

    @property
    def uses_device(self) -> bool:
        """Whether calls may run on a device; those of few rows may not."""
        return self._backend.name != "cpu" and not self._gave_up

    @property
    def _gave_up(self) -> bool:
        """Whether the rest of the task runs on the CPU."""
        return self._task.fallbacks >= MAX_FALLBACKS

    def _try(self, rows: int, work: Callable[[Backend], T]) -> _Done[T] | None:
        """Call ``work`` on the device; return None if memory ran out, even with caches released."""
        done = self._once(rows, work)
        if done is None and self._backend.release():
            logger.info("caches of the device were released, for %d rows", rows)
            done = self._once(rows, work)
        if done is None:
            logger.warning("%d rows do not fit device memory", rows)
        return done

    def _once(self, rows: int, work: Callable[[Backend], T]) -> _Done[T] | None:
        """Call ``work`` on the device; return None if memory ran out, with all of it released.

        An error refers to the frames that it passed, and these to arrays of the device. So callers
        must not retry while it is handled, and no log record may refer to it.
        """
        try:
            done = _Done(work(self._backend.remembering()))
        except DeviceMemoryError as error:
            logger.info("out of device memory: %s", str(error))
            return None
        self._calls["cuda"] += 1
        return done

    def _fall_back(self, rows: int) -> None:
        """Count and log a call that falls back to the CPU."""
        self._fallbacks += 1
        if self._gave_up:
            return
        self._task.fallbacks += 1
        logger.warning("%d rows go to the CPU", rows)
        if self._gave_up:
            message = "device memory ran out %d times: the rest of this task runs on the CPU"
            logger.warning(message, self._task.fallbacks)

    def _count_fallbacks(self, pieces: Iterable[P]) -> Iterator[P]:
        """Count the pieces that would have run on the device; yield all of them."""
        for piece in pieces:
            self._fallbacks += self._wants_device(len(piece))
            yield piece

    @property
    def _map(self) -> Map:
        return map if self._pool is None else self._pool.map

    def take_counters(self) -> Counters:
        """Return the counts of kernel calls since the last time, and reset them."""
        counters = Counters(
            cpu_batches=self._calls["cpu"],
            cuda_batches=self._calls["cuda"],
            device_fallbacks=self._fallbacks,
        )
        self._calls, self._fallbacks = {"cpu": 0, "cuda": 0}, 0
        return counters


@dataclass(frozen=True)
class _KeyColumns:
    """The key columns of one call."""

    columns: Sequence[pa.Array | pa.ChunkedArray]

    def __len__(self) -> int:
        return len(self.columns[0])

    def slice(self, begin: int, length: int) -> _KeyColumns:
        return _KeyColumns([each.slice(begin, length) for each in self.columns])


def encode_keys(
    kernels: Kernels, keys: KeyEncoder, columns: Sequence[pa.Array | pa.ChunkedArray]
) -> NDArray[np.int64]:
    """Return the code of every row as `KeyEncoder.encode` does; it stays on a device that made it.

    There a key column is copied to the device and deduplicated; the distinct values go to the host
    in order of first appearance, and the host's dictionary gives them codes: so state, hashes and
    the order of results equal the CPU's. This is one round trip per batch, of the size of its
    distinct keys. It serves numbers, dates and timestamps, and strings and binary if pylibcudf is
    installed; structs and wide decimals are encoded on the host.

    Parameters
    ----------
    kernels : Kernels
    keys : KeyEncoder
        It gives the same codes wherever they are made.
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        One per key column.
    """
    parts = kernels.prepare(
        _KeyColumns(columns), lambda backend, piece: keys.encode(piece.columns, backend)
    )
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def is_on_device(plan: Plan) -> bool:
    """Whether the kernels of a plan run on a device in this task.

    Raises
    ------
    DeviceUnavailableError
        If the query asks for "cuda" where it cannot be used.
    """
    return plan.calls_kernels and select(plan.query.options.device).name != "cpu"


def rows_per_call(plan: Plan) -> int:
    """Return the number of rows that are gathered for one call in this task."""
    return plan.call_rows(on_device=is_on_device(plan))


def gather_batches(plan: Plan, rows: pa.Table | Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the tables for the calls of an operator; see `gather`. Large tables are cut."""
    on_device = is_on_device(plan)
    count = plan.call_rows(on_device=on_device)
    if isinstance(rows, pa.Table):
        rows = rows.to_batches(max_chunksize=max(_SLICE_ROWS, count))
    # of slices only what kernels take is read, column by column, on its way to the device
    apart = on_device and plan.strategy is Strategy.SLICES
    enough = ENOUGH_DEVICE_BYTES if on_device else ENOUGH_BYTES
    return gather(rows, count, enough, in_pieces=apart)


def gather(
    batches: Iterable[pa.RecordBatch],
    rows: int,
    enough: int = ENOUGH_BYTES,
    *,
    in_pieces: bool = False,
) -> Iterator[pa.Table]:
    """Yield tables of at least ``rows`` rows (the last may be shorter), in order, none empty.

    A table of ``enough`` bytes may have fewer rows. Its columns are one chunk each, or with
    ``in_pieces`` a chunk for each batch, which are not copied here.
    """
    pending: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        pending.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= enough:
            yield _concat(pending, in_pieces=in_pieces)
            pending, count, size = [], 0, 0
    if pending:
        yield _concat(pending, in_pieces=in_pieces)


def _concat(batches: list[pa.RecordBatch], *, in_pieces: bool) -> pa.Table:
    first = batches[0].schema
    if all(batch.schema.equals(first) for batch in batches):
        table = pa.Table.from_batches(batches)
    else:  # batches of several starts of a query may differ in nullability
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        table = pa.concat_tables(tables, promote_options="default")
    return table if in_pieces or len(batches) == 1 else table.combine_chunks()
