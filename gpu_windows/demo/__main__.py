"""``python -m gpu_windows.demo``: as ``gpu-windows demo``, where the command is not installed."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_windows.demo.main import PICTURE, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m gpu_windows.demo")
    parser.add_argument("--output", type=Path, default=PICTURE, help="the picture")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    arguments = parser.parse_args()
    run(arguments.output, device=arguments.device)
