"""What queries launch and move is as little as it was, and the page docs/traffic.md says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ptx.plugin import device as installed
from tests.ptx.traffic import KEYS, ROWS, Calls, Traffic, markdown, traffic

pytestmark = pytest.mark.thorough

#: Columns of the batch that go up, by query.
COLUMNS = {
    "sliding 60/1 minutes, count": 2,
    "sliding, sum of int64": 3,
    "sliding, sum of float64": 3,
    "sliding, mean of float64": 3,
}
COUNT_AND_SUM = "sliding, count and sum of int64"
PAGE = Path(__file__).parents[2] / "docs" / "traffic.md"


Found = dict[str, Traffic]


@pytest.fixture(scope="module")
def found() -> Found:
    """What some queries launch and move."""
    return traffic(installed(), [*COLUMNS, COUNT_AND_SUM])


@pytest.mark.slow  # counts all queries, which takes half a minute
def test_the_page_is_up_to_date() -> None:
    again = "python -m tests.ptx.traffic --markdown docs/traffic.md"
    assert PAGE.read_text() == markdown(traffic(installed())), f"make it anew: {again}"


def test_a_batch_of_windows_makes_no_round_trip(found: Found) -> None:
    """Columns go up once, results come down once, and nothing in between but distinct keys."""
    for name, count in COLUMNS.items():
        query = found[name]
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
    counted = found[COUNT_AND_SUM]
    rest = counted.calls - counted.batch_calls
    assert counted.batch_calls == Calls(launches=12, cupy=10, waits=2)
    assert rest == Calls(launches=7, cupy=14, waits=2)
