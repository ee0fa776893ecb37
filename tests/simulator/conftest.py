"""Every launch of the simulated suite must match its kernel's signature, and no kernel stay out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_windows.kernels.cuda.kernel import CudaKernel, all_kernels
from tests.simulator.launches import check

#: Of every kernel, in a run of all checks.
LEAST_LAUNCHES = 5


@pytest.fixture(scope="session", autouse=True)
def checked_launches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check every launch; at the end of a run of all modules, count them.

    Where compiled kernels run (`tests.compiled`), what launches them checks its arguments.
    """
    if request.config.pluginmanager.has_plugin("tests.compiled.plugin"):
        yield
        return
    launches: Counter[str] = Counter()
    launch = CudaKernel.__call__

    def checked(kernel: CudaKernel, count: int, *arguments: Any) -> None:
        if count:
            check(kernel, arguments)
            launches[kernel.name] += 1
        launch(kernel, count, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CudaKernel, "__call__", checked)
        yield
    ran = {item.path.name for item in request.session.items}
    if ran >= {path.name for path in Path(__file__).parent.glob("*_equal.py")}:
        seldom = {name: launches[name] for name in all_kernels() if launches[name] < LEAST_LAUNCHES}
        assert not seldom, f"launched less than {LEAST_LAUNCHES} times: {seldom}"
