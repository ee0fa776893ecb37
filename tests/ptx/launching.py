"""Launches of small kernels of tests' own, or of PTX text, without the package's launcher."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gpu_windows.kernels.cuda.types import INTS
from tests.ptx.arrays import DeviceArray
from tests.ptx.build import ptx_of
from tests.ptx.kernel import Order, PtxKernel, array_places

Function = Callable[..., None]


def kernel_of(function: Function) -> PtxKernel:
    """Return a kernel that takes two arrays of int64."""
    return PtxKernel(function.__name__, _ptx_of(function), array_places((INTS, INTS)))


@cache
def _ptx_of(function: Function) -> str:
    return ptx_of(function, (INTS, INTS))


def launch(
    kernel: PtxKernel, blocks: int, threads: int, *arguments: DeviceArray | int, order: Order
) -> None:
    """Run a kernel over arrays and numbers of 8 bytes, laid out as the driver copies them."""
    words: list[int] = []
    for argument in arguments:
        if isinstance(argument, DeviceArray):
            size, width = argument.size, argument.dtype.itemsize
            words += [0, 0, size, width, argument.data.ptr, size, width]
        else:
            words.append(argument)
    values = np.array(words, np.int64)
    addresses = values.ctypes.data + 8 * np.arange(len(words))
    kernel.run(blocks, threads, addresses.ctypes.data, order)
