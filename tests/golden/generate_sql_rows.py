"""Statements of SQL that take rows of windows by their number, and rows in order of time.

``python -m tests.golden.generate_sql_rows DIR`` writes them without results, which a run of Apache
Flink adds (`tests/oracle`): ``sql_rows``, and ``bounded_sql_rows``, the same with every watermark
removed, as a batch job sees them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden.generate_twins import Scenario, bounded
from tests.oracle.families import scenario
from tests.oracle.scenarios import write

SEED, EACH = 20, 20
KINDS = ("window_dedup", "window_top_n", "temporal_sort")


def sql_rows() -> Iterator[Scenario]:
    """Yield all of them."""
    for kind in KINDS:
        for index in range(EACH):
            asked = scenario(SEED, index, (kind,))
            named = {**asked, "name": f"{kind}_{index:02d}", "family": "sql_rows"}
            yield named
            yield bounded(named)


if __name__ == "__main__":
    write(sql_rows(), Path(sys.argv[1]))
