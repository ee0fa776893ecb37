"""Sketches with CUDA kernels around them against CPU kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.planning.planner import plan
from gpu_windows.runners import local
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from tests.examples import examples
from tests.operators.columns.approximate import APPROXIMATE
from tests.planning.queries import assigners, query, rows_of, tables


@examples(15)
@given(st.one_of(assigners(), st.just(EventTimeSessionWindows(7))), tables(most=12, exact=True))
def test_sketches(assigner: Any, table: pa.Table) -> None:
    made = query(assigner, aggregates=APPROXIMATE)
    on_cpu = local.run(plan(made, bounded=True), table)
    options = Options(device="cuda")
    on_cuda = local.run(plan(replace(made, options=options), bounded=True), table)
    assert rows_of(on_cuda.results) == rows_of(on_cpu.results)
