"""Memory of the CUDA back end: the device's."""

from __future__ import annotations

from gpu_windows.kernels.cuda.primitives import empty, to_device, to_host

__all__ = ["empty", "to_device", "to_host"]
