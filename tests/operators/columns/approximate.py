"""Approximate aggregates of every type."""

from __future__ import annotations

import pytest

import gpu_windows as gw

pytest.importorskip("datasketches", reason="no wheels for Python 3.14; of the extra `sketches`")

#: Of few values, every one of these is exact.
APPROXIMATE = {
    **{
        f"different_{name}": gw.approx_count_distinct(name)
        for name in ("i", "f", "text", "day", "b", "d")
    },
    "low": gw.approx_quantile("i", 0.1),
    "middle": gw.approx_quantile("f", 0.5),
    "high": gw.approx_quantile("small", 0.9, k=64),
}
