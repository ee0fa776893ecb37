"""The pretended device for a while, or for the life of a process; numba-cuda is needed by then."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compiled.device import Device


@contextmanager
def installed() -> Iterator[Device]:
    """Have compiled kernels run on this CPU where ``device="cuda"``.

    An access behind an array ends the process; where it was is written to its standard error.
    """
    from tests.compiled.device import Device

    faulthandler.enable()
    with pytest.MonkeyPatch.context() as patch:
        yield Device(patch)


def install_for_good() -> None:
    """Do so until the process ends."""
    _held.append(installed())
    _held[-1].__enter__()


#: Contexts that are not left: one that is collected would be.
_held: list[AbstractContextManager[Device]] = []
