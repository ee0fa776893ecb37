"""Which device a task takes: the one it was granted, anew for every task of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_windows.errors import DeviceFailedError, DeviceMemoryError, DeviceUnavailableError
from gpu_windows.kernels import backend
from gpu_windows.kernels.backend import Grant, Task, visible_devices
from gpu_windows.kernels.cuda import session
from tests.kernels.pretend_session import session_of

VISIBLE = "CUDA_VISIBLE_DEVICES"


UUIDS = ["GPU-8932f937-aaaa", "GPU-44b0d1c2-bbbb"]


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (None, None),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("0,1", ("0", "1")),
        (" 3 , 1 ", ("3", "1")),
        ("2,-1,3", ("2",)),
        ("GPU-8932f937-aaaa,MIG-1", ("GPU-8932f937-aaaa", "MIG-1")),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(
    variable: str | None, expected: tuple[str, ...] | None
) -> None:
    assert visible_devices({} if variable is None else {VISIBLE: variable}) == expected


@pytest.mark.parametrize(
    ("variable", "address", "ordinal"),
    [
        (None, "0", 0),
        (None, "1", 1),
        ("0,1", "0", 0),
        ("0,1", "1", 1),
        ("3,2", "2", 1),
        ("3,2", "3", 0),
        (None, UUIDS[1], 1),
        ("0,1", "GPU-44B0D1C2", 1),
        (",".join(UUIDS), UUIDS[1], 1),
    ],
)
def test_an_address_is_a_place_among_the_visible_devices(
    variable: str | None, address: str, ordinal: int
) -> None:
    environment = {} if variable is None else {VISIBLE: variable}
    assert Task(Grant((address,))).ordinal(environment, lambda: UUIDS) == ordinal


@pytest.mark.parametrize(
    ("variable", "address"), [("0,1", "3"), (None, "2"), ("0,1", "GPU-"), (None, "GPU-ffff")]
)
def test_an_address_that_is_no_visible_device_is_refused(
    variable: str | None, address: str
) -> None:
    environment = {} if variable is None else {VISIBLE: variable}
    reason = Task(Grant((address,))).ordinal(environment, lambda: UUIDS)
    assert isinstance(reason, str)
    assert repr(address) in reason


def test_a_container_that_shows_one_device_shows_the_tasks() -> None:
    assert Task(Grant(("3",))).ordinal({}, lambda: UUIDS[:1]) == 0


# ---- a process with two pretended devices


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """The devices that kernels were told to use, with the share of each, in order."""
    found: list[tuple[int, float]] = []
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setattr(backend, "_Process", type("_Process", (), {"task": None, "failure": None}))
    monkeypatch.setattr(backend, "why_no_cuda", lambda: None)
    monkeypatch.setattr(session, "uuids", lambda: UUIDS)
    monkeypatch.setattr(session, "why_not_device", lambda _: None)
    monkeypatch.setattr(session, "use_device", lambda *chosen: found.append(chosen))
    return found


@pytest.fixture
def run_task(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a task of Spark that was granted some GPUs; return on what its kernels run."""
    glue = pytest.importorskip("gpu_windows.spark_glue.tasks.device")

    def run(*addresses: str, device: str = "auto", partition: int = 0, share: float = 1.0) -> str:
        gpu = {"gpu": SimpleNamespace(addresses=list(addresses))} if addresses else {}
        context = SimpleNamespace(resources=lambda: gpu, partitionId=lambda: partition)
        monkeypatch.setattr(glue.TaskContext, "get", lambda: context)
        glue.use_task_device(share)
        return backend.select(device).name

    return run


@pytest.mark.parametrize("variable", [None, "0,1", "4,5"])
def test_a_reused_worker_takes_the_next_tasks_device(
    used: list[Any],
    run_task: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
) -> None:
    if variable is not None:
        monkeypatch.setenv(VISIBLE, variable)
    names = visible_devices(os.environ) or ("0", "1")
    before = dict(os.environ)
    for place in (0, 1, 1, 0):
        assert run_task(names[place], share=0.25) == "cuda"
    assert used == [(0, 0.25), (1, 0.25), (1, 0.25), (0, 0.25)]
    assert dict(os.environ) == before


def test_a_task_that_was_granted_no_gpu_takes_none_by_itself(
    used: list[Any], run_task: Callable[..., str]
) -> None:
    assert run_task() == "cpu"
    assert "granted this task no GPU" in backend.select("auto").reason
    assert used == []


def test_a_task_that_must_use_a_gpu_takes_one_by_its_number(
    used: list[Any], run_task: Callable[..., str]
) -> None:
    for partition in range(3):
        assert run_task(device="cuda", partition=partition) == "cuda"
    assert [ordinal for ordinal, _ in used] == [0, 1, 0]
    assert {share for _, share in used} == {0.25}


def test_devices_named_for_the_process_are_granted_to_its_tasks(
    used: list[Any], run_task: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "0,1")
    assert [run_task(partition=number) for number in (5, 6)] == ["cuda", "cuda"]
    assert [ordinal for ordinal, _ in used] == [1, 0]


def test_an_empty_variable_is_no_device_whatever_was_granted(
    used: list[Any], run_task: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "")
    assert run_task("0") == "cpu"
    with pytest.raises(DeviceUnavailableError, match="CUDA_VISIBLE_DEVICES is empty"):
        run_task("0", device="cuda")
    assert used == []


