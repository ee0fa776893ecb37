"""What the machine can do at all: copies on the device, and between host and device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.gpu.scene import Row, Scene, timed
from gpu_windows.kernels.backend import select

#: Name, bytes moved and the work of a copy.
Copy = tuple[str, int, Callable[[], Any]]


def run(scene: Scene) -> Iterator[Row]:
    """Yield the rate of every kind of copy, and what a CUDA context takes of the device."""
    size = (1 << 16) if scene.dry else (1 << 31)
    if not scene.dry:
        yield _context()
    for name, moved, work in chain(_copies(size, dry=scene.dry), _staged(size, scene.device)):
        seconds, _ = timed(scene, work)
        yield {"what": name, "bytes": moved, "seconds": seconds, "gb_per_s": moved / seconds / 1e9}


def _context() -> Row:
    """Return what is in use once a context is there; all of it the context's on an idle device."""
    import cupy

    from gpu_windows.kernels.cuda.session import CONTEXT_BYTES

    free, total = cupy.cuda.runtime.memGetInfo()
    return {
        "what": "context",
        "bytes": total - free,
        "assumed_bytes": CONTEXT_BYTES,
        "total_bytes": total,
    }


def _copies(size: int, *, dry: bool) -> Iterator[Copy]:
    """Yield every copy of the machine's, and how CuPy moves an array by itself."""
    random = np.random.default_rng(1)
    host = random.integers(0, 2**62, size // 8)
    if dry:
        there = host.copy()
        yield "device copy", 2 * size, lambda: np.copyto(there, host)
        return
    import cupy

    source, there = cupy.asarray(host), cupy.empty(size // 8, np.int64)
    yield "device copy", 2 * size, lambda: cupy.copyto(there, source)
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.int64, size // 8)
    pinned[:] = host
    yield "pinned to device", size, lambda: there.set(pinned)
    yield "device to pinned", size, lambda: there.get(out=pinned)
    yield "pageable to device", size, lambda: there.set(host)
    yield "device to pageable", size, lambda: there.get(out=host)
    yield "asarray to device", size, lambda: cupy.asarray(host)


def _staged(size: int, device: str) -> Iterator[Copy]:
    """Yield the moves that queries make, of memory that is not pinned, to new memory each time."""
    backend, host = select(device), np.arange(size // 8)
    there = backend.to_device(host)
    yield "staged to device", size, lambda: backend.to_device(host)
    yield "device to staged", size, lambda: backend.to_host(there)
