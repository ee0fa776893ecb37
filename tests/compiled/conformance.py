"""``python -m tests.compiled.conformance FOLDER...``: recorded runs of Flink on compiled kernels.

Exit status 1 if one differs; queries that no kernel of a device runs are counted apart.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.compiled.installed import installed

#: What the planner says of queries of which a device has no kernel, such as patterns.
_NO_KERNEL = "is not possible: no kernel of a device runs"


def run(folders: list[str]) -> tuple[Counter[str], list[Any]]:
    """Replay scenarios on the local runner with ``device="cuda"``.

    Returns
    -------
    Counter of str, list
        How many passed, failed, and were left out for which reason; what became of those that
        failed.
    """
    from gpu_windows.cli import app

    with tempfile.TemporaryDirectory() as folder, installed():
        report = Path(folder, "report.json")
        command = ["conformance", "--device", "cuda", "--json", str(report), *folders]
        app(command, standalone_mode=False)
        scenarios = json.loads(report.read_text())["scenarios"]
    found: Counter[str] = Counter()
    failed = []
    for each in scenarios:
        has_kernel = _NO_KERNEL not in str(each)
        found[each["status"] if has_kernel else "no kernel"] += 1
        if has_kernel and each["status"] == "failed":
            failed.append(each)
    return found, failed


def main() -> None:
    """Print what became of the scenarios, as JSON."""
    found, failed = run(sys.argv[1:])
    print(json.dumps({"found": found, "failed": failed}, indent=1))  # noqa: T201
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
