"""``python -m tests.compiled.conformance FOLDER...``: recorded runs of Flink on compiled kernels.

Exit status 1 if one differs; queries that no kernel of a device runs are counted apart.
"""

from __future__ import annotations

import json
import sys

from benchmarks.gpu.recorded import replay
from tests.compiled.installed import installed


def main() -> None:
    """Print what became of the scenarios, as JSON."""
    with installed():
        found, failed = replay(sys.argv[1:])
    print(json.dumps({"found": found, "failed": failed}, indent=1))  # noqa: T201
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
