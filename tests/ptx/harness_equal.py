"""What running PTX on this CPU finds that is wrong, and that it finds nothing where nothing is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import primitives, scan, sorting
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.types import INTS
from tests.ptx.arrays import DeviceArray, NeverWrittenError
from tests.ptx.build import ptx_of
from tests.ptx.kernel import KernelFaultError, Mode, Order, PtxKernel, array_places
from tests.ptx.launching import Function, kernel_of, launch
from tests.ptx.plugin import device as installed

CUDA = backend.select("cuda")
ORDERS = [*map(Order, Mode), Order(backwards=True)]
#: Enough that a fault that chance has to find is found.
SEEDS = range(40)

NEXT = (np.arange(64) + 1) % 64
ONES = np.ones(1_024, np.int64)


def ran(function: Function, out: DeviceArray, order: Order, source: Any = ONES) -> PtxKernel:
    """Run a kernel in 16 blocks of 64 threads."""
    kernel = kernel_of(function)
    launch(kernel, 16, 64, DeviceArray(source), out, order=order)
    return kernel


def zeros(count: int = 1_024) -> DeviceArray:
    return DeviceArray(np.zeros(count, np.int64))


def races_of(function: Function) -> set[str]:
    return {race.kind for race in ran(function, zeros(), Order(Mode.RACES)).races}


def test_ptx_is_what_runs() -> None:
    before = installed().launches["sorting.pack"]
    assert CUDA.name == "cuda"
    sorting.sort_pairs(CUDA.to_device(NEXT), CUDA.to_device(NEXT), (0, 63), (0, 63))
    assert installed().launches["sorting.pack"] == before + 1
    assert primitives.THREADS == 256


# ---- accesses


def _past_the_end(source: Any, out: Any) -> None:
    out[cuda.grid(1)] = source[cuda.grid(1) + 1]


def _before_the_begin(source: Any, out: Any) -> None:
    out[cuda.grid(1)] = source[np.uint64(cuda.grid(1)) - np.uint64(1)]  # no place from the end


def _writes_past_the_end(source: Any, out: Any) -> None:
    out[cuda.grid(1) + source[0]] = 1


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("function", [_past_the_end, _before_the_begin, _writes_past_the_end])
def test_an_access_besides_an_array_is_a_fault(function: Function, order: Order) -> None:
    with pytest.raises(KernelFaultError, match=r"outside of all arrays, by '(ld|st)\.global"):
        ran(function, zeros(), order)


def test_arrays_of_one_allocation_are_apart() -> None:
    """An access past the end of one is none of the next, whatever their lengths."""
    first, second = primitives.empties((1_024, np.int64), (1_024, np.int64))
    assert second.data.ptr - (first.data.ptr + first.nbytes) >= 512
    with pytest.raises(KernelFaultError, match="outside of all arrays"):
        launch(kernel_of(_writes_one_later), 16, 64, first, second, order=Order())


def _writes_one_later(out: Any, other: Any) -> None:
    out[cuda.grid(1) + 1] = other.size


def test_an_access_that_is_not_aligned_is_a_fault() -> None:
    bytes_ = DeviceArray(np.zeros(8 * 1_025, np.uint8))
    odd = DeviceArray(bytes_._values[4:-4].view(np.int64), bytes_._memory)
    with pytest.raises(KernelFaultError, match="not aligned"):
        launch(kernel_of(_copies), 16, 64, odd, zeros(), order=Order())


def _copies(source: Any, out: Any) -> None:
    out[cuda.grid(1)] = source[cuda.grid(1)]


def _copies_few(source: Any, out: Any) -> None:
    if cuda.grid(1) != 700:
        out[cuda.grid(1)] = source[cuda.grid(1)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_reading_what_nothing_wrote_is_a_fault_of_kernels_and_of_others(order: Order) -> None:
    whole, holed = CUDA.empty(1_024, np.int64), CUDA.empty(1_024, np.int64)
    ran(_copies, whole, order)
    ran(_copies_few, holed, order)
    assert CUDA.to_host(whole).tolist() == ONES.tolist()
    assert CUDA.to_host(holed[:700]).tolist() == ONES[:700].tolist()
    for read, values in (
        (lambda: CUDA.to_host(holed), 1_024),
        (lambda: CUDA.to_host(holed[600:701]), 101),
        (lambda: holed + 1, 1_024),
    ):
        with pytest.raises(NeverWrittenError, match=f"1 of {values} values"):
            read()
    launch(kernel_of(_copies_few), 16, 64, holed, whole, order=order)
    with pytest.raises(KernelFaultError, match=r"nothing wrote, by 'ld.*thread 60 of block 10"):
        launch(kernel_of(_copies), 16, 64, holed, whole, order=order)


def test_arrays_of_the_host_are_refused() -> None:
    there, here = CUDA.to_device(NEXT), NEXT
    for mixed in (lambda: there + here, lambda: np.asarray(there), lambda: CUDA.take(there, here)):
        with pytest.raises(TypeError):
            mixed()


# ---- barriers


def _swaps(source: Any, out: Any) -> None:
    shared, lane = cuda.shared.array(64, source.dtype), cuda.threadIdx.x
    shared[lane] = source[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[63 - lane]


def _swaps_without_barrier(source: Any, out: Any) -> None:
    shared, lane = cuda.shared.array(64, source.dtype), cuda.threadIdx.x
    shared[lane] = 0
    cuda.syncthreads()
    shared[lane] = source[cuda.grid(1)]
    out[cuda.grid(1)] = shared[63 - lane]


def _swaps_too_early(source: Any, out: Any) -> None:
    shared, lane = cuda.shared.array(64, source.dtype), cuda.threadIdx.x
    shared[lane] = source[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[63 - lane]
    shared[lane] = 0  # others may not have read it


def _reads_unwritten(source: Any, out: Any) -> None:
    shared, lane = cuda.shared.array(64, source.dtype), cuda.threadIdx.x
    if lane > 0:
        shared[lane] = source[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[63 - lane]


def _waits_in_a_branch(source: Any, out: Any) -> None:
    if cuda.threadIdx.x < 10 * source[0]:
        cuda.syncthreads()
    out[cuda.grid(1)] = 1


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_threads_see_what_others_wrote_before_a_barrier(order: Order) -> None:
    source, out = np.arange(1_024), zeros()
    kernel = ran(_swaps, out, order, source)
    assert CUDA.to_host(out).tolist() == source.reshape(-1, 64)[:, ::-1].ravel().tolist()
    assert not kernel.races


@pytest.mark.parametrize("function", [_swaps_without_barrier, _swaps_too_early])
def test_a_barrier_that_is_missing_shows(function: Function) -> None:
    assert races_of(function) == {"a read and a write"}
    out = zeros()
    ran(function, out, Order(Mode.TURNS))
    assert not CUDA.to_host(out).all()


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_shared_memory_that_nothing_wrote_and_threads_that_part_are_faults(order: Order) -> None:
    with pytest.raises(KernelFaultError, match=r"nothing wrote, by 'ld\.shared"):
        ran(_reads_unwritten, zeros(), order)
    with pytest.raises(KernelFaultError, match=r"part at a barrier, by 'bar\.sync"):
        ran(_waits_in_a_branch, zeros(), order)


def test_two_barriers_are_a_fault() -> None:
    text = ptx_of(_waits_in_a_branch, both_arrays := (INTS, INTS))
    (branch,) = re.findall(r"@%p\d+ bra\s+\$(\w+);", text)
    both = text.replace(f"${branch}:", f"\tbar.sync\t0;\n${branch}:")
    kernel = PtxKernel("two", both, array_places(both_arrays))
    for order in ORDERS:
        with pytest.raises(KernelFaultError, match=r"threads of a block (at two|that part)"):
            launch(kernel, 1, 64, DeviceArray(ONES), zeros(), order=order)


# ---- blocks


def _adds(source: Any, out: Any) -> None:
    cuda.atomic.add(out, 0, source[cuda.grid(1)])


def _adds_without_atomics(source: Any, out: Any) -> None:
    if cuda.threadIdx.x == 0:
        out[0] = out[0] + source[cuda.blockIdx.x]


def _all_write_the_same(source: Any, out: Any) -> None:
    if source[cuda.grid(1)] > 0:
        out[0] = 1


def _asks_before_it_adds(source: Any, out: Any) -> None:
    if source[cuda.grid(1)] > out[0]:
        cuda.atomic.max(out, 0, source[cuda.grid(1)])


def test_races_between_blocks_are_told_apart() -> None:
    assert races_of(_adds) == set()
    assert races_of(_adds_without_atomics) == {"a read and a write", "writes that differ"}
    assert races_of(_all_write_the_same) == {"writes of the same"}
    assert races_of(_asks_before_it_adds) == {"an atomic and a read"}


def test_an_atomic_that_is_missing_shows_where_threads_take_turns() -> None:
    def total(function: Function, order: Order) -> int:
        out = zeros()
        ran(function, out, order)
        return int(CUDA.to_host(out)[0])

    assert {total(_adds, order) for order in ORDERS} == {1_024}
    assert total(_adds_without_atomics, Order()) == 16  # one after the other
    assert min(total(_adds_without_atomics, Order(Mode.TURNS, seed)) for seed in SEEDS) < 16


def _last_block(source: Any, out: Any) -> None:
    """Blocks write sums after the total and a ticket; the last one adds them up."""
    if cuda.threadIdx.x == 0:
        out[2 + cuda.blockIdx.x] = source[cuda.blockIdx.x]
        if cuda.atomic.add(out, 1, 1) == cuda.gridDim.x - 1:
            total = 0
            for block in range(cuda.gridDim.x):
                total += out[2 + block]
            out[0] = total


def _last_block_with_fences(source: Any, out: Any) -> None:
    if cuda.threadIdx.x == 0:
        out[2 + cuda.blockIdx.x] = source[cuda.blockIdx.x]
        cuda.threadfence()
        if cuda.atomic.add(out, 1, 1) == cuda.gridDim.x - 1:
            cuda.threadfence()
            total = 0
            for block in range(cuda.gridDim.x):
                total += out[2 + block]
            out[0] = total


def test_a_fence_that_is_missing_shows_where_stores_are_late() -> None:
    def totals(function: Function, mode: Mode) -> set[int]:
        found = set()
        for seed in SEEDS:
            out = zeros()
            ran(function, out, Order(mode, seed))
            found.add(int(CUDA.to_host(out)[0]))
        return found

    assert totals(_last_block, Mode.TURNS) == {16}
    assert totals(_last_block, Mode.WEAK) != {16}
    assert totals(_last_block_with_fences, Mode.WEAK) == {16}


def test_a_seed_gives_the_same_order_again() -> None:
    def found(seed: int) -> bytes:
        out = zeros()
        ran(_swaps_without_barrier, out, Order(Mode.TURNS, seed))
        return bytes(CUDA.to_host(out).tobytes())

    assert found(3) == found(3)
    assert len({found(seed) for seed in range(5)}) == 5


# ---- a kernel of the package, as it is and with a barrier taken out

_TILES = scan.FOLD._scan_tiles
_COUNT = 1_000


def _scanned(text: str, order: Order) -> tuple[bool, PtxKernel]:
    """Return whether tiles of 256 were added up."""
    values = np.random.default_rng(0).integers(0, 100, _COUNT)
    kernel = PtxKernel("scan.fold_tiles", text, array_places(_TILES.signatures[0]))
    edges, ends = DeviceArray(np.zeros(_COUNT, np.int32)), DeviceArray(np.zeros(4, np.int32))
    parts, totals = zeros(_COUNT), zeros(4)
    arguments = (0, -1, edges, DeviceArray(values), ends, parts, totals)
    launch(kernel, 4, 256, *arguments, order=order)
    expected = [np.cumsum(values[begin : begin + 256]) for begin in range(0, _COUNT, 256)]
    return bool((CUDA.to_host(parts) == np.concatenate(expected)).all()), kernel


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_scan_is_right_in_every_order(order: Order) -> None:
    is_right, kernel = _scanned(ptx_of(_TILES.definition, _TILES.signatures[0]), order)
    assert is_right
    assert not kernel.races


@pytest.mark.parametrize("number", range(4))
def test_a_scan_without_one_of_its_barriers_is_not(number: int) -> None:
    text = ptx_of(_TILES.definition, _TILES.signatures[0])
    at = [found.start() for found in re.finditer(r"bar\.sync", text)][number]
    without = f"{text[:at]}// {text[at:]}"
    assert _scanned(without, Order(Mode.RACES))[1].races
    try:
        assert not _scanned(without, Order(Mode.TURNS))[0]
    except KernelFaultError as error:
        assert "nothing wrote" in str(error)  # noqa: PT017 - one or the other
