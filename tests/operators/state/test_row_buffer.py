"""Rows in a log by place and time: what is found is what was appended and has not expired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.joins import match_flags
from gpu_windows.operators.joins.stored_side import buffer_spec
from gpu_windows.operators.state import merge_input
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.operators.state.counting import Counting, CountingFiles, reopened
from tests.operators.state.tight import Constants, constants, with_constants

Ints: TypeAlias = NDArray[np.int64]
#: Place and time of a row.
Row = tuple[int, int]
#: Rows that are appended, or a time up to which rows expire.
Call = list[Row] | int


def places(rows: pa.Table) -> Ints:
    values: Ints = rows["place"].to_numpy()
    return values


def rows(of: Sequence[Row], first: int = 0, status: int = match_flags.UNMATCHED) -> pa.Table:
    """Return rows with numbers from ``first`` on."""
    columns = np.array(of, np.int64).reshape(-1, 2).T
    return pa.table(
        {
            "place": columns[0],
            TIME: columns[1],
            match_flags.NUMBER: np.arange(first, first + len(of)),
            match_flags.STATUS: np.full(len(of), status, np.int8),
        }
    )


def numbers(table: pa.Table | None) -> list[int]:
    return [] if table is None else sorted(table[match_flags.NUMBER].to_pylist())


def written(log: StateLog) -> StateLog:
    """Write what was left; return the state with its live files alone."""
    log.finish(uuid4().hex)
    return reopened(log)


row = st.tuples(st.integers(0, 4), st.integers(0, 30))
calls = st.lists(st.lists(row, max_size=8) | st.integers(-1, 20), max_size=14)
#: How often a state file is written: after so many calls.
every = st.integers(1, 3)
asks = st.lists(st.tuples(row, st.integers(0, 9)), max_size=4)


@examples(200)
@given(calls, asks, every, constants(), st.booleans())
def test_rows_of_places_are_found(
    made: list[Call],
    asked: list[tuple[Row, int]],
    often: int,
    values: Constants,
    adapts: bool,
) -> None:
    log, kind = StateLog(CountingFiles()), BufferSpec(TIME, places, adapts=adapts)
    alive: dict[int, Row] = {}
    count = 0
    at, first = (np.array([ask[0][i] for ask in asked], np.int64) for i in range(2))
    last = first + np.array([ask[1] for ask in asked], np.int64)
    with with_constants(values):
        buffer = RowBuffer(log, "rows", kind)
        for number, call in enumerate([*made, LONG_MAX]):
            found = numbers(buffer.find(at, first, last))
            wanted = {
                number
                for number, (place, time) in alive.items()
                for k in range(len(at))
                if place == at[k] and first[k] <= time <= last[k]
            }
            assert wanted <= set(found) <= alive.keys()
            assert len(found) == len(set(found))
            if isinstance(call, int):
                buffer.forget(call)
                alive = {number: each for number, each in alive.items() if each[1] > call}
            else:
                buffer.append(rows(call, count))
                alive |= dict(enumerate(call, count))
                count += len(call)
            assert len(buffer) >= len(alive)
            if number % often == 0:
                log = written(log)
                buffer = RowBuffer(log, "rows", kind)
    assert len(buffer) == 0


@examples(200)
@given(calls, st.tuples(st.integers(0, 30), st.integers(0, 9)), every, constants())
def test_rows_of_one_place_are_read_in_order_of_time(
    made: list[Call], asked: tuple[int, int], often: int, values: Constants
) -> None:
    """What is due is taken once, between two times all is found, times are known of what waits."""
    log, kind = StateLog(CountingFiles()), BufferSpec(TIME, no_prefix, in_order=True)
    drop_matched: dict[int, int] = {}
    count, (first, length) = 0, asked
    with with_constants(values):
        buffer = RowBuffer(log, "rows", kind)
        for number, call in enumerate([*made, LONG_MAX]):
            found = numbers(buffer.between(first, first + length))
            assert found == sorted(
                n for n, t in drop_matched.items() if first <= t <= first + length
            )
            assert not drop_matched or min(buffer.first_times) <= min(drop_matched.values())
            assert not drop_matched or max(buffer.last_times) >= max(drop_matched.values())
            if isinstance(call, int):
                parts = [part for part in buffer.take_due(call) if len(part)]
                due = {number for number, time in drop_matched.items() if time <= call}
                assert sorted(n for part in parts for n in numbers(part)) == sorted(due)
                bounds = [bound for part in parts for bound in span(part)]
                assert bounds == sorted(bounds)
                drop_matched = {n: time for n, time in drop_matched.items() if n not in due}
            else:
                buffer.append(rows([(0, time) for _, time in call], count))
                drop_matched |= {count + i: time for i, (_, time) in enumerate(call)}
                count += len(call)
            if number % often == 0:
                log = written(log)
                buffer = RowBuffer(log, "rows", kind)
    assert len(buffer) == 0


def span(part: pa.Table) -> tuple[int, int]:
    times = part[TIME].to_pylist()
    return min(times), max(times)


@examples(200)
@given(made=calls, values=constants(), marks_some=st.booleans())
def test_rows_that_have_met_are_left_out(
    made: list[Call], values: Constants, *, marks_some: bool
) -> None:
    """Of rows with an even number a later call may note that they have met."""
    log, kind = StateLog(CountingFiles()), buffer_spec(no_prefix, keeps_matched=False)
    alive: dict[int, int] = {}
    matched: set[int] = set()
    markers, count = rows([]), 0
    with with_constants(values):
        for call in [*made, LONG_MAX]:
            buffer = RowBuffer(log, "rows", kind)
            if isinstance(call, int):
                parts = map(match_flags.resolve_markers, buffer.take_due(call))
                left = map(match_flags.drop_matched, map(match_flags.drop_markers, parts))
                due = {number for number, time in alive.items() if time <= call}
                assert sorted(n for part in left for n in numbers(part)) == sorted(due - matched)
                markers = markers.filter(pa.array(markers[TIME].to_numpy() > call))
                alive = {number: time for number, time in alive.items() if number not in due}
            else:
                new = rows([(0, time) for _, time in call], count)
                buffer.append(pa.concat_tables([new, markers]))
                matched |= set(numbers(markers))
                alive |= {count + i: time for i, (_, time) in enumerate(call)}
                is_even = new[match_flags.NUMBER].to_numpy() % 2 == (0 if marks_some else 2)
                markers = match_flags.make_markers(new.filter(pa.array(is_even)), ["place", TIME])
                count += len(call)
            log = written(log)
    assert log.table_names == []


@examples(200)
@given(calls, every, constants(), st.booleans())
def test_rows_are_taken_once(
    made: list[Call],
    often: int,
    values: Constants,
    writes_again: bool,
) -> None:
    """A number as a call takes the rows whose numbers it divides."""
    log, kind = StateLog(CountingFiles()), BufferSpec(TIME, places)
    left: set[int] = set()
    count, at = 0, np.arange(5)
    with with_constants(values):
        buffer = RowBuffer(log, "rows", kind)
        for number, call in enumerate([*made, 1]):
            if isinstance(call, int):
                due = {number for number in left if number % max(call, 1) == 0}
                left -= due
                found = buffer.take(at, 0 * at, 0 * at + 30, partial(are_among, due))
                assert numbers(found) == sorted(due)
                if writes_again:
                    buffer.purge_except(partial(are_among, left))
                    log = written(log)
                    buffer = RowBuffer(log, "rows", kind)
                    assert (buffer.consumed_count, len(buffer)) == (0, len(left))
            else:
                buffer.append(rows(call, count))
                left |= {*range(count, count + len(call))}
                count += len(call)
            assert buffer.consumed_count + len(left) == len(buffer)
            if number % often == 0:
                log = written(log)
                buffer = RowBuffer(log, "rows", kind)
    assert len(buffer) == 0


def are_among(wanted: set[int], table: pa.Table) -> NDArray[np.bool_]:
    return np.isin(table[match_flags.NUMBER].to_numpy(), [*wanted])


def test_a_column_may_be_null_later() -> None:
    log, kind = Counting(), BufferSpec(TIME, no_prefix, in_order=True)
    for call in range(20):
        new = rows([(0, call)], call)
        at = new.schema.get_field_index("place")
        field = new.schema.field("place").with_nullable(call % 2 == 0)
        RowBuffer(log, "rows", kind).append(new.cast(new.schema.set(at, field)))
        log.reopen()
    assert numbers(RowBuffer(log, "rows", kind).between(0, 20)) == [*range(20)]


def test_rows_that_have_expired_are_dropped_unread() -> None:
    log, kind = Counting(), BufferSpec(TIME, no_prefix, in_order=True)
    for call in range(6):
        RowBuffer(log, "rows", kind).append(rows([(0, 2 * call), (0, 2 * call + 1)], 2 * call))
        log.reopen()
    log.forget_counts()
    RowBuffer(log, "rows", kind).forget(7)
    log.reopen()
    assert log.counts["reads"] == 0
    assert [run.min_time for run in log.runs("rows")] == [8, 10]
    assert numbers(RowBuffer(log, "rows", kind).between(0, 99)) == [8, 9, 10, 11]


def wide(number: int, count: int, rng: np.random.Generator) -> pa.Table:
    """Return rows of random places and later times, of some 50 bytes."""
    columns = {
        "place": rng.integers(0, 1 << 31, count),
        TIME: number * 1_000 + np.arange(count),
    }
    return pa.table({**columns, **{f"v{i}": rng.integers(0, 1 << 40, count) for i in range(4)}})


@pytest.mark.parametrize(("total", "touched"), [(100_000, 100), (5_000, 5_000)])
def test_a_call_costs_as_much_as_it_touches(total: int, touched: int) -> None:
    log, rng, kind = Counting(), np.random.default_rng(3), BufferSpec(TIME, places)
    RowBuffer(log, "rows", kind).append(wide(0, total, rng))
    log.reopen()
    first = log.counts["bytes_written"]
    alone = 0
    for number in range(1, 40):
        buffer = RowBuffer(log, "rows", kind)
        asked, before = rng.integers(0, 1 << 31, touched), log.counts["bytes_read"]
        zeros = np.zeros(touched, np.int64)
        assert buffer.find(asked, zeros, zeros + LONG_MAX) is not None
        blocks = 16_000 * touched * len(log.runs("rows"))
        assert log.counts["bytes_read"] - before <= min(blocks + 64_000, log.live_size)
        new = wide(number, touched, rng)
        buffer.append(new)
        log.reopen()
        apart = Counting()
        RowBuffer(apart, "rows", kind).append(new)
        apart.reopen()
        alone += apart.counts["bytes_written"]
    assert log.counts["bytes_written"] - first < 4 * alone + first


def test_one_place_is_read_where_the_time_is() -> None:
    log, kind, place = Counting(), BufferSpec(TIME, places), np.array([7])
    RowBuffer(log, "rows", kind).append(rows([(7, time) for time in range(100_000)]))
    log.reopen()
    assert len(log.block_index(log.runs("rows")[0])) > 20
    log.reopen()
    log.forget_counts()
    buffer, time = RowBuffer(log, "rows", kind), np.array([50_000])
    found = numbers(buffer.find(place, time, time + 10))
    assert set(range(50_000, 50_011)) <= set(found)
    assert log.counts["reads"] <= 2  # the directory, and blocks that follow one another
    assert log.counts["bytes_read"] < log.live_size / 5
    assert numbers(buffer.find(np.array([8]), time, time)) != found
    buffer.forget(99_998)
    log.reopen()
    buffer = RowBuffer(log, "rows", kind)
    assert numbers(buffer.find(place, time, time)) == []
    assert numbers(buffer.find(place, time, time + 50_000)) == [99_999]
    buffer.forget(99_999)
    assert log.table_names == []


@examples(100)
@given(calls, constants())
def test_numbers_are_those_of_the_runs(made: list[Call], values: Constants) -> None:
    """Also where rows of one time become one as their runs are merged."""

    def compact(rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        del are_oldest
        _, first = np.unique(rows[TIME].to_numpy(), return_index=True)
        return rows.take(pa.array(np.sort(first)))

    log = StateLog(CountingFiles())
    kind = BufferSpec(TIME, no_prefix, compact, in_order=True)
    with with_constants(values):
        for call in made:
            buffer = RowBuffer(log, "rows", kind)
            if isinstance(call, int):
                [*buffer.take_due(call)]
            else:
                buffer.append(rows(call))
            log = written(log)
            runs, numbers = log.runs("rows"), log.all_numbers("rows")
            assert numbers.get("rows", 0) == sum(run.rows for run in runs)
            assert numbers.get("start") == min((run.live_from for run in runs), default=None)
            newest = log.newest
            RowBuffer(log, "rows", kind)
            assert log.finish("again") == newest  # nothing has changed


def test_notes_are_no_rows() -> None:
    log, kind = Counting(), buffer_spec(no_prefix, keeps_matched=True)
    new = rows([(0, 1), (0, 2), (0, 3)])
    RowBuffer(log, "rows", kind).append(new)
    log.reopen()
    buffer = RowBuffer(log, "rows", kind)
    buffer.append(match_flags.make_markers(new.slice(0, 2), ["place", TIME]))
    assert len(buffer) == 3
    log.reopen()
    assert log.numbers("rows", ["rows"]) == [3]


@pytest.mark.parametrize("last", [7, LONG_MAX])
def test_rows_of_one_time_are_merged_in_parts(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """However many rows have one time, a merge holds some of them, and keeps their order."""
    monkeypatch.setattr(merge_input, "_PART_BYTES", 1 << 20)
    log, kind = StateLog(CountingFiles()), BufferSpec(TIME, no_prefix, in_order=True)
    sizes: list[int] = []

    def compact(rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        assert not are_oldest or len(rows) == len(rows.filter(pa.compute.field(TIME) < 7))
        sizes.append(rows.nbytes)
        return rows

    rng, count = np.random.default_rng(1), 2_000
    for call in range(9):
        buffer = RowBuffer(log, "rows", replace(kind, compact=compact))
        times = pa.array(np.full(count, last) if call else np.arange(count) % 7)
        numbers = pa.array(np.arange(call * count, (call + 1) * count))
        texts = pa.array([rng.bytes(500) for _ in range(count)])
        buffer.append(pa.table([times, numbers, texts], names=[TIME, match_flags.NUMBER, "text"]))
        log = written(log)
    found = RowBuffer(log, "rows", kind).between(last, last)
    assert found is not None
    assert found[match_flags.NUMBER].to_pylist() == [*range(count, 9 * count)]
    assert len(sizes) >= 8
    assert max(sizes) < 2 << 20
