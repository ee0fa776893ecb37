"""Where kernels run: per call, halved and then on the CPU when device memory runs out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Barrier, current_thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import (
    DeviceMemoryError,
    DeviceUnavailableError,
    UnsupportedQueryError,
)
from gpu_windows.kernels import backend
from gpu_windows.kernels.backend import Backend, select
from gpu_windows.operators import device
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.device import MAX_FALLBACKS, Kernels
from gpu_windows.operators.joins.matching import Matching
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.planning.plan import Strategy, explain
from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Device, Options
from gpu_windows.vocabulary.triggers import CountTrigger, EarlyAndLateTrigger
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.operators.pretend_device import PretendDevice
from tests.operators.slices.count_windows import count_window
from tests.planning.queries import query


@pytest.fixture
def pretend_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second CPU back end pass for a device."""
    cpu = select("cpu")
    pretended = replace(cpu, name="cuda", reason="a test")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended)
    monkeypatch.setattr(device, "probe", lambda chosen: chosen)


@dataclass(frozen=True)
class Rows:
    """The rows in [begin, end)."""

    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def slice(self, begin: int, length: int) -> Rows:
        """Return consecutive rows."""
        return Rows(self.begin + begin, self.begin + begin + length)


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
    counted = kernels.take_counters()
    assert (counted.cuda_batches, counted.cpu_batches, counted.device_fallbacks) == (4, 0, 0)


@pytest.mark.usefixtures("pretend_cuda")
def test_at_last_the_cpu_takes_it_and_that_is_counted() -> None:
    kernels = Kernels("cuda")
    parts = kernels.each([Rows(0, 40_000)], limited(10))
    assert {name for name, _, _ in parts} == {"cpu"}
    assert sum(end - begin for _, begin, end in parts) == 40_000
    counted = kernels.take_counters()
    assert counted.device_fallbacks == counted.cpu_batches == len(parts)
    assert kernels.take_counters().cpu_batches == 0


@pytest.mark.usefixtures("pretend_cuda")
def test_after_some_failures_the_rest_of_the_task_is_the_cpus(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend._Process, "task", backend.Task(backend.Grant(("0",))))
    tried: list[int] = []

    def work(backend: Backend, piece: Rows) -> str:
        if backend.name == "cuda":
            tried.append(len(piece))
            raise DeviceMemoryError("a batch must fit into device memory")
        return backend.name

    kernels = Kernels("auto", threads=2)
    kernels.each([Rows(0, device.MIN_DEVICE_ROWS)], work)
    assert 0 < len(tried) <= 2 + MAX_FALLBACKS  # halved twice, from 65,536 to 16,384 rows
    assert "the rest of this task runs on the CPU" in caplog.text
    tried.clear()
    for another in (kernels, Kernels("cuda")):  # of the same task
        another.take_counters()
        another.each([Rows(0, 100_000), Rows(0, 70_000)], work)
        another.run(80_000, lambda backend, _: work(backend, Rows(0, 80_000)))
        counted = another.take_counters()
        assert counted.cuda_batches == 0
        assert counted.device_fallbacks == counted.cpu_batches == 3
    kernels.each([Rows(0, 10)], work)
    assert kernels.take_counters().device_fallbacks == 0  # the CPU's in any case
    assert tried == []
    monkeypatch.setattr(backend._Process, "task", backend.Task(backend.Grant(("0",))))
    Kernels("cuda").run(80_000, lambda backend, _: work(backend, Rows(0, 80_000)))
    assert tried == [80_000]  # the next task tries again


@pytest.mark.usefixtures("pretend_cuda")
def test_a_size_that_did_not_fit_is_not_tried_again() -> None:
    sizes: list[int] = []

    def work(backend: Backend, piece: Rows) -> str:
        sizes.append(len(piece))
        if len(piece) > 60_000:
            raise DeviceMemoryError("a batch must fit into device memory")
        return backend.name

    pieces = [Rows(0, 100_000), Rows(0, 100_000), Rows(0, 40_000)]
    assert set(Kernels("cuda").each(pieces, work)) == {"cuda"}
    assert sizes == [100_000, *[50_000] * 4, 40_000]


# ---- a device that holds its memory

TUMBLING = TumblingEventTimeWindows(1_000)


def process(assigner: WindowAssigner | None, rows: int) -> tuple[list[Emission], pa.Table]:
    """Give an operator one batch on the device; return what came of it, then its results."""
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "key": pa.array(rng.integers(0, 50, rows)).cast(pa.string()),
            "part": pa.array(np.zeros(rows, np.int32)),
            "ts": np.sort(rng.integers(0, 100_000, rows)),
            "i": rng.integers(-(2**40), 2**40, rows),
        }
    )
    aggregates = {"n": gw.count(), "total": gw.sum("i"), "top": gw.max("i")}
    if assigner is None:
        made = count_window(7, 3, aggregates=aggregates, schema=table.schema)
    else:
        made = query(assigner, table.schema, aggregates=aggregates)
    planned = plan(made, bounded=True)
    operator = build_operator(planned, device="cuda")
    emissions = list(operator.process(table.select(planned.input_columns)))
    emissions += operator.advance_watermark(LONG_MAX)
    return emissions, pa.concat_tables(emission.results for emission in emissions)


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> PretendDevice:
    """A device that holds memory, and that operators take."""
    pretended, cpu = PretendDevice(monkeypatch), select("cpu")
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended.backend)
    monkeypatch.setattr(device, "probe", lambda chosen: chosen)
    return pretended


