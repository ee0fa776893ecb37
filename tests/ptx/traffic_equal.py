"""The page docs/traffic.md says what is counted now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ptx.plugin import device as installed
from tests.ptx.traffic import KEYS, ROWS, Calls, Traffic, markdown, traffic

#: Counting takes half a minute.
pytestmark = pytest.mark.thorough

PAGE = Path(__file__).parents[2] / "docs" / "traffic.md"


Found = dict[str, Traffic]


@pytest.fixture(scope="module")
def found() -> Found:
    """What all queries launch and move."""
    return traffic(installed())


def test_the_page_is_up_to_date(found: Found) -> None:
    again = "python -m tests.ptx.traffic --markdown docs/traffic.md"
    assert PAGE.read_text() == markdown(found), f"make it anew: {again}"


def test_a_batch_of_windows_makes_no_round_trip(found: Found) -> None:
    """Columns go up once, results come down once, and nothing in between but distinct keys."""
    columns = {"count": 2, "sum of int64": 3, "sum of float64": 3, "mean of float64": 3}
    for name, count in columns.items():
        query = next(counted for query, counted in found.items() if query.endswith(name))
        assert (query.trips, query.key_trips, len(query.up)) == (0, 1, count + 1), name
        assert query.longest_key_trip == KEYS + 1, name  # one is null


def test_an_exact_sum_launches_few_kernels_a_batch_and_reads_and_writes_60_bytes_a_row(
    found: Found,
) -> None:
    counted = found["sliding, sum of int64"]
    until_entries = [
        launch
        for launch in counted.launches
        if not launch.kernel.startswith(("keys", "reach", "windows", "combine"))
    ]
    assert [launch.kernel for launch in until_entries] == [
        "assign.assign",
        "cells.begin",
        "cells.place",
        "cells.count_occupied",
        "cells.write_occupied",
        "cells.exact_sum",
        "replicas.take_folded",
    ]
    rows = [launch.asked / ROWS for launch in until_entries if launch.items == ROWS]
    assert rows[0] <= 20
    assert sum(rows) <= 60


def test_a_batch_asks_little_of_the_host(found: Found) -> None:
    """Each launch and each call of CuPy takes the host time, in each wait the device runs dry."""
    counted = found["sliding, count and sum of int64"]
    rest = counted.calls - counted.batch_calls
    assert counted.batch_calls == Calls(launches=12, cupy=10, waits=2)
    assert rest == Calls(launches=7, cupy=14, waits=2)
