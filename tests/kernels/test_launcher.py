"""Launches give the driver what numba-cuda would give it, bit for bit, without a device."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.errors import DeviceFailedError, DeviceMemoryError
from gpu_windows.kernels import backend
from gpu_windows.kernels import compile as compiling
from tests.lanes import quick

pytestmark = pytest.mark.ptx

#: With a named tuple, of floats, and with the most parameters.
ENTRIES = "assign.assign", "reduce.fold", "combine.join_moments"
GRID: Any = rules.sliding_grid(2, 1, 0)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """See `tests.kernels.pretend_launches.Device`."""
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from tests.kernels import pretend_launches

    monkeypatch.setattr(pretend_launches._api, "current_context", lambda: None)
    return pretend_launches.Device(monkeypatch)


def compiled(device: Any, name: str) -> Any:
    from gpu_windows.kernels.cuda.kernel import all_kernels

    return device.compiled(all_kernels()[name])


def ints(size: int = 3, dtype: Any = np.int64, **more: Any) -> Any:
    """Return an array of the device."""
    from tests.kernels.pretend_launches import Array

    return Array(dtype, size, **more)


# ---- what the driver is given


def test_every_kernel_is_given_numbas_parameters(device: Any) -> None:
    """In number, order and bytes, and the kernel of the signature that Numba would choose."""
    from gpu_windows.kernels.cuda.kernel import all_kernels
    from tests.kernels.pretend_launches import arguments_for, numbas, parameter_types

    for name, declared in all_kernels().items():
        kernel = device.compiled(declared)
        for signature in kernel.signatures:
            arguments = arguments_for(signature)
            typed, parameters = numbas(signature, arguments)
            kernel(1, *arguments)
            launch = device.launches[-1]
            assert launch.parameters == parameters, name
            assert len(parameters) == len(parameter_types(signature)), name
            assert device.asked[launch.function] == typed == tuple(signature), name
    assert len(device.asked) == len(device.launches) > len(all_kernels())


@pytest.mark.parametrize("name", quick(ENTRIES, "assign.assign"))
def test_a_kernel_takes_what_its_ptx_declares(name: str) -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from gpu_windows.kernels.cuda.compiler import ptx
    from gpu_windows.kernels.cuda.kernel import all_kernels
    from tests.kernels.pretend_launches import parameter_types

    kernel = all_kernels()[name]
    for signature in kernel.signatures:
        code = ptx(kernel.definition, signature, (9, 0))
        (entry,) = re.findall(r"\.entry [^(]*\(([^)]*)\)", code)
        declared = [line.split()[1] for line in entry.strip().split(",")]
        assert declared == parameter_types(signature)


@pytest.mark.parametrize(("count", "blocks"), [(1, 128), (256 * 300 + 1, 301), (1 << 40, 4096)])
def test_grid_block_and_stream(device: Any, count: int, blocks: int) -> None:
    from tests.kernels.pretend_launches import STREAM

    compiled(device, "combine.subtract")(count, *[ints()] * 4)
    (launch,) = device.launches
    assert (launch.grid, launch.block) == ((blocks, 1, 1), (256, 1, 1))
    assert (launch.shared, launch.stream) == (0, STREAM)


def test_an_array_without_elements_is_one_of_one_element(device: Any) -> None:
    """Wherever it is: so it was when Numba launched."""
    from tests.kernels.pretend_launches import PLACEHOLDER

    kernel = compiled(device, "combine.subtract")
    kernel(1, ints(), ints(0), np.empty(0, np.int64), ints(0, strides=(16,)))
    (launch,) = device.launches
    numbers = [int.from_bytes(word, "little") for word in launch.parameters]
    assert numbers[7:] == [0, 0, 1, 8, PLACEHOLDER, 1, 8] * 3


def test_a_function_is_asked_for_once_a_device(device: Any) -> None:
    kernel = compiled(device, "combine.subtract")
    for _ in range(2):
        kernel(1, *[ints()] * 4)
    device.session = replace(device.session, ordinal=0)
    for _ in range(2):
        kernel(1, *[ints()] * 4)
    assert [launch.function for launch in device.launches] == [0, 0, 1, 1]


def test_a_thread_has_a_context_before_it_launches(device: Any) -> None:
    kernel = compiled(device, "combine.subtract")

    def launch_twice() -> None:
        for _ in range(2):
            kernel(1, *[ints()] * 4)

    for _ in range(2):
        thread = threading.Thread(target=launch_twice)
        thread.start()
        thread.join()
    assert (device.uses, len(device.launches)) == (2, 4)


def test_threads_do_not_share_parameters(device: Any) -> None:
    """Of one kernel, at the same time: a call of the driver lets the other thread run."""
    from tests.kernels.pretend_launches import arguments_for, numbas

    kernel = compiled(device, "assign.assign")
    (signature,) = kernel.signatures
    device.delay = 1e-4
    arguments = arguments_for(signature)
    others = (*arguments[:5], 1, 2, 3, *arguments[8:])
    expected = {tuple(numbas(signature, given)[1]): 0 for given in (arguments, others)}
    threads = [
        threading.Thread(target=lambda given=given: [kernel(1, *given) for _ in range(20)])
        for given in (arguments, others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for launch in device.launches:
        expected[tuple(launch.parameters)] += 1
    assert [*expected.values()] == [20, 20]


# ---- what is refused


@pytest.mark.parametrize("array", [np.zeros(3, np.int64), 7, np.int64(7), None])
def test_only_arrays_of_the_device_are_taken(device: Any, array: Any) -> None:
    name = type(array).__name__
    with pytest.raises(TypeError, match=f"^a kernel takes arrays of the device, got {name}$"):
        compiled(device, "combine.subtract")(1, ints(), ints(), array, ints())
    assert not device.launches


#: Arguments for `windows.bounds`, and what is said of them.
WRONG: dict[str, tuple[Callable[[], list[Any]], str]] = {
    "dtype": (
        lambda: [ints(), GRID, ints(), ints(dtype=np.int32)],
        "arrays of int64, int64, int32",
    ),
    "bytes": (lambda: [ints(), GRID, ints(dtype=">i8"), ints()], "arrays of int64, >i8, int64"),
    "strides": (lambda: [ints(), GRID, ints(strides=(16,)), ints()], r"an array of .*\(16,\)"),
    "dimensions": (lambda: [ints(), GRID, ints(strides=(8, 8)), ints()], "an array of 2 dim"),
    "none": (lambda: [ints(), GRID, ints(1, strides=()), ints()], "an array of 0 dimensions"),
    "number": (lambda: [ints(), GRID, ints()], "3 arguments"),
    "tuple": (lambda: [ints(), rules.reciprocal(3), ints(), ints()], "Reciprocal for Grid"),
    "no tuple": (lambda: [*[ints()] * 4], "Array for Grid"),
    "scalar": (lambda: [ints(), GRID._replace(slide=1.5), ints(), ints()], "a scalar of another"),
    "large": (
        lambda: [ints(), GRID._replace(slide=1 << 63), ints(), ints()],
        "a scalar of another",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_arguments_are_refused(device: Any, what: str) -> None:
    arguments, message = WRONG[what]
    with pytest.raises(TypeError, match=rf"^windows\.bounds takes .*, got {message}") as raised:
        compiled(device, "windows.bounds")(1, *arguments())
    assert "takes array(int64, 1d, C), Grid(int64 x 7), array" in str(raised.value)
    assert not device.launches


def test_dtypes_must_be_of_one_signature(device: Any) -> None:
    """A kernel of two lanes takes no array of each."""
    from gpu_windows.kernels.cuda.scan import Lane

    edges, longs, floats = ints(dtype=np.int32), Lane(ints()), Lane(ints(dtype=np.float64))
    kernel = compiled(device, "scan.fold_together")
    kernel(1, 0, 1, edges, longs, longs, longs)
    kernel(1, 0, 1, edges, floats, floats, floats)
    with pytest.raises(TypeError, match=r" or .*, got arrays of int32, int64, float64, int64$"):
        kernel(1, 0, 1, edges, longs, floats, longs)


def test_a_signature_that_cannot_be_laid_out() -> None:
    if find_spec("numba_cuda") is None:
        pytest.skip("needs numba-cuda, of the extra `ptx`")
    from numba import types

    from gpu_windows.kernels.cuda.launcher import Launcher

    for kind in (types.int32, types.int64[:], types.int64[:, ::1], types.UniTuple(types.int64, 2)):
        with pytest.raises(TypeError, match="kernels take contiguous arrays"):
            Launcher("a kernel", None, [(kind,)])


# ---- errors


@pytest.mark.parametrize(
    ("status", "kind", "more"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", DeviceFailedError, "; it failed, or a kernel before it"),
        ("CUDA_ERROR_OUT_OF_MEMORY", DeviceMemoryError, ""),
        ("CUDA_ERROR_INVALID_VALUE", RuntimeError, ""),
    ],
)
def test_what_the_driver_says_is_typed(
    monkeypatch: pytest.MonkeyPatch, device: Any, status: str, kind: type[Exception], more: str
) -> None:
    """Kernels run later: the launch that is told of a failure need not be the one that failed."""
    from cuda.bindings import driver

    monkeypatch.setattr(backend._Process, "failure", None)
    device.status = getattr(driver.CUresult, status)
    said = rf"combine\.subtract was not launched: {status}{more}$"
    with pytest.raises(kind, match=said) as raised:
        compiled(device, "combine.subtract")(1, *[ints()] * 4)
    assert type(raised.value) is kind
    assert (backend.device_failure() is not None) == (kind is DeviceFailedError)


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        (SimpleNamespace(), "compile"),
        (SimpleNamespace(compile=lambda _: SimpleNamespace(cooperative=False)), "library"),
    ],
)
def test_another_numba_cuda_is_named(device: Any, made: Any, missing: str) -> None:
    kernel = compiled(device, "combine.subtract")
    kernel._compiled._dispatcher = made
    said = rf"^numba-cuda [\d.]+ gives no function of combine\.subtract: .*'{missing}'"
    with pytest.raises(RuntimeError, match=said):
        kernel(1, *[ints()] * 4)


def test_a_kernel_that_synchronises_its_grid_is_refused(device: Any) -> None:
    library = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=0))
    kernel = compiled(device, "combine.subtract")
    found = SimpleNamespace(cooperative=True, library=library)
    kernel._compiled._dispatcher = SimpleNamespace(compile=lambda _: found)
    with pytest.raises(RuntimeError, match="synchronises its grid"):
        kernel(1, *[ints()] * 4)


# ---- what Numba compiles


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A folder for compiled kernels with nothing in it."""
    monkeypatch.setenv(compiling.CACHE_VARIABLE, str(tmp_path))
    compiling.cache_directory.cache_clear()
    yield
    compiling.cache_directory.cache_clear()


@pytest.mark.usefixtures("fresh_cache")
def test_a_compiled_kernel_gives_its_function(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    """Numba compiles it, or loads it from its cache; the linker and the driver are pretended."""
    from gpu_windows.kernels.cuda.kernel import CudaKernel, all_kernels
    from tests.kernels.pretend_launches import pretend_driver

    loaded = pretend_driver(monkeypatch)
    declared = all_kernels()["sorting.pack"]
    for misses in (2, 0):
        kernel = CudaKernel(declared.definition, declared.signatures)
        kernel.compile()
        assert sum(kernel._compiled._dispatcher.stats.cache_misses.values()) == misses
        for keys, short in ((ints(), False), (ints(dtype=np.int32), True)):
            kernel(1, ints(), ints(), 0, 0, 1, keys)
            name = loaded[device.launches[-1].function]
            assert ("ArrayIi" in name) == short, name
