"""What running compiled kernels on this CPU shows, and that it shows what is wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.kernels.cuda import keys, primitives, replicas, sorting
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.types import INTS
from gpu_windows.rules import LONG_MIN
from tests.compiled.arrays import POISON
from tests.compiled.device import Device
from tests.compiled.grid import HostKernel
from tests.compiled.host_code import host_code
from tests.compiled.plugin import device as installed
from tests.kernels import range_cases
from tests.kernels.cases import assert_equal, evaluate, random_case
from tests.kernels.range_cases import random_frames
from tests.lanes import quick

CPU, CUDA = backend.select("cpu"), backend.select("cuda")

NEXT = (np.arange(64) + 1) % 64


@pytest.fixture
def device() -> Device:
    """The pretended device."""
    return installed()


def test_compiled_kernels_are_what_runs(device: Device) -> None:
    before = device.launches["sorting.pack"]
    assert CUDA.name == "cuda"
    sorting.sort(CUDA.to_device(NEXT), CUDA.to_device(NEXT), 64, (0, 63))
    assert device.launches["sorting.pack"] == before + 1
    assert primitives.THREADS == 256


LARGE = {
    "sliding": random_case(1, 40_000, 50, rules.sliding_grid(60, 7, 0), ticks=30_000),
    "one key, many tiles": random_case(2, 70_000, 1, rules.sliding_grid(900, 1, 3), ticks=69_000),
    "many keys": random_case(
        3, 50_000, 5_000, rules.sliding_grid(10, 10, 0), ticks=10**6, key_count=10**5
    ),
    "one group": random_case(4, 50_000, 1, rules.sliding_grid(10**6, 10**6, 0), ticks=1_000),
    "cumulative": random_case(5, 20_000, 20, rules.cumulative_grid(600, 10, 5), ticks=9_000),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", quick(LARGE, "sliding", "one group"))
def test_many_rows(
    device: Device, monkeypatch: pytest.MonkeyPatch, name: str, backwards: bool
) -> None:
    monkeypatch.setattr(device, "backwards", backwards)
    found = evaluate(CUDA, LARGE[name])
    assert_equal(found, evaluate(CPU, LARGE[name]), LARGE[name])


def test_the_order_of_threads_changes_no_bit(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = evaluate(CUDA, LARGE["sliding"])
    monkeypatch.setattr(device, "backwards", True)
    again = evaluate(CUDA, LARGE["sliding"])
    assert [*found] == [*again]
    for name, values in found.items():
        assert values.tobytes() == again[name].tobytes(), name


@pytest.mark.parametrize(("keys", "lower"), [(1, LONG_MIN), (3, -10_000), (5_000, -200)])
def test_scans_of_many_tiles(keys: int, lower: int) -> None:
    """More entries than threads of a block, squared: totals of tiles are scanned in tiles."""
    case = random_frames(9, 100_000, keys, lower, 0, spread=60_000)
    found, expected = (range_cases.evaluate(each, case) for each in (CUDA, CPU))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        off = 1e-9 if name in ("mean", "m2", "add floats") else 0.0
        np.testing.assert_allclose(found[name], values, rtol=off, atol=off, err_msg=name)


@pytest.mark.parametrize(
    ("count", "apart"), [(1_000, 1), (60_000, 7), (100_000, 10**12), (300_000, 10**12)]
)
def test_distinct_keys_in_tables_of_real_sizes(count: int, apart: int) -> None:
    values = np.random.default_rng(8).integers(0, count, 400_000) * apart
    distinct, places = CUDA.keys.distinct(CUDA.to_device(values), CUDA.to_device(CUDA.reduce.ALL))
    found, first = CUDA.to_host(distinct), np.unique(values, return_index=True)[1]
    np.testing.assert_array_equal(found, values[np.sort(first)])
    np.testing.assert_array_equal(found[CUDA.to_host(places)], values)


@pytest.mark.parametrize("backwards", [False, True])
def test_threads_that_take_turns_at_each_access(
    device: Device, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    monkeypatch.setattr(device, "backwards", backwards)
    monkeypatch.setattr(device, "interleaved", True)
    monkeypatch.setattr(replicas, "_PLACES", 1)  # no thread has a place of its own
    case = random_case(6, 3_000, 7, rules.sliding_grid(60, 7, 0), ticks=900)
    assert_equal(evaluate(CUDA, case), evaluate(CPU, case), case)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("apart", [1, 10**12])
def test_keys_that_take_turns_at_each_access(
    device: Device, monkeypatch: pytest.MonkeyPatch, apart: int, backwards: bool
) -> None:
    monkeypatch.setattr(device, "backwards", backwards)
    monkeypatch.setattr(device, "interleaved", True)
    monkeypatch.setattr(keys, "_MAX_SLOTS", 1 << 7)  # so that places are sought
    values = np.random.default_rng(7).integers(0, 60, 4_000) * apart
    distinct, places = CUDA.keys.distinct(CUDA.to_device(values), CUDA.to_device(CUDA.reduce.ALL))
    found, first = CUDA.to_host(distinct), np.unique(values, return_index=True)[1]
    assert found.tolist() == values[np.sort(first)].tolist()
    assert (found[CUDA.to_host(places)] == values).all()


# ---- what is wrong


def _first_of_all(source: Any, out: Any) -> None:
    place = source[cuda.threadIdx.x] * 0
    cuda.atomic.min(out, place, cuda.threadIdx.x)


def _first_without_atomics(source: Any, out: Any) -> None:
    place = source[cuda.threadIdx.x] * 0
    if cuda.threadIdx.x < out[place]:
        out[place] = cuda.threadIdx.x


@pytest.mark.parametrize("backwards", [False, True])
def test_an_atomic_that_is_missing_shows(backwards: bool) -> None:
    """Where threads come in between its reading and its writing."""
    ways: dict[str, Any] = {"backwards": backwards, "interleaved": True, "filled": 99}
    assert _run(_first_of_all, **ways)[0] == 0
    apart = _run(_first_without_atomics, backwards=backwards, filled=99)[0]
    assert apart == 0  # one after the other
    assert backwards or _run(_first_without_atomics, **ways)[0] != 0


def _moved(source: Any, out: Any) -> None:
    shared = cuda.shared.array(64, source.dtype)
    lane = cuda.threadIdx.x
    shared[lane] = source[lane]
    cuda.syncthreads()
    out[lane] = shared[(lane + 1) % 64]


def _moved_without_barrier(source: Any, out: Any) -> None:
    shared = cuda.shared.array(64, source.dtype)
    lane = cuda.threadIdx.x
    shared[lane] = source[lane]
    out[lane] = shared[(lane + 1) % 64]


def _moved_too_early(source: Any, out: Any) -> None:
    shared = cuda.shared.array(64, source.dtype)
    lane = cuda.threadIdx.x
    shared[lane] = source[lane]
    cuda.syncthreads()
    found = shared[(lane + 1) % 64]
    shared[lane] = 0  # others may not have read it
    out[lane] = found


def _waits_in_a_branch(source: Any, out: Any) -> None:
    lane = cuda.threadIdx.x
    if source[lane] > 9:
        cuda.syncthreads()
    out[lane] = 1


def _run(
    function: Callable[..., None],
    *,
    backwards: bool = False,
    interleaved: bool = False,
    filled: int | None = None,
) -> list[int]:
    source, out = CUDA.to_device(np.arange(64)), CUDA.empty(64, np.int64)
    if filled is not None:
        out = CUDA.to_device(np.full(64, filled))
    words = [w for a in (source, out) for w in (0, 0, 64, 8, a.data.ptr, 64, 8)]
    values = np.array(words, np.int64)
    places = values.ctypes.data + 8 * np.arange(len(words))
    code = host_code(function, (INTS, INTS))
    kernel = HostKernel(code, interleaved=interleaved)
    kernel.run(1, 64, places.ctypes.data, backwards=backwards)
    found: list[int] = CUDA.to_host(out).tolist()
    return found


@pytest.mark.parametrize("backwards", [False, True])
def test_threads_see_what_others_wrote_before_a_barrier(backwards: bool) -> None:
    assert _run(_moved, backwards=backwards) == NEXT.tolist()


def test_a_barrier_that_is_missing_shows() -> None:
    """What nothing wrote has a pattern."""
    found = _run(_moved_without_barrier)
    assert found != NEXT.tolist()
    nothing = int.from_bytes(bytes([POISON] * 8), "little", signed=True)
    assert found[:3] != NEXT[:3].tolist()
    assert nothing in found or 0 in found


def test_a_second_barrier_that_is_missing_shows() -> None:
    ways = [_run(_moved_too_early, backwards=backwards) for backwards in (False, True)]
    assert any(found != NEXT.tolist() for found in ways)


def test_a_barrier_that_some_do_not_reach_is_an_error() -> None:
    with pytest.raises(AssertionError, match="not all threads of a block came to a barrier"):
        _run(_waits_in_a_branch)


@pytest.mark.parametrize("what", ["read", "write"])
def test_an_access_behind_an_array_ends_the_process(what: str) -> None:
    few, many = ("short", "long") if what == "read" else ("long", "short")
    code = (
        "import numpy as np, pytest\n"
        "from tests.compiled.device import Device\n"
        "Device(pytest.MonkeyPatch())\n"
        "from gpu_windows.kernels import backend\n"
        "from gpu_windows.kernels.cuda import sorting\n"
        "cuda = backend.select('cuda')\n"
        "short = cuda.to_device(np.zeros(512, np.int64))\n"
        "long = cuda.to_device(np.zeros(2000, np.int64))\n"
        "out = {'short': short, 'long': long}\n"
        f"sorting._pack(2000, long, out[{few!r}], 0, 1, out[{many!r}])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == -signal.SIGSEGV, run.stderr.decode()[-500:]


def test_arrays_of_the_host_are_refused() -> None:
    there, here = CUDA.to_device(NEXT), NEXT
    for mixed in (lambda: there + here, lambda: np.asarray(there), lambda: CUDA.take(there, here)):
        with pytest.raises(TypeError):
            mixed()
