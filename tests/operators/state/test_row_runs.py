"""Rows in a store by place and time: what is found is what was appended and is not over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.joins import partners
from gpu_windows.operators.joins.stored_side import row_kind
from gpu_windows.operators.state import row_runs, tiers
from gpu_windows.operators.state.row_runs import RowKind, RowRuns
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.operators.state.counting import Counting

Ints = NDArray[np.int64]
#: Place and time of a row.
Row = tuple[int, int]
#: Rows that are appended, or a time up to which rows are over.
Call = list[Row] | int


def places(rows: pa.Table) -> Ints:
    found: Ints = rows["place"].to_numpy()
    return found


def opened(store: Counting, index: pa.Table | None = None, *, keeps_met: bool = True) -> RowRuns:
    found = RowRuns.nothing() if index is None else index
    return RowRuns(store, "left", found, row_kind(places, keeps_met=keeps_met))


def rows(of: Sequence[Row], first: int = 0, status: int = partners.WAITS) -> pa.Table:
    """Return rows, or notes of rows, with numbers from ``first`` on."""
    columns = np.array(of, np.int64).reshape(-1, 2).T
    return pa.table(
        {
            "place": columns[0],
            TIME: columns[1],
            partners.NUMBER: np.arange(first, first + len(of)),
            partners.STATUS: np.full(len(of), status, np.int8),
        }
    )


def span(found: pa.Table) -> tuple[int, int]:
    times = found[TIME].to_pylist()
    return min(times), max(times)


def numbers(found: pa.Table | None) -> list[int]:
    return [] if found is None else sorted(found[partners.NUMBER].to_pylist())


row = st.tuples(st.integers(0, 4), st.integers(0, 30))
calls = st.lists(st.lists(row, max_size=8) | st.integers(-1, 20), max_size=14)
blocks = st.sampled_from([1, 1_500, 7_000])


@examples(150)
@given(calls, st.integers(2, 4), blocks, st.lists(st.tuples(row, st.integers(0, 9)), max_size=4))
def test_what_is_not_over_is_found(
    made: list[Call], together: int, block: int, asked: list[tuple[Row, int]]
) -> None:
    store, index = Counting(), RowRuns.nothing()
    alive: dict[int, Row] = {}
    count = 0
    at, first = (np.array([ask[0][i] for ask in asked], np.int64) for i in range(2))
    last = first + np.array([ask[1] for ask in asked], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_runs, "_BLOCK_BYTES", block)
        patch.setattr(tiers, "TOGETHER", together)
        patch.setattr(tiers, "SMALL", 2)
        for call in made:
            held = opened(store, index)
            found = numbers(held.find(at, first, last))
            wanted = {
                number
                for number, (place, time) in alive.items()
                for k in range(len(at))
                if place == at[k] and first[k] <= time <= last[k]
            }
            assert wanted <= set(found) <= alive.keys()
            assert len(found) == len(set(found))
            if isinstance(call, int):
                held.forget(call)
                alive = {number: each for number, each in alive.items() if each[1] > call}
            else:
                held.append(rows(call, count))
                alive |= dict(enumerate(call, count))
                count += len(call)
            index = held.index()
            assert len(index) < 8 * together
        opened(store, index).forget(LONG_MAX)
    assert store.blobs == {}


@examples(150)
@given(made=calls, together=st.integers(2, 4), block=blocks, noted=st.booleans())
def test_what_is_due_is_told_once(
    made: list[Call], together: int, block: int, *, noted: bool
) -> None:
    """Rows of one place; of those with an even number it may be noted that they have met."""
    store, index = Counting(), RowRuns.nothing()
    alive: dict[int, int] = {}
    met: set[int] = set()
    notes, count = rows([]), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_runs, "_BLOCK_BYTES", block)
        patch.setattr(tiers, "TOGETHER", together)
        patch.setattr(tiers, "SMALL", 2)
        patch.setattr(row_runs, "_DUE_BLOCKS", 2)
        for call in [*made, LONG_MAX]:
            held = opened(store, index, keeps_met=False)
            waiting = [time for number, time in alive.items() if number not in met]
            assert not waiting or min(held.times_due) <= min(waiting)
            if isinstance(call, int):
                parts = [*held.take_due(call)]
                told = map(partners.without_notes, map(partners.settled, parts))
                due = {number for number, time in alive.items() if time <= call}
                found = [number for part in told for number in numbers(partners.waiting(part))]
                assert sorted(found) == sorted(due - met)
                bounds = [bound for part in parts for bound in span(part)]
                assert bounds == sorted(bounds)
                notes = notes.filter(pa.array(notes[TIME].to_numpy() > call))
                alive = {number: time for number, time in alive.items() if number not in due}
            else:
                new = rows([(0, time) for _, time in call], count)
                held.append(pa.concat_tables([new, notes]))
                met |= set(numbers(notes))
                alive |= {count + i: time for i, (_, time) in enumerate(call)}
                even = new[partners.NUMBER].to_numpy() % 2 == (0 if noted else 2)
                notes = partners.notes_of(new.filter(pa.array(even)), ["place", TIME])
                count += len(call)
            index = held.index()
    assert (store.blobs, alive) == ({}, {})


@examples(150)
@given(calls, st.integers(2, 4), blocks, st.booleans())
def test_what_is_taken_is_given_once(
    made: list[Call], together: int, block: int, anew: bool
) -> None:
    """A number as a call takes the rows whose numbers it divides."""
    store, index = Counting(), RowRuns.nothing()
    left: set[int] = set()
    count = 0
    at = np.arange(5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_runs, "_BLOCK_BYTES", block)
        patch.setattr(tiers, "TOGETHER", together)
        patch.setattr(tiers, "SMALL", 2)
        for call in [*made, 1]:
            held = RowRuns(store, "rows", index, RowKind(TIME, places))
            if isinstance(call, int):
                due = {number for number in left if number % max(call, 1) == 0}
                left -= due
                found = held.take(at, 0 * at, 0 * at + 30, partial(are_among, due))
                assert numbers(found) == sorted(due)
                assert held.taken + len(left) == len(held)
                if anew:
                    held.leave_out_taken(partial(are_among, left))
                    assert (held.taken, len(held)) == (0, len(left))
            else:
                held.append(rows(call, count))
                left |= {*range(count, count + len(call))}
                count += len(call)
            index = held.index()
    assert store.blobs == {}


def are_among(wanted: set[int], found: pa.Table) -> NDArray[np.bool_]:
    return np.isin(found[partners.NUMBER].to_numpy(), [*wanted])


def test_an_index_from_before_rows_were_taken() -> None:
    store = Counting()
    held = opened(store)
    held.append(rows([(1, 2), (3, 4)]))
    index = held.index().drop_columns(["taken"])
    again = opened(store, index)
    assert (again.taken, again.index()) == (0, held.index())


@pytest.mark.parametrize(("total", "touched"), [(100_000, 100), (5_000, 5_000)])
def test_cost_is_that_of_what_is_touched(total: int, touched: int) -> None:
    store, alone, rng = Counting(), Counting(), np.random.default_rng(3)

    def made(number: int, count: int) -> pa.Table:
        columns = {
            "place": rng.integers(0, 1 << 31, count),
            TIME: number * 1_000 + np.arange(count),
        }
        return pa.table({**columns, **{f"v{i}": rng.integers(0, 1 << 40, count) for i in range(4)}})

    held = opened(store)
    held.append(made(0, total))
    store.counts.clear()
    for number in range(1, 40):
        held = opened(store, held.index())
        asked = rng.integers(0, 1 << 31, touched)
        before = store.counts["bytes_read"]
        zeros = np.zeros(touched, np.int64)
        assert held.find(asked, zeros, zeros + LONG_MAX) is not None
        assert store.counts["bytes_read"] - before <= 16_000 * touched + 64_000
        came = made(number, touched)
        held.append(came)
        opened(alone).append(came)
        alone.blobs.clear()
    assert store.counts["bytes_written"] < 4 * alone.counts["bytes_written"]


def test_one_place_is_read_where_the_time_is() -> None:
    store = Counting()
    held = opened(store)
    held.append(rows([(7, time) for time in range(100_000)]))
    assert len(store.blobs) > 20
    held, before = opened(store, held.index()), store.counts["reads"]
    one = np.array([50_000])
    found = numbers(held.find(np.array([7]), one, one + 10))
    assert set(range(50_000, 50_011)) <= set(found)
    assert store.counts["reads"] - before <= 3  # the directory, and a block or two
    assert numbers(held.find(np.array([8]), one, one)) != found
    held.forget(99_998)
    held, before = opened(store, held.index()), store.counts["reads"]
    assert numbers(held.find(np.array([7]), one, one)) == []
    assert numbers(held.find(np.array([7]), one, one + 50_000)) == [99_999]
    held.forget(99_999)
    assert store.blobs == {}
