"""The state machines on a real CUDA device, against the CPU kernels.

``compute-sanitizer python -m pytest tests/gpu -m gpu -k small`` checks their memory accesses.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject

import gpu_windows as gw
from gpu_windows.operators.build import build_operator
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.runners import local
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    WindowAssigner,
)
from tests.examples import examples
from tests.operators.panes.queries import Step, inputs, queries, run
from tests.planning.queries import query

pytestmark = pytest.mark.gpu


@examples(60)
@given(queries(), inputs())
def test_small_inputs(made: WindowQuery, steps: list[Step]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    on_cpu = run(build_operator(planned, trace=True, device="cpu"), steps)
    on_cuda = run(build_operator(planned, trace=True, device="cuda"), steps)
    assert [*on_cuda] == [*on_cpu]


@pytest.mark.parametrize("evictor", [None, CountEvictor.of(10)])
@pytest.mark.parametrize(
    "assigner", [SlidingEventTimeWindows(5_000, 1_000), EventTimeSessionWindows(40)]
)
def test_large_inputs(assigner: WindowAssigner, evictor: CountEvictor | None) -> None:
    rng, count = np.random.default_rng(7), 300_000
    table = pa.table(
        {
            "key": pa.array(rng.integers(0, 100, count)).cast(pa.string()),
            "part": pa.array(rng.integers(0, 3, count), pa.int32()),
            "ts": np.sort(rng.integers(0, 1_000_000, count)),
            "i": rng.integers(-1_000, 1_000, count),
        }
    )
    results = []
    for device in ("cpu", "cuda"):
        made = query(
            assigner,
            table.schema,
            aggregates={"n": gw.count(), "total": gw.sum("i"), "top": gw.max("i")},
            trigger=gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(5)),
            evictor=evictor,
            options=Options(device=device),
        )
        results.append(local.run(plan(made, bounded=True), table).results)
    assert len(results[0]) > 10_000
    assert results[0].equals(results[1])
