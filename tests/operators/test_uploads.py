"""Two batches in flight: columns of the next table go to the device while kernels work at this."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.kernels.backend import select
from gpu_windows.operators import device
from gpu_windows.operators.columns.device_table import UploadedTable, kernel_column
from gpu_windows.operators.uploads import columns_of_kernels, upload_ahead
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.options import Device, Options
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.operators.pretend_device import PretendDevice
from tests.planning.queries import query

ROWS = 1_000
#: Of the two columns that kernels take.
TABLE_BYTES = 2 * 8 * ROWS
#: Seconds after which a thread that waits for another has waited in vain.
PATIENCE = 20


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> PretendDevice:
    """A device that counts the bytes that arrays take."""
    made = PretendDevice(monkeypatch)
    cpu = select("cpu")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else made.backend)
    return made


SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])


def sums_on(where: Device) -> Plan:
    """Return the plan of sums by key."""
    asked = query(
        TumblingEventTimeWindows(10),
        SCHEMA,
        keys=("k",),
        aggregates={"total": Aggregate("sum", "value")},
        options=Options(device=where),
    )
    return plan(asked, bounded=True)


@pytest.fixture
def sums() -> Plan:
    """Sums on the device."""
    return sums_on("cuda")


def table(number: int, chunks: int = 2) -> pa.Table:
    """Return rows of which ``value`` is ``number``."""
    columns = {
        "k": pa.array([f"key {row % 3}" for row in range(ROWS)]),
        "ts": pa.array(np.arange(ROWS)),
        "value": pa.array(np.full(ROWS, number)),
    }
    whole = pa.table(columns)
    step = ROWS // chunks
    return pa.concat_tables([whole.slice(begin, step) for begin in range(0, ROWS, step)])


def numbers(tables: Any) -> list[int]:
    return [kernel_column(each, "value").values[0] for each in tables]


def test_the_next_table_is_on_the_device_before_it_is_asked_for(
    pretended: PretendDevice, sums: Plan
) -> None:
    tables = upload_ahead(sums, map(table, range(2)))
    first = next(tables)
    deadline = time.monotonic() + PATIENCE
    while pretended.held < 2 * TABLE_BYTES and time.monotonic() < deadline:
        time.sleep(0.001)
    assert pretended.held == 2 * TABLE_BYTES, "this one's columns and the next one's"
    assert numbers([first]) == [0]
    assert numbers(tables) == [1]


def test_the_source_is_read_by_the_thread_that_asks(pretended: PretendDevice, sums: Plan) -> None:
    """As a cursor of a database demands."""
    readers: list[threading.Thread] = []

    def source() -> Iterator[pa.Table]:
        for number in range(3):
            readers.append(threading.current_thread())
            yield table(number)

    assert numbers(upload_ahead(sums, source())) == [0, 1, 2]
    assert set(readers) == {threading.current_thread()}
    assert pretended.held == 0


def test_no_more_than_two_tables_are_on_the_device(pretended: PretendDevice, sums: Plan) -> None:
    tables: Any = upload_ahead(sums, map(table, range(10)))
    assert [kernel_column(each, "value").values.on_device[0] for each in tables] == [*range(10)]
    assert pretended.most <= 2 * TABLE_BYTES
    assert pretended.held == 0


def test_columns_that_kernels_take_are_uploaded_and_no_others(
    pretended: PretendDevice, sums: Plan
) -> None:
    del pretended
    found: Any
    (found,) = upload_ahead(sums, [table(7)])
    assert isinstance(found, UploadedTable)
    assert columns_of_kernels(sums) == ("ts", "value")
    for name in ("k", "value"):
        assert found.column(name).equals(table(7).column(name))
    assert len(found) == found.num_rows == ROWS


def test_what_the_host_looks_at_is_its_own(pretended: PretendDevice, sums: Plan) -> None:
    tables = upload_ahead(sums, [table(7)])
    values: Any = kernel_column(next(tables), "value").values
    assert values.on_device is not None
    assert values.sum() == 7 * ROWS
    calls = pretended.calls
    assert pretended.backend.release()
    assert (values.on_device, pretended.held, pretended.calls) == (None, 0, calls)
    assert values.sum() == 7 * ROWS
    assert pretended.backend.to_device(values)[0] == 7, "it goes there again"
    tables.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "some",
    [lambda found: found.slice(10, 5), lambda found: found.filter(pa.array(np.arange(ROWS) < 5))],
)
def test_some_rows_are_those_of_the_host(
    pretended: PretendDevice, sums: Plan, some: Callable[[Any], pa.Table]
) -> None:
    del pretended
    (found,) = upload_ahead(sums, [table(7)])
    assert some(found).equals(some(table(7)))


@pytest.mark.parametrize("fails_at", range(4))
def test_a_table_without_room_goes_when_it_is_used(
    pretended: PretendDevice, sums: Plan, fails_at: int
) -> None:
    """Whichever of two columns of two tables it is."""
    pretended.fails_at = fails_at
    tables: list[Any] = [*upload_ahead(sums, map(table, range(2)))]
    uploaded = [isinstance(each, UploadedTable) for each in tables]
    assert uploaded == [fails_at // 2 != 0, fails_at // 2 != 1]
    assert pretended.held == 0
    plain = tables[uploaded.index(False)]
    assert plain.equals(table(uploaded.index(False)))


def test_tables_that_the_cpu_will_take_stay_there(
    pretended: PretendDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "probe", lambda chosen: chosen)
    assert [*upload_ahead(sums_on("auto"), [table(3)])] == [table(3)]
    assert pretended.calls == 0


def test_tables_that_are_wanted_no_more_stay_on_the_host(
    pretended: PretendDevice, sums: Plan
) -> None:
    del pretended
    answers = iter([True, False, False])
    tables = upload_ahead(sums, map(table, range(3)), wanted=lambda: next(answers))
    assert [isinstance(each, UploadedTable) for each in tables] == [True, False, False]


def test_an_error_of_the_source_is_raised_and_leaves_nothing(
    pretended: PretendDevice, sums: Plan
) -> None:
    def source() -> Iterator[pa.Table]:
        yield from map(table, range(2))
        raise ZeroDivisionError("of the source")

    tables = upload_ahead(sums, source())
    assert numbers([next(tables)]) == [0]
    with pytest.raises(ZeroDivisionError, match="of the source"):
        next(tables)
    assert pretended.held == 0
    assert not _threads()


def test_who_stops_early_leaves_no_thread(pretended: PretendDevice, sums: Plan) -> None:
    tables: Any = upload_ahead(sums, map(table, range(3)))
    next(tables)
    tables.close()
    assert not _threads()
    assert pretended.held == 0


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("upload")]
