"""Rows that wait for the watermark: their numbers, and what is written of them."""

from __future__ import annotations

import pyarrow as pa

from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.operators.state.waiting import NUMBER, WaitingRows
from gpu_windows.rules import LONG_MAX

_KIND = "waiting"


def _rows(*times: int) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64())})


def _of(store: MemoryStore, index: pa.Table, following: int) -> WaitingRows:
    return WaitingRows(store, _KIND, index, time="ts", following=following)


def _numbers(parts: list[pa.Table]) -> list[int]:
    return [number for part in parts for number in part.column(NUMBER).to_pylist()]


def test_numbers_go_on_after_a_restart_also_those_of_rows_that_do_not_wait() -> None:
    store = MemoryStore()
    waiting = _of(store, WaitingRows.nothing(), 0)
    waiting.append(waiting.numbered(_rows(5, 7)))
    waiting.numbered(_rows(1))  # it was late
    waiting.append(waiting.numbered(_rows(6)))
    waiting.flush()

    again = _of(store, waiting.index(), waiting.following)
    again.append(again.numbered(_rows(4)))
    assert len(again) == 4
    assert sorted(_numbers(again.take_due(6))) == [0, 3, 4]
    assert _numbers(again.take_due(LONG_MAX)) == [1]
    assert len(again) == 0


def test_what_the_end_of_time_takes_is_not_written() -> None:
    store = MemoryStore()
    waiting = _of(store, WaitingRows.nothing(), 0)
    waiting.append(waiting.numbered(_rows(5, 7)))
    assert len(waiting) == 2
    assert _numbers(waiting.take_due(LONG_MAX)) == [0, 1]
    assert len(waiting.index()) == 0
    assert waiting.take_due(LONG_MAX) == []


def test_rows_between_two_times_wait_on() -> None:
    waiting = _of(MemoryStore(), WaitingRows.nothing(), 0)
    assert waiting.between(0, 9) is None
    waiting.append(waiting.numbered(_rows(5, 7, 9, 7)))
    found = waiting.between(6, 8)
    assert found is not None
    assert sorted(_numbers([found])) == [1, 3]
    assert len(waiting) == 4
    assert waiting.times_due == [5]
