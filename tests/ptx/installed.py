"""The pretended device for a while, or for the life of a process; numba-cuda is needed by then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.ptx.device import Device


@contextmanager
def installed() -> Iterator[Device]:
    """Have the PTX of kernels run on this CPU where ``device="cuda"``."""
    from tests.ptx.device import Device

    with pytest.MonkeyPatch.context() as patch:
        yield Device(patch)


def install_for_good() -> None:
    """Do so until the process ends."""
    _held.append(installed())
    _held[-1].__enter__()


#: Contexts that are not left: one that is collected would be.
_held: list[AbstractContextManager[Device]] = []
