"""Plan a query for the reference, and run it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from gpu_windows.operators.base import Operator
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.open_functions import with_open_functions
from gpu_windows.operators.process.pairs import PairsOperator
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.kinds.pairs import IntervalJoinQuery, TemporalJoinQuery
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.runners import local
from gpu_windows.vocabulary.options import Engine
from tests.reference.interval_join import ReferenceJoinOperator
from tests.reference.over import ReferenceOverOperator
from tests.reference.temporal_join import ReferenceTemporalJoinOperator

_OPERATORS: dict[type[Query], Any] = {
    IntervalJoinQuery: ReferenceJoinOperator,
    OverQuery: ReferenceOverOperator,
    TemporalJoinQuery: ReferenceTemporalJoinOperator,
}


def reference_plan(query: Query, **where: Any) -> Plan:
    """Plan a query for `reference_operator`; ``where``: see `gpu_windows.planning.planner.plan`."""
    engine: Engine = "auto" if type(query) in _OPERATORS else "reference"
    return plan(replace(query, options=replace(query.options, engine=engine)), **where)


def reference_operator(planned: Plan, *, trace: bool = False) -> Operator:
    """Build the operator of a `reference_plan`."""
    kind = _OPERATORS.get(type(planned.query))
    if kind is None:
        return build_operator(planned, trace=trace)
    if planned.query.rich_parts:
        planned = with_open_functions(planned)
    process = planned.query.pair_process
    if process is None:
        return kind(planned, trace=trace)  # type: ignore[no-any-return]
    pairs = kind(replace(planned, query=planned.query.without_process), trace=trace)
    return PairsOperator(planned, process, pairs, trace=trace)


@contextmanager
def run_by(engine: str) -> Iterator[None]:
    """Let the local runner run queries of ``engine="auto"`` by the reference, if that is asked.

    Parameters
    ----------
    engine : {"auto", "reference"}
    """
    with pytest.MonkeyPatch.context() as patch:
        if engine == "reference":
            patch.setattr(local, "build_operator", lambda planned, **_: reference_operator(planned))
        yield
