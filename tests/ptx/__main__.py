"""``python -m tests.ptx FOLDER...``: recorded runs of Flink on the PTX of kernels.

Exit status 1 if one differs; queries that no kernel of a device runs are counted apart.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.gpu.recorded import replay
from tests.ptx.installed import installed

_MODES = ("plain", "races", "turns", "weak")


def main() -> None:
    """Print what became of the scenarios, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.ptx", description=__doc__)
    parser.add_argument("paths", nargs="+", help="scenario files, or folders of them")
    parser.add_argument(
        "--mode", choices=_MODES, default="plain", help="as `tests.ptx.kernel.Mode`"
    )
    parser.add_argument("--seed", type=int, default=0, help="of chance, for turns and weak")
    asked = parser.parse_args()
    with installed() as device:
        device.run_as(asked.mode, asked.seed)
        found, failed = replay(asked.paths)
        races = sorted({f"{race.kernel}: {race.kind}" for race in device.races})
    report = {"found": found, "launches": device.launches.total(), "races": races, "failed": failed}
    print(json.dumps(report, indent=1))  # noqa: T201
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