def test_a_batch_of_120_percent_of_the_memory_is_done_in_two_halves(
    holding: PretendDevice, caplog: pytest.LogCaptureFixture
) -> None:
    whole, expected = process(TUMBLING, 100_000)
    assert (whole[0].counters.cuda_batches, holding.held) == (1, 0)
    holding.limit = int(holding.most / 1.2)
    halves, results = process(TUMBLING, 100_000)
    counted = halves[0].counters
    assert (counted.cuda_batches, counted.cpu_batches, counted.device_fallbacks) == (2, 0, 0)
    # to encode their keys, and to group them
    assert caplog.text.count("100000 rows do not fit device memory") == 2
    assert holding.held == 0
    assert results.equals(expected)


@pytest.mark.parametrize(
    "assigner",
    [TUMBLING, EventTimeSessionWindows(40), None],
    ids=["slices", "sessions", "counts"],
)
def test_wherever_memory_runs_out_the_results_are_the_same(
    holding: PretendDevice, assigner: WindowAssigner | None
) -> None:
    expected = process(assigner, 300)[1]
    calls = holding.calls
    assert calls > 4
    taken_over = []
    for number in range(calls):
        holding.calls, holding.fails_at = 0, number
        emissions, results = process(assigner, 300)
        assert results.equals(expected), f"out of memory in call {number}"
        taken_over.append(sum(emission.counters.device_fallbacks for emission in emissions))
    assert taken_over[0] == 1
    assert set(taken_over) <= {0, 1}  # 0: what was kept made room, and the call ran again


def test_what_is_kept_makes_room_for_a_call(holding: PretendDevice) -> None:
    def work(backend: Backend, _: Any) -> Any:
        return backend.keep(backend.to_device(np.arange(1_000)))

    kernels = Kernels("cuda")
    holding.limit = 2_500 * 8
    first, second, third = (kernels.run(1_000, work) for _ in range(3))
    assert [kept.on_device is None for kept in (first, second, third)] == [True, True, False]
    assert first.tolist() == third.tolist() == list(range(1_000))
    counted = kernels.take_counters()
    assert (counted.cuda_batches, counted.device_fallbacks) == (3, 0)


@pytest.mark.usefixtures("pretend_cuda")
def test_auto_keeps_small_batches_off_the_device() -> None:
    kernels = Kernels("auto")
    assert kernels.run(100, lambda backend, _: backend.name) == "cpu"
    assert kernels.run(device.MIN_DEVICE_ROWS, lambda backend, _: backend.name) == "cuda"
    assert [name for name, _, _ in kernels.each([Rows(0, 100)], limited(0))] == ["cpu"]


@pytest.mark.usefixtures("pretend_cuda")
@pytest.mark.parametrize("asked", ["auto", "cuda"])
def test_windows_without_a_kernel_of_a_device_run_on_the_cpu(asked: Device) -> None:
    trigger = EarlyAndLateTrigger.of(early=CountTrigger(5))
    planned = plan(query(TUMBLING, trigger=trigger), bounded=True)
    assert (planned.strategy, planned.calls_kernels) == (Strategy.BUFFER, False)
    assert "device    cpu: no kernel of a device runs it" in explain(planned)
    kernels = build_operator(planned, device=asked)._kernels  # type: ignore[attr-defined]
    assert kernels.run(device.MIN_DEVICE_ROWS, lambda backend, _: backend.name) == "cpu"


def test_the_rule_names_what_no_kernel_of_a_device_runs() -> None:
    made = query(TUMBLING, trigger=CountTrigger(5), options=Options(device="cuda"))
    with pytest.raises(UnsupportedQueryError, match=r"no kernel of a device runs .*the trigger"):
        plan(made, bounded=True)
    reference = query(TUMBLING, options=Options(device="cuda", engine="reference"))
    with pytest.raises(UnsupportedQueryError, match=r"no kernel of a device runs .*reference"):
        plan(reference, bounded=True)
    keyed = gw.stream(pa.table({"k": ["a"]})).key_by("k")
    with pytest.raises(UnsupportedQueryError, match=r"device runs it .*Silent"):
        keyed.process(Silent(), output="n INT", device="cuda")


class Silent(gw.functions.KeyedProcessFunction):
    """Returns no rows."""

    def process_element(self, row: Any, context: gw.typing.KeyedContext) -> Any:
        del row, context
        return []


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
    assert kernels.take_counters().cpu_batches == 6


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
    without: Any = SimpleNamespace(**{**vars(cpu.joins), "expand_pairs": full})
    pretended = replace(cpu, name="cuda", reason="a test", joins=without)
    monkeypatch.setattr(device, "select", lambda name: cpu if name == "cpu" else pretended)
    monkeypatch.setattr(device, "probe", lambda chosen: chosen)
    monkeypatch.setattr("gpu_windows.operators.joins.pairs.PAIRS", 7)
    left, right = (_rows(count) for count in (5, 8))
    kernels = Kernels("cuda")
    found = [*Matching(kernels, -2, 3).find_pairs(left, right)]
    pairs = [(int(i), int(j)) for chunk in found for i, j in zip(*chunk, strict=True)]
    assert pairs == [(i, j) for i in range(5) for j in range(8) if -2 <= j - i <= 3]
    counted = kernels.take_counters()
    assert (counted.cuda_batches, counted.cpu_batches, counted.device_fallbacks) == (1, 4, 4)


def _rows(count: int) -> JoinRows:
    """Return rows of one key, one a tick."""
    codes, ts = np.zeros(count, np.int64), np.arange(count)
    matched = np.zeros(count, np.bool_)
    return JoinRows(pa.table({"ts": ts}), codes, ts, ts, matched, select("cpu").joins.sort)
