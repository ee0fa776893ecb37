"""Steps as Spark's Python workers get them: a worker that cannot load one says what to do.

A step is pickled into bytes, which a small function carries. Spark pickles that function by value,
so every Python can load it; it then loads the step. Where a module is missing, its error is the
one that ends the query, not a ``ModuleNotFoundError`` from the middle of Spark's code.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from gpu_windows.errors import GpuWindowsError, QueryError
from gpu_windows.monitoring.logs import current_fields, log_fields, log_to_stderr
from gpu_windows.spark_glue.session.worker_python import WORKER_MODULES, python_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Batches = Iterator[pa.RecordBatch]
#: Takes the batches of a partition and yields those of the result.
Step = Callable[[Batches], Iterable[pa.RecordBatch]]

#: Numbers the tasks of this process.
_tasks = count(1)
#: Number of the last task after which modules are frozen: later ones import little.
_LAST = 64


def map_in_workers(frame: DataFrame, step: Step, schema: StructType) -> DataFrame:
    """Return the output of a step over the batches of a DataFrame, computed by Python workers.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    step : Step
    schema : pyspark.sql.types.StructType
        Of the result.

    Raises
    ------
    QueryError
        If the step cannot be pickled, because a user's function refers to what exists in this
        process only: a session, a lock, an open file.
    """
    task = WorkerTask(step, current_fields())
    return frame.mapInArrow(portable(task, frame.sparkSession), schema)


def portable(step: Callable[..., Any], session: SparkSession) -> PortableStep:
    """Return a callable as Spark is to pickle it.

    Raises
    ------
    QueryError
        If it cannot be pickled.
    """
    return PortableStep(step, _pickle(step), python_of(session))


@dataclass(frozen=True)
class WorkerTask:
    """A step in a Spark task: it logs with the driver's fields, and its errors are short.

    They come without this package's traceback, those of users' functions too: Spark ends its
    message with the error, which has the user's part of the traceback.
    """

    step: Step
    fields: Mapping[str, object] = field(default_factory=dict)

    @property
    def __name__(self) -> str:
        """The name of the step."""
        return _name(self.step)

    def __call__(self, batches: Batches) -> Batches:
        """Run in a Spark task."""
        freeze_modules()
        try:
            if self.fields:
                log_to_stderr()
            with log_fields(**self.fields):
                yield from self.step(batches)
        except GpuWindowsError as error:
            raise error.with_traceback(None) from None


def freeze_modules() -> None:
    """Exclude all current objects from later garbage collections (`gc.freeze`).

    Spark reuses workers and collects garbage between two tasks. That visits every object of every
    module, which takes longer than most tasks of a stream: 70 ms with pandas, PyArrow and Numba.

    Done at the first task of a worker, the second, fourth and so on up to `_LAST`, because modules
    are imported, and kernels loaded, when they are needed. Frozen objects are still freed with
    their last reference, but cycles of them are not.
    """
    if TaskContext.get() is None:
        return  # this process is not Spark's
    number = next(_tasks)
    if number <= _LAST and number & (number - 1) == 0:
        gc.freeze()


@dataclass(frozen=True)
class PortableStep:
    """A step that becomes bytes and a small function when Spark pickles it.

    Unpickling calls the function, which loads the step.
    """

    step: Callable[..., Any]
    blob: bytes
    fix: str

    @property
    def __name__(self) -> str:
        """The name that Spark's plans show."""
        return _name(self.step)

    def __call__(self, *arguments: Any) -> Any:
        """Run the step."""
        return self.step(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the function that loads the step, and its arguments."""
        return _loader(), (self.blob, WORKER_MODULES, self.fix)


def _loader() -> Callable[..., Any]:
    """Return a function that Spark pickles by value: it names nothing of this module."""

    def load(blob: bytes, modules: tuple[str, ...], fix: str) -> Any:
        import sys
        from importlib.util import find_spec
        from socket import gethostname

        from pyspark.serializers import CloudPickleSerializer

        def error(rule: str) -> Exception:
            kind = type("WorkerPythonError", (ImportError,), {"__module__": f"{modules[0]}.errors"})
            found = f"the Python of this worker, {sys.executable} on {gethostname()}, does not find"
            return kind(f"{found} {rule}")  # type: ignore[no-any-return]

        if missing := [name for name in modules if find_spec(name) is None]:
            raise error(f"{', '.join(missing)}: install it there, or set PYSPARK_PYTHON to {fix}")
        try:
            return CloudPickleSerializer().loads(blob)  # type: ignore[no-untyped-call]
        except ModuleNotFoundError as missing_module:
            rule = (
                f"the module {missing_module.name!r}, which the query needs: install it there, or"
                " send it with spark-submit --py-files or spark.addArtifact(FILE, pyfile=True)"
            )
            raise error(rule) from None

    return load


def check_picklable(step: object) -> None:
    """Refuse a step that cannot be sent to workers, before anything runs.

    Raises
    ------
    QueryError
        See `map_in_workers`.
    """
    _pickle(step)


def _pickle(step: object) -> bytes:
    try:
        blob: bytes = cloudpickle.dumps(step)  # type: ignore[no-untyped-call]
    except Exception as error:
        rule = (
            "functions are sent to Spark's Python workers, so they can refer to no session,"
            f" DataFrame, lock, connection or open file: create what they need in open(); {error}"
        )
        raise QueryError(f"{rule} ({'.'.join(_find_unpicklable(step))})") from error
    return blob


def _find_unpicklable(value: object) -> tuple[str, ...]:
    """Return the innermost object that cannot be pickled: its owner's name, and its own."""
    path: tuple[str, ...] = (_name(value),)
    inner, seen = _find_inner(value), {id(value)}
    while inner is not None and id(inner[1]) not in seen:
        path, value = (_name(value), inner[0]), inner[1]
        seen.add(id(value))
        inner = _find_inner(value)
    return path


def _find_inner(value: object) -> tuple[str, object] | None:
    """Return the first part of a value that cannot be pickled, with its name."""
    for name, part in _parts(value).items():
        try:
            cloudpickle.dumps(part)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - any pickling may raise any
            return name, part
    return None


def _parts(value: object) -> Mapping[str, object]:
    if inspect.isfunction(value):
        names = inspect.getclosurevars(value)
        return {**names.nonlocals, **names.globals}
    if inspect.ismethod(value):
        return {value.__name__: value.__self__}
    if isinstance(value, Mapping):
        return {repr(key): part for key, part in value.items()}
    if isinstance(value, list | tuple):
        return {f"[{number}]": part for number, part in enumerate(value)}
    return getattr(value, "__dict__", {})


def _name(value: object) -> str:
    return getattr(value, "__name__", type(value).__name__)
