"""The first rows of keys in SQL, as they change.

``python -m tests.golden.generate_sql_top_n DIR`` writes the statements without results, which a run
of Apache Flink adds (`tests/oracle`): ``sql_top_n``, and ``bounded_sql_top_n``, the same with every
watermark removed, as a batch job sees them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden.generate_twins import Scenario, bounded
from tests.oracle.families import scenario
from tests.oracle.scenarios import write

SEED, EACH = 20, 40


def sql_top_n() -> Iterator[Scenario]:
    """Yield all of them."""
    for index in range(EACH):
        asked = scenario(SEED, index, ("top_n",))
        named = {**asked, "name": f"top_n_{index:02d}", "family": "sql_top_n"}
        yield named
        yield bounded(named)


if __name__ == "__main__":
    write(sql_top_n(), Path(sys.argv[1]))
