"""Random queries of every built-in part, random steps, and an operator that takes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import collect_list, count_distinct, median, quantile
from gpu_windows.aggregates.sketches import approx_count_distinct, approx_quantile
from gpu_windows.errors import MissingExtraError, QueryError
from gpu_windows.functions.window import Collect
from gpu_windows.operators.base import Operator
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.own_columns import REASON
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.deltas import Delta
from gpu_windows.vocabulary.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EarlyAndLateTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    CumulativeProcessingTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from tests.planning.queries import AGGREGATES, SCHEMA, query, rows_of, tables

WITH_GAP = SCHEMA.append(pa.field("gap", pa.int64()))
#: Gaps of sessions; few are such that their rows are given back.
GAPS = st.one_of([st.integers(1, 30)] * 9 + [st.sampled_from([None, 0, -1, LONG_MIN])])
DELTAS = st.builds(
    Delta,
    st.sampled_from(["f", "i"]),
    st.sampled_from(["old_minus_new", "new_minus_old", "abs_diff"]),
)
INTERVALS = st.integers(1, 15)
#: Aggregates that need all values of a window, and some that do not.
LISTS = {
    "texts": collect_list("text"),
    "days": collect_list("day"),
    "different": count_distinct("f"),
    "sum_once": Aggregate("sum", "small").distinct(),
    "mean_once": Aggregate("mean", "d").distinct(),
    "dev_once": Aggregate("stddev", "i").distinct().filter("b"),
    "least_once": Aggregate("min", "f").distinct(),
    "texts_once": Aggregate("collect_list", "text").distinct(),
    "low_once": quantile("small", 0.1).distinct().filter("b"),
    "names": count_distinct("text"),
    "median": median("f"),
    "low": quantile("small", 0.1),
    "sum_i": Aggregate("sum", "i"),
    "last_text": Aggregate("last", "text", skip_nulls=True),
}


#: Aggregates whose partials are combined in any order: sessions keep those and no rows.
ORDER_FREE = {
    name: aggregate
    for name, aggregate in AGGREGATES.items()
    if aggregate.function not in ("first", "last", "arg_min", "arg_max")
}
# A machine that is lent for its GPU has no library of sketches.
with suppress(MissingExtraError):
    ORDER_FREE |= {"distinct": approx_count_distinct("i"), "half": approx_quantile("f", 0.5)}


def triggers() -> st.SearchStrategy[Trigger]:
    """Every built-in trigger, and those made of others."""
    leaves = st.one_of(
        st.sampled_from(
            [EventTimeTrigger(), ProcessingTimeTrigger(), EndOfStreamTrigger(), NeverTrigger()]
        ),
        INTERVALS.map(ContinuousEventTimeTrigger),
        INTERVALS.map(ContinuousProcessingTimeTrigger),
        st.integers(1, 4).map(CountTrigger),
        st.builds(DeltaTrigger, st.integers(-3, 10).map(float), DELTAS),
    )

    def wrapped(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
        return st.one_of(
            inner.map(PurgingTrigger),
            st.builds(ProcessingTimeoutTrigger, inner, INTERVALS, st.booleans(), st.booleans()),
            st.builds(EarlyAndLateTrigger, inner, st.one_of(st.none(), inner)),
            st.builds(EarlyAndLateTrigger, st.none(), inner),
        )

    return st.recursive(leaves, wrapped, max_leaves=3)


def evictors() -> st.SearchStrategy[Evictor | None]:
    """Every built-in evictor, before and after the function, and none."""
    return st.one_of(
        st.none(),
        st.builds(CountEvictor, st.booleans(), st.integers(0, 4)),
        st.builds(TimeEvictor, st.booleans(), st.integers(0, 20)),
        st.builds(DeltaEvictor, st.booleans(), st.integers(-3, 10).map(float), DELTAS),
    )


def assigners() -> st.SearchStrategy[WindowAssigner]:
    """Windows of both times, that merge and that do not."""
    size = st.integers(1, 25)
    return st.one_of(
        size.map(TumblingEventTimeWindows),
        st.builds(SlidingEventTimeWindows, size, st.integers(1, 12)),
        st.builds(
            lambda n, step: CumulativeEventTimeWindows(n * step, step), st.integers(1, 4), size
        ),
        st.sampled_from([GlobalWindows(), GlobalWindows(at_end=True)]),
        st.integers(1, 30).map(EventTimeSessionWindows),
        st.just(EventTimeSessionWindows(0, "gap")),
        size.map(TumblingProcessingTimeWindows),
        st.builds(
            lambda n, step: CumulativeProcessingTimeWindows(n * step, step), st.integers(1, 4), size
        ),
        st.builds(SlidingProcessingTimeWindows, size, st.integers(1, 12)),
        st.integers(1, 30).map(ProcessingTimeSessionWindows),
    )


@st.composite
def queries(draw: st.DrawFn, among: st.SearchStrategy[WindowAssigner] | None = None) -> WindowQuery:
    """Queries that are allowed, with aggregates of every kind or the rows themselves."""
    assigner = draw(assigners() if among is None else among)
    trigger = draw(st.one_of(st.just(assigner.default_trigger()), triggers(), triggers()))
    endless = any(isinstance(part, ContinuousEventTimeTrigger) for part in trigger.walk())
    if endless and isinstance(assigner, GlobalWindows):
        reject()  # it fires from a row's time to the end of time, as in Flink
    changes: dict[str, Any] = {}
    if draw(st.booleans()):
        changes |= {"changes": True, "firing_columns": True}
    else:
        changes["firing_columns"] = draw(st.booleans())
    function = draw(st.sampled_from(["partials", "order free", "lists", "rows"]))
    if function == "rows":
        changes["function"] = Collect(("i", "text"))
    if function == "order free":
        changes["aggregates"] = ORDER_FREE
    if function == "lists":
        changes["aggregates"] = LISTS
    try:
        return query(
            assigner,
            WITH_GAP,
            trigger=trigger,
            evictor=draw(evictors()),
            allowed_lateness=draw(st.sampled_from([0, 0, 5, 40])),
            **changes,
        )
    except QueryError:
        reject()


Step = tuple[str, Any]


@st.composite
def inputs(draw: st.DrawFn, most: int = 40) -> list[Step]:
    """Rows in batches, watermarks and processing times that rise, the end of time, some more."""
    table = draw(tables(most=most, exact=True))
    gaps = [draw(GAPS) for _ in range(len(table))]
    table = table.append_column(WITH_GAP.field("gap"), pa.array(gaps, pa.int64()))
    table = table.append_column(ARRIVAL, pa.array(np.arange(len(table))))
    steps: list[Step] = []
    at, watermark, now = 0, -70, 0
    while at < len(table):
        size = draw(st.integers(1, 12))
        steps.append(("rows", table.slice(at, size)))
        at += size
        if draw(st.booleans()):
            watermark += draw(st.integers(0, 40))
            steps.append(("watermark", watermark))
        if draw(st.booleans()):
            now += draw(st.integers(0, 20))
            steps.append(("processing_time", now))
    after = draw(st.integers(0, 5))  # where windows have no event time, these count
    more = [("rows", table.slice(0, after)), ("processing_time", now + 20)] if after else []
    return [*steps, ("watermark", LONG_MAX), *more]


def run(operator: Operator, steps: list[Step]) -> Iterator[tuple[list[Any], list[Any], Counters]]:
    """Yield results, rows that are given back and counters of every step."""
    for kind, value in steps:
        if kind == "rows":
            emissions = [*operator.process(value)]
        elif kind == "watermark":
            emissions = [*operator.advance_watermark(value)]
        else:
            emissions = [*operator.advance_processing_time(value)]
        results = [row for e in emissions for row in ordered(e.results)]
        late = [rows_of(e.late.select(["key", "ts", REASON])) for e in emissions if len(e.late)]
        counters = sum((e.counters for e in emissions), Counters())
        yield results, sorted(chain(*late), key=repr), counters


def ends(made: WindowQuery, steps: list[Step]) -> bool:
    """Whether nothing is left: windows without an end keep rows that come after the end of time.

    Nor does a timer of processing time of a window that was merged leave before its time: triggers
    take back the one that they know of the whole, as in Flink. It fires nothing.
    """
    if made.merges and made.trigger.uses_processing_time:
        return False
    last = [step[0] for step in steps if step[0] == "rows" or step[1] == LONG_MAX][-1:]
    return made.assigner.is_event_time or (made.ends_with_time and last != ["rows"])


def ordered(table: pa.Table) -> list[Any]:
    return [rows_of(table.slice(i, 1))[0] for i in range(len(table))]
