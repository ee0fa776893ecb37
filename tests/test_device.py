"""Where kernels run: per call, halved and then on the CPU when device memory runs out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Barrier, current_thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows import sides
from gpu_windows.errors import DeviceMemoryError, DeviceUnavailableError
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.operators import device
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.join_rows import JoinRows
from gpu_windows.operators.matching import Matching


@pytest.fixture
def pretend_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second CPU back end pass for a device."""
    cpu = select("cpu")
    pretended = replace(cpu, name="cuda", reason="a test")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended)


@dataclass(frozen=True)
class Rows:
    """The rows in [begin, end)."""

    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def halves(self) -> tuple[Rows, Rows]:
        """Return the first and the second half."""
        middle = (self.begin + self.end) // 2
        return Rows(self.begin, middle), Rows(middle, self.end)


def limited(rows: int) -> Any:
    """Return work that fits a device up to so many rows, and always fits the CPU."""

    def work(backend: Backend, piece: Rows) -> tuple[str, int, int]:
        if backend.name == "cuda" and len(piece) > rows:
            raise DeviceMemoryError("a batch must fit into device memory")
        return backend.name, piece.begin, piece.end

    return work


@pytest.mark.usefixtures("pretend_cuda")
def test_a_batch_that_does_not_fit_is_halved() -> None:
    kernels = Kernels("cuda")
    parts = kernels.each([Rows(0, 100_000)], limited(30_000))
    assert {name for name, _, _ in parts} == {"cuda"}
    assert [begin for _, begin, _ in parts] == [0, 25_000, 50_000, 75_000]
    assert parts[-1][2] == 100_000
    counted = kernels.counted()
    assert (counted.cuda_batches, counted.cpu_batches, counted.device_fallbacks) == (4, 0, 0)


@pytest.mark.usefixtures("pretend_cuda")
def test_at_last_the_cpu_takes_it_and_that_is_counted() -> None:
    kernels = Kernels("cuda")
    parts = kernels.each([Rows(0, 40_000)], limited(10))
    assert {name for name, _, _ in parts} == {"cpu"}
    assert sum(end - begin for _, begin, end in parts) == 40_000
    counted = kernels.counted()
    assert counted.device_fallbacks == counted.cpu_batches == len(parts)
    assert kernels.counted().cpu_batches == 0


@pytest.mark.usefixtures("pretend_cuda")
def test_auto_keeps_small_batches_off_the_device() -> None:
    kernels = Kernels("auto")
    assert kernels.run(100, lambda backend, _: backend.name) == "cpu"
    assert kernels.run(device.WORTH_ROWS, lambda backend, _: backend.name) == "cuda"
    assert [name for name, _, _ in kernels.each([Rows(0, 100)], limited(0))] == ["cpu"]


def test_cuda_without_a_device_is_refused() -> None:
    with pytest.raises(DeviceUnavailableError):
        Kernels("cuda")


def test_threads_work_at_several_pieces_and_keep_their_order() -> None:
    kernels = Kernels("cpu", threads=2)
    meeting = Barrier(2, timeout=60)

    def work(_: Backend, piece: Rows) -> tuple[int, str]:
        meeting.wait()  # passes only if two pieces are worked at
        return piece.begin, current_thread().name

    found = kernels.each((Rows(i, i + 1) for i in range(6)), work)
    assert [begin for begin, _ in found] == list(range(6))
    assert len({name for _, name in found}) == 2
    assert kernels.counted().cpu_batches == 6


def test_an_error_in_a_thread_is_raised() -> None:
    def work(_: Backend, piece: Rows) -> None:
        raise ValueError(f"piece {piece.begin}")

    with pytest.raises(ValueError, match="piece 0"):
        Kernels("cpu", threads=2).each([Rows(0, 1), Rows(1, 2)], work)


def full(*arguments: Any) -> Any:
    """Fail as a device does that has no room."""
    del arguments
    raise DeviceMemoryError("pairs must fit into device memory")


def test_pairs_that_do_not_fit_are_made_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = select("cpu")
    joins: Any = SimpleNamespace(**{**vars(cpu.joins), "expand_pairs": full})
    pretended = replace(cpu, name="cuda", reason="a test", joins=joins)
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended)
    monkeypatch.setattr(sides, "PAIRS", 7)
    left, right = (_rows(count) for count in (5, 8))
    kernels = Kernels("cuda")
    found = [*Matching(kernels, -2, 3).pairs(left, right)]
    pairs = [(int(i), int(j)) for chunk in found for i, j in zip(*chunk, strict=True)]
    assert pairs == [(i, j) for i in range(5) for j in range(8) if -2 <= j - i <= 3]
    counted = kernels.counted()
    assert (counted.cuda_batches, counted.cpu_batches, counted.device_fallbacks) == (1, 4, 4)


def _rows(count: int) -> JoinRows:
    """Return rows of one key, one a tick."""
    codes, ts = np.zeros(count, np.int64), np.arange(count)
    return JoinRows(pa.table({"ts": ts}), codes, ts, ts, np.zeros(count, np.bool_))
