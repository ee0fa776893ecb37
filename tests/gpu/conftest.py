"""The back end of a real device; without one its tests are skipped, with the reason."""

from __future__ import annotations

import pytest

from gpu_windows.kernels import backend
from gpu_windows.kernels.backend import Backend


@pytest.fixture(scope="module", autouse=True)
def cuda() -> Backend:
    """The CUDA back end."""
    missing = backend.why_no_cuda()
    if missing is not None:
        pytest.skip(missing)
    return backend.select("cuda")
