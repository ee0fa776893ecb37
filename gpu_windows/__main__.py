"""``python -m gpu_windows``: the command ``gpu-windows``, by the Python that is meant."""

from __future__ import annotations

from gpu_windows.cli import app

if __name__ == "__main__":
    app(prog_name="python -m gpu_windows")
