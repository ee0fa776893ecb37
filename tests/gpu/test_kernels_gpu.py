"""The CUDA kernels on a real device, against the CPU kernels.

``compute-sanitizer python -m pytest tests/gpu -m gpu -k small`` checks their memory accesses.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.kernels.backend import Backend
from tests.kernels.cases import Case, assert_equal, evaluate, random_case

pytestmark = pytest.mark.gpu

_MINUTE, _DAY = 60_000_000, 86_400_000_000

SMALL = {
    "nothing": random_case(0, 0, 1, rules.sliding_grid(7, 3, 0), ticks=10),
    "one row": random_case(1, 1, 1, rules.sliding_grid(7, 3, 0), ticks=10),
    "pieces": random_case(2, 5_000, 2, rules.sliding_grid(50, 50, 0), ticks=60),
    "a long span": random_case(3, 5_000, 3, rules.sliding_grid(3_600, 1, 0), ticks=20_000),
    "gaps": random_case(4, 5_000, 5, rules.sliding_grid(3, 10, 4), ticks=3_000),
    "cumulative": random_case(5, 5_000, 4, rules.cumulative_grid(600, 10, 5), ticks=9_000),
    "keys too wide to be one": random_case(
        6, 5_000, 20, rules.sliding_grid(2, 2, 0), ticks=2**61, key_count=10**6
    ),
}

LARGE = {
    "an hour every minute": partial(
        random_case, 10, 2_000_000, 1_000, rules.sliding_grid(60 * _MINUTE, _MINUTE, 0), ticks=_DAY
    ),
    "ten hours every minute": partial(
        random_case, 11, 2_000_000, 1_000, rules.sliding_grid(600 * _MINUTE, _MINUTE, 0), ticks=_DAY
    ),
    "slide does not divide size": partial(
        random_case, 12, 1_000_000, 100, rules.sliding_grid(1_001_000_000, 7_000_000, 3), ticks=_DAY
    ),
    "one group": partial(
        random_case, 13, 3_000_000, 1, rules.sliding_grid(_DAY, _DAY, 0), ticks=1000
    ),
    "one key, a span of 86,400": partial(
        random_case, 14, 500_000, 1, rules.sliding_grid(86_400, 1, 0), ticks=300_000
    ),
    "many keys": partial(
        random_case, 15, 1_000_000, 500_000, rules.sliding_grid(_MINUTE, _MINUTE, 0), ticks=_DAY
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small(cuda: Backend, name: str) -> None:
    _check(cuda, SMALL[name])


def test_in_a_thread_that_has_not_used_the_device(cuda: Backend) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_check, cuda, SMALL["pieces"]).result()


@pytest.mark.parametrize("name", LARGE)
def test_large(cuda: Backend, name: str) -> None:
    _check(cuda, LARGE[name]())


def _check(cuda: Backend, case: Case) -> None:
    found = evaluate(cuda, case)
    assert_equal(found, evaluate(backend.select("cpu"), case), case)
    again = evaluate(cuda, case)
    differ = [name for name, values in found.items() if values.tobytes() != again[name].tobytes()]
    assert not differ, "another result of a second run"


def test_arrays_of_the_host_are_refused(cuda: Backend) -> None:
    host = np.zeros(3, np.int64)
    with pytest.raises(TypeError, match="takes arrays of the device"):
        cuda.combine.windows(host, host, rules.sliding_grid(2, 1, 0), 0, 1)


@pytest.mark.usefixtures("cuda")
def test_an_exhausted_device_is_a_typed_error() -> None:
    code = (
        "import numpy as np\n"
        "from gpu_windows.errors import DeviceMemoryError\n"
        "from gpu_windows.kernels import backend\n"
        "cuda = backend.select('cuda')\n"
        "try:\n"
        "    cuda.to_device(np.zeros(1 << 22))\n"
        "except DeviceMemoryError:\n"
        "    print('typed')\n"
        "print(cuda.to_host(cuda.to_device(np.arange(3))).tolist())\n"
    )
    environment = os.environ | {"GPU_WINDOWS_DEVICE_MEMORY": str(1 << 22)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    assert run.stdout.split("\n")[:2] == ["typed", "[0, 1, 2]"]
