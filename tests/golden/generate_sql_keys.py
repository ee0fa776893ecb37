"""The first rows of keys in SQL, as they change, and grouping sets of windows.

``python -m tests.golden.generate_sql_keys DIR`` writes the statements without results, which a run
of Apache Flink adds (`tests/oracle`): ``sql_top_n`` and ``sql_grouping_sets``; and, with
``bounded_`` before it, the same with every watermark removed, as a batch job sees them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden.generate_twins import Scenario, bounded
from tests.oracle.families import scenario
from tests.oracle.scenarios import write

SEED = 20
EACH = {"top_n": 40, "grouping_sets": 20}


def statements() -> Iterator[Scenario]:
    """Yield all of them."""
    for kind, count in EACH.items():
        for index in range(count):
            asked = scenario(SEED, index, (kind,))
            named = {**asked, "name": f"{kind}_{index:02d}", "family": f"sql_{kind}"}
            yield named
            yield bounded(named)


if __name__ == "__main__":
    write(statements(), Path(sys.argv[1]))
