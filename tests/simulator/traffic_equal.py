"""The page docs/traffic.md says what is counted now."""

from __future__ import annotations

from pathlib import Path

from tests.simulator.traffic import markdown, traffic

PAGE = Path(__file__).parents[2] / "docs" / "traffic.md"


def test_the_page_is_up_to_date() -> None:
    again = "NUMBA_ENABLE_CUDASIM=1 python -m tests.simulator.traffic --markdown docs/traffic.md"
    assert PAGE.read_text() == markdown(traffic()), f"make it anew: {again}"
