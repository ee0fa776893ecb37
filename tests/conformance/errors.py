"""What a scenario file may have wrong."""

from __future__ import annotations

from gpu_windows.errors import GpuWindowsError


class ScenarioError(GpuWindowsError):
    """A scenario file that cannot be read."""
