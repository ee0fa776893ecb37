"""Steps arrive in workers as they are; a worker that lacks a module says what to do."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.serializers import CloudPickleSerializer

import gpu_windows as gw
from gpu_windows.errors import QueryError
from gpu_windows.spark_glue.tasks.worker_step import portable
from gpu_windows.spark_glue.tasks.workers import RunShards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A worker that lacks a module: FILE MODULE.
WORKER = """
import importlib.util, sys
from pathlib import Path
from pyspark.serializers import CloudPickleSerializer
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == sys.argv[2] else find(name)
try:
    CloudPickleSerializer().loads(Path(sys.argv[1]).read_bytes())
except ImportError as error:
    print(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
    assert "gpu_windows" not in sys.modules
"""

CONNECT: Any = SimpleNamespace()
CLASSIC: Any = SimpleNamespace(sparkContext=object())


def sent(step: Any, session: Any) -> bytes:
    blob: bytes = CloudPickleSerializer().dumps(portable(step, session))  # type: ignore[no-untyped-call]
    return blob


def said_by_worker(blob: bytes, missing: str, folder: Path) -> str:
    (folder / "step").write_bytes(blob)
    command = [sys.executable, "-c", WORKER, str(folder / "step"), missing]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_step_arrives_as_it_was() -> None:
    blob = sent(RunShards, CLASSIC)
    assert CloudPickleSerializer().loads(blob) is RunShards  # type: ignore[no-untyped-call]
    assert portable(len, CLASSIC)([1, 2]) == 2


@pytest.mark.parametrize("missing", ["gpu_windows", "numba"])
def test_a_worker_without_the_package(missing: str, tmp_path: Path) -> None:
    says = said_by_worker(sent(RunShards, CLASSIC), missing, tmp_path)
    assert says.startswith("gpu_windows.errors.WorkerPythonError: the Python of this worker, ")
    assert f"does not find {missing}: install it there, or set PYSPARK_PYTHON" in says
    assert f"the driver's is {sys.executable}" in says
    says = said_by_worker(sent(RunShards, CONNECT), missing, tmp_path)
    assert "where the server of Spark Connect is started" in says


def test_a_worker_without_a_module_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "of_a_user.py").write_text("def step(batches): return batches")
    monkeypatch.syspath_prepend(tmp_path / "driver")
    step = importlib.import_module("of_a_user").step
    try:
        says = said_by_worker(sent(step, CLASSIC), "", tmp_path)
    finally:
        del sys.modules["of_a_user"]
    assert "does not find the module 'of_a_user', which the query needs" in says
    assert "--py-files" in says


class Locked(gw.functions.ProcessWindowFunction):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def process(self, key: Any, context: Any, rows: Any) -> list[dict[str, int]]:
        return [{"n": len(rows)}]


class Divides(gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> list[dict[str, float]]:
        return [{"n": divide(rows["v"][0].as_py())}]


def divide(by: float) -> float:
    return 1 / by


#: The first line of the error of the function above, and the next, of the user's traceback.
FAILED = (
    "gpu_windows.errors.FunctionFailedError: in Divides.process, at key k='a', the global window:"
    " ZeroDivisionError: division by zero"
    f" (test_worker_step.py, line {divide.__code__.co_firstlineno + 1})\n"
    f'  File "{__file__}", line {Divides.process.__code__.co_firstlineno + 1}, in process\n'
)


def counted(rows: Any) -> Any:
    return gw.stream(rows).key_by("k").count_window(1).with_outputs()


def test_a_function_that_fails_is_what_spark_says(spark: SparkSession) -> None:
    """Nothing but Spark's header comes before the error, and nothing of this package after it."""
    rows = spark.sql("SELECT 'a' AS k, 0 AS v")
    with pytest.raises(PythonException) as error:
        counted(rows).process(Divides(), ["v"], output="n DOUBLE").result().collect()
    text = str(error.value)
    assert FAILED in text
    before, after = text.split(FAILED)
    assert len(before.splitlines()) <= 5
    assert "gpu_windows" not in after


@pytest.mark.thorough
def test_a_function_that_fails_is_the_first_thing_that_a_stream_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("SELECT 'a' AS k, 0 AS v").write.parquet(str(tmp_path / "rows"))
    rows = spark.readStream.schema("k STRING, v INT").parquet(str(tmp_path / "rows"))
    outputs = counted(rows).process(Divides(), ["v"], output="n DOUBLE")
    query = gw.write_stream(outputs, str(tmp_path / "out"), str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException) as error:
        query.awaitTermination()
    text = str(error.value)
    assert FAILED in text
    assert "File " not in text.split(FAILED)[0]


def test_what_cannot_be_sent_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    rule = r"sent to Spark's Python workers.*cannot pickle '_thread.lock' object \(Locked\.lock\)"
    rows = spark.sql("SELECT 1 AS k, TIMESTAMP '2026-01-01' AS ts")
    with pytest.raises(QueryError, match=rule):
        gw.stream(rows).key_by("k").count_window(2).process(Locked(), ["k"], output="n LONG")
    (tmp_path / "rows").mkdir()
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    counts = gw.stream(stream).key_by("k").count_window(2).with_outputs()
    outputs = counts.process(Locked(), ["k"], output="n LONG")
    with pytest.raises(QueryError, match=rule):
        gw.write_stream(outputs, str(tmp_path / "out"), str(tmp_path / "checkpoint"))


def test_the_part_that_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()

    def guarded(rows: Any) -> Any:
        with lock:
            return rows

    with pytest.raises(QueryError, match=r"\(guarded\.lock\)"):
        portable([{"a": guarded}], CLASSIC)  # type: ignore[arg-type]
