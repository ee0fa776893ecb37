"""Windows in which a key has no rows are filled as pandas and a model in plain Python fill them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_windows.operators.build import build_operator
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.gap_filling import GapFilling, GivenKeys
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.windows import SlicedAssigner
from tests.examples import examples
from tests.operators.gaps.model import Filling, fill
from tests.operators.slices.tasks import with_arrival
from tests.operators.state.put_away import put_away_after_each
from tests.planning.queries import AGGREGATES, assigners, query, rounded, tables

MINUTE = 60_000_000
NAMES = ("rows", "sum_f", "last_text_if", "min_d", "mean_i")
SOME = {name: AGGREGATES[name] for name in NAMES} | {"dev": AGGREGATES["var_f"]}
OF_NO_ROWS = dict.fromkeys(SOME, None) | {"rows": 0}


@st.composite
def fillings(draw: st.DrawFn, *, bounded: bool = True) -> GapFilling:
    """Carried and interpolated results, up to an end or not, of given keys or all."""
    carried = tuple(draw(st.lists(st.sampled_from(["last_text_if", "min_d", "rows"]), unique=True)))
    lines = tuple(draw(st.lists(st.sampled_from(["sum_f", "mean_i"]), unique=True)))
    if draw(st.booleans()):
        until = draw(st.one_of(st.none(), st.integers(1, 90)) if bounded else st.integers(1, 90))
        return GapFilling(carried, lines, until)
    keys = [("a", 0), (None, 1), ("b", None), ("never", 2)]
    columns = [dict(zip(("key", "part"), key, strict=True)) for key in keys]
    schema = pa.schema([("key", pa.string()), ("part", pa.int32())])
    start = draw(st.integers(-80, 40))
    of_keys = GivenKeys(
        pa.Table.from_pylist(columns, schema), start, start + draw(st.integers(1, 90))
    )
    return GapFilling(carried, lines if bounded else (), None, of_keys)


def model_rows(results: list[dict[str, Any]], assigner: SlicedAssigner, gaps: GapFilling) -> Any:
    """Return what the model makes of the results of windows with rows."""
    windows = {(w.start, w.end) for ts in range(-300, 300) for w in assigner.assign(ts)}
    found = {
        ((row["key"], row["part"]), (row["window_start"], row["window_end"])): {
            name: row[name] for name in SOME
        }
        for row in results
    }
    filling = Filling(OF_NO_ROWS, gaps.carry_forward, gaps.interpolate, gaps.until)
    if gaps.given is not None:
        keys = [tuple(row.values()) for row in gaps.given.table.to_pylist()]
        end = gaps.given.end or 0
        filling = replace(filling, given=keys, start=gaps.given.start, end=end)
    filled = fill(found, sorted(windows, key=lambda w: w[1]), filling)
    return rounded((*key, *window, *values.values()) for (key, window), values in filled.items())


def results_of(made: WindowQuery, table: pa.Table, **options: Any) -> list[dict[str, Any]]:
    """Return the results of a query over bounded rows."""
    operator = build_operator(plan(made, bounded=True), **options)
    emissions = [*operator.process(with_arrival(table)), *operator.advance_watermark(LONG_MAX)]
    assert not any(operator.state_size().values())
    found = [row for emission in emissions for row in emission.results.to_pylist()]
    assert sum(emission.counters.fired for emission in emissions) == len(found)
    return found


def as_rows(results: list[dict[str, Any]]) -> Any:
    return rounded(tuple(row.values()) for row in results)


@examples(120)
@given(assigners(), tables(), fillings(), st.sampled_from(["auto", "reference"]), st.booleans())
def test_a_model_fills_the_same(
    assigner: SlicedAssigner, table: pa.Table, gaps: GapFilling, engine: Any, ordered: bool
) -> None:
    options = Options(device="cpu", engine=engine)
    made = query(assigner, aggregates=SOME, options=options)
    whole = results_of(made, table)
    found = results_of(replace(made, gaps=gaps), table, in_order=ordered)
    assert as_rows(found) == model_rows(whole, assigner, gaps)
    by_key: dict[Any, list[int]] = {}
    for row in found:
        by_key.setdefault((row["key"], row["part"]), []).append(row["window_end"])
    assert all(ends == sorted(ends) for ends in by_key.values())


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Rows and watermarks by turns, and the end of time."""
    found: list[tuple[str, Any]] = []
    mark = -70
    for _ in range(draw(st.integers(1, 5))):
        mark += draw(st.integers(0, 60))
        found += [("rows", with_arrival(draw(tables(most=10)))), ("watermark", mark)]
    return [*found, ("watermark", LONG_MAX)]


@examples(60)
@given(assigners(), steps(), fillings(bounded=False))
def test_an_operator_that_is_put_away_fills_the_same(
    assigner: SlicedAssigner, made: list[tuple[str, Any]], gaps: GapFilling
) -> None:
    planned = plan(query(assigner, aggregates=SOME, gaps=gaps), bounded=False)
    assert not any(put_away_after_each(planned, made).values())


@examples(120)
@given(assigners(), steps(), fillings(bounded=False))
def test_a_stream_fills_as_a_batch_of_the_same_results(
    assigner: SlicedAssigner, made: list[tuple[str, Any]], gaps: GapFilling
) -> None:
    """Rows that are not late have the same results, whenever their watermarks come."""
    filled, whole = query(assigner, aggregates=SOME, gaps=gaps), query(assigner, aggregates=SOME)
    found = []
    for each in (filled, whole):
        operator = build_operator(plan(each, bounded=False))
        emitted = []
        for kind, step in made:
            call_ = operator.process if kind == "rows" else operator.advance_watermark
            emitted += [row for e in call_(step) for row in e.results.to_pylist()]
        found.append(emitted)
    assert as_rows(found[0]) == model_rows(found[1], assigner, gaps)