def test_a_process_of_ones_own_takes_the_first_visible_device(used: list[Any]) -> None:
    assert backend.select("auto").name == "cuda"
    assert used == [(0, 1.0)]


def test_an_address_of_no_device_is_never_replaced(
    used: list[Any], run_task: Callable[..., str]
) -> None:
    assert run_task("7") == "cpu"
    with pytest.raises(DeviceUnavailableError, match="granted the GPU '7'"):
        run_task("7", device="cuda")
    assert used == []


def test_a_device_that_is_left_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(session._Device, "ordinal", 0)
    monkeypatch.setattr(session._Device, "share", 1.0)
    opened = {0: SimpleNamespace(release=lambda: given.append(0))}
    monkeypatch.setattr(session, "_sessions", opened)
    session.use_device(0, 0.5)
    assert given == []
    session.use_device(1, 0.5)
    assert given == [0]


@pytest.mark.parametrize(
    ("amount", "share"),
    [(None, 1.0), ("1", 1.0), ("2", 1.0), ("0.25", 0.25), ("0.3", 1 / 3), ("much", 1.0)],
)
def test_the_share_of_a_task_is_what_spark_grants(amount: str | None, share: float) -> None:
    glue = pytest.importorskip("gpu_windows.spark_glue.tasks.device")
    conf = SimpleNamespace(
        get=lambda name, _: amount if name == "spark.task.resource.gpu.amount" else None
    )
    assert glue.gpu_share(conf) == share


# ---- errors of the device


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("cudaErrorMemoryAllocation: out of memory", DeviceMemoryError),
        ("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", DeviceMemoryError),
        ("cudaErrorIllegalAddress: an illegal memory access was encountered", DeviceFailedError),
        ("[719] Call to cuMemcpyDtoH results in CUDA_ERROR_LAUNCH_FAILED", DeviceFailedError),
        ("CUDA_ERROR_INVALID_VALUE: invalid argument", RuntimeError),
    ],
)
@pytest.mark.usefixtures("used")
def test_errors_of_cuda_are_typed_by_what_may_come_after(
    monkeypatch: pytest.MonkeyPatch, message: str, kind: type[Exception]
) -> None:
    monkeypatch.setattr(session, "_session", lambda *_: session_of(None))
    with pytest.raises(kind) as raised, session.working():
        raise RuntimeError(message)
    assert type(raised.value) is kind
    broken = kind is DeviceFailedError
    assert (backend.device_failure() is not None) == broken
    assert backend.select("auto").name == ("cpu" if broken else "cuda")
    if broken:
        with pytest.raises(DeviceUnavailableError, match=r"LAUNCH_FAILED|IllegalAddress"):
            backend.select("cuda")


# ---- CUDA stays out of processes that need none


def test_a_query_on_the_cpu_imports_no_cuda() -> None:
    code = (
        "import sys, types\n"
        "sys.modules['cupy'] = types.ModuleType('cupy')\n"
        "import pyarrow as pa, gpu_windows as gw\n"
        "from gpu_windows.operators.device import begin_task\n"
        "begin_task(('0',), 1.0, 0)\n"
        "timed = gw.stream(pa.table({'ts': [1, 2], 'k': [1, 1], 'v': [1, 2]})).event_time('ts',"
        " gw.WatermarkStrategy.for_monotonous_timestamps())\n"
        "windows = timed.key_by('k').window(gw.TumblingEventTimeWindows.of('1 s'))\n"
        "print(windows.options(device='cpu').aggregate(n=gw.count())['n'].to_pylist())\n"
        "print([name for name in sys.modules if name.startswith('numba.cuda')])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[2]", "[]"]


_RETRIED = """
import os, sys
import pyarrow as pa
from pyspark.sql import SparkSession

log = sys.argv[1]

def work(batches):
    from contextlib import nullcontext
    from pyspark import TaskContext
    from gpu_windows.kernels import backend
    from gpu_windows.kernels.cuda import session

    attempt = TaskContext.get().attemptNumber()
    with open(log, "a") as file:
        file.write(f"{attempt} {os.getpid()} {backend.device_failure()}\\n")
    if attempt == 0 and TaskContext.get().stageId() == 1:
        class Device(nullcontext):
            def use(self): ...
        pretended = session.Session(None, Device(), Device(), Device, Device, 0, {})
        session._session = lambda *_: pretended
        with session.working():
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")
    yield from batches

spark = (
    SparkSession.builder.master("local[1,2]").config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF").config("spark.driver.host", "127.0.0.1").getOrCreate()
)
frame = spark.range(3, numPartitions=1)
for _ in range(3):
    print(frame.mapInArrow(work, frame.schema).count())
spark.stop()
"""


@pytest.mark.thorough
@pytest.mark.spark
def test_a_worker_whose_device_failed_ends_and_another_runs_the_task_again(tmp_path: Path) -> None:
    log = tmp_path / "attempts"
    run = subprocess.run(
        [sys.executable, "-c", _RETRIED, str(log)], capture_output=True, text=True, check=False
    )
    assert run.stdout.split() == ["3", "3", "3"], run.stderr
    first, failed, again, last = (line.split(" ", 2) for line in log.read_text().splitlines())
    assert [first[0], failed[0], again[0], last[0]] == ["0", "0", "1", "0"]
    assert first[1] == failed[1]  # Spark uses workers again,
    assert failed[1] != again[1] == last[1]  # but not this one
    assert again[2] == last[2] == "None"
