"""Rows that wait for the watermark: their numbers, and what is written of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.pending_rows import NUMBER, PendingRows
from gpu_windows.rules import LONG_MAX


def _rows(*times: int) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64())})


def _pending(log: MemoryLog, next_number: int) -> PendingRows:
    log.reopen()
    return PendingRows(log, "pending", time="ts", next_number=next_number)


def _numbers(parts: Iterable[pa.Table]) -> list[int]:
    return [number for part in parts for number in part.column(NUMBER).to_pylist()]


def test_numbers_go_on_after_a_restart_also_those_of_rows_that_do_not_wait() -> None:
    log = MemoryLog()
    pending = _pending(log, 0)
    pending.append(pending.number(_rows(5, 7)))
    pending.number(_rows(1))  # it was late
    pending.append(pending.number(_rows(6)))
    again = _pending(log, pending.next_number)
    again.append(again.number(_rows(4)))
    assert len(again) == 4
    assert sorted(_numbers(again.take_due(6))) == [0, 3, 4]
    assert _numbers(again.take_due(LONG_MAX)) == [1]
    assert len(again) == 0


def test_what_the_end_of_time_takes_is_not_written() -> None:
    log = MemoryLog()
    pending = _pending(log, 0)
    pending.append(pending.number(_rows(5, 7)))
    assert len(pending) == 2
    assert _numbers(pending.take_due(LONG_MAX)) == [0, 1]
    assert [*pending.take_due(LONG_MAX)] == []
    log.reopen()
    assert log.table_names == []


def test_rows_between_two_times_wait_on() -> None:
    log = MemoryLog()
    pending = _pending(log, 0)
    assert pending.between(0, 9) is None
    pending.append(pending.number(_rows(5, 7, 9, 7)))
    for each in (pending, _pending(log, 4)):
        found = each.between(6, 8)
        assert found is not None
        assert sorted(_numbers([found])) == [1, 3]
        assert len(each) == 4
        assert each.first_times == [5]
