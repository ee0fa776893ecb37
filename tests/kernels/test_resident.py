"""Arrays that stay on the device behave like NumPy's, and are moved no more than they must."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.operators.pretend_device import PretendDevice

VALUES = np.array([3, -1, 4, 1, -5])


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> PretendDevice:
    """A device that counts what goes there."""
    return PretendDevice(monkeypatch)


def kept(device: PretendDevice, values: Any = VALUES) -> Any:
    """Return values as a kernel's result that is kept."""
    return device.backend.keep(device.backend.to_device(values))


def test_it_goes_to_kernels_without_a_copy(holding: PretendDevice) -> None:
    resident = kept(holding)
    calls = holding.calls
    assert holding.backend.to_device(resident) is resident.on_device
    assert holding.backend.remembering().to_device(resident) is resident.on_device
    assert holding.backend.to_host(resident).tolist() == VALUES.tolist()
    assert holding.calls == calls


def test_whatever_is_done_to_it_is_done_to_numpys_copy(holding: PretendDevice) -> None:
    resident = kept(holding)
    assert (len(resident), resident.dtype, resident.nbytes) == (5, np.int64, 40)
    assert resident[[0, 2]].tolist() == [3, 4]
    assert resident[resident > 0].tolist() == [3, 4, 1]
    assert (resident // 2 - 1).tolist() == (VALUES // 2 - 1).tolist()
    assert (1 + resident).tolist() == (1 + VALUES).tolist()
    assert (resident.min(), resident.max(initial=9), resident.astype(np.int8).itemsize) == (
        -5,
        9,
        1,
    )
    assert (
        np.lexsort((resident, resident < 0)).tolist() == np.lexsort((VALUES, VALUES < 0)).tolist()
    )
    assert np.where(resident > 0, resident, 0).tolist() == [3, 0, 4, 1, 0]
    assert np.bincount(kept(holding, np.array([1, 1])), minlength=3).tolist() == [0, 2, 0]
    assert np.asarray(resident).tolist() == VALUES.tolist()
    assert pa.array(resident).equals(pa.array(VALUES))
    assert pa.table({"a": resident}).column("a").to_pylist() == VALUES.tolist()
    with pytest.raises(TypeError):
        resident[0] = 1
    with pytest.raises(AttributeError, match="_nothing"):
        _ = resident._nothing


def test_residents_are_put_together_on_the_device(holding: PretendDevice) -> None:
    both: Any = np.concatenate([kept(holding), kept(holding, VALUES[:2])])
    assert both.on_device is not None
    assert both.tolist() == [*VALUES.tolist(), 3, -1]
    mixed = np.concatenate([kept(holding), VALUES[:2]])
    assert isinstance(mixed, np.ndarray)
    assert mixed.tolist() == both.tolist()


def test_without_room_they_are_put_together_on_the_host(holding: PretendDevice) -> None:
    parts = kept(holding), kept(holding)
    holding.limit = holding.held
    both = np.concatenate(parts)
    assert isinstance(both, np.ndarray)
    assert both.tolist() == 2 * VALUES.tolist()


def test_all_leave_the_device_at_once(holding: PretendDevice) -> None:
    assert not holding.backend.release()
    first, second = kept(holding), kept(holding, VALUES[:3])
    assert holding.held == 64
    assert holding.backend.release()
    assert (holding.held, first.on_device, second.tolist()) == (0, None, [3, -1, 4])
    assert not holding.backend.release()
    assert holding.backend.to_device(first).tolist() == VALUES.tolist()
    assert np.concatenate([first, second]).tolist() == [*VALUES.tolist(), 3, -1, 4]


def test_nobody_holds_one_that_is_not_used(holding: PretendDevice) -> None:
    resident = kept(holding)
    del resident
    assert (holding.held, holding.backend.release()) == (0, False)


def test_on_cpu_a_result_is_what_it_is() -> None:
    from gpu_windows.kernels.backend import select

    cpu = select("cpu")
    assert cpu.keep(VALUES) is VALUES
    assert not cpu.release()
    assert cpu.take(VALUES, np.array([4, 0])).tolist() == [-5, 3]


def test_it_is_read_only(holding: PretendDevice) -> None:
    resident = kept(holding)
    with pytest.raises(TypeError, match="read only"):
        resident += 1
    with pytest.raises(TypeError, match="read only"):
        np.add(VALUES, 1, out=resident)
    assert not kept(holding, np.array([0]))
    assert kept(holding, np.array([2]))


def test_threads_may_keep_and_release_at_once(holding: PretendDevice) -> None:
    failed: list[BaseException] = []
    ended = time.monotonic() + 1

    def work(use: Callable[[], object]) -> None:
        try:
            while time.monotonic() < ended:
                use()
        except BaseException as error:  # noqa: BLE001 - it is looked at below
            failed.append(error)

    shared = [kept(holding) for _ in range(20)]

    def look() -> None:
        for resident in [kept(holding), *shared]:
            assert holding.backend.to_device(resident).tolist() == VALUES.tolist()

    uses = (look, look, holding.backend.release)
    threads = [threading.Thread(target=work, args=(use,)) for use in uses]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
