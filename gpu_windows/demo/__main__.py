"""``python -m gpu_windows.demo``: as ``gpu-windows demo``, where the command is not installed."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_windows.demo import main, streaming

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m gpu_windows.demo")
    parser.add_argument("--streaming", action="store_true", help="replay the flights as a stream")
    parser.add_argument("--output", type=Path, help="the picture, or the folder of the stream")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    arguments = parser.parse_args()
    if arguments.streaming:
        streaming.run(arguments.output or streaming.OUTPUT, device=arguments.device)
    else:
        main.run(arguments.output or main.PICTURE, device=arguments.device)
