"""Settings of a session: for fast transfer of rows to and from Python workers, and of shuffles."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, overload

from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.spark_glue.session.gpus import gpu_settings
from gpu_windows.spark_glue.session.local_session import get_session
from gpu_windows.spark_glue.session.running_session import configure_session
from gpu_windows.spark_glue.session.sockets import socket_settings
from gpu_windows.spark_glue.session.worker_python import use_this_python, use_this_python_in
from gpu_windows.vocabulary.options import MAX_SHARDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The rows, and the bytes, of the Arrow batches between the JVM and Python.
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

#: From this limit on Spark does not measure a batch. Below it measures the batch after every row,
#: which takes longer than writing the row: three columns of 10 million rows crossed in 2.9 s with
#: the defaults of Spark 4.3, in 1.3 s without measuring (4.0.5: 3.7 and 1.1 s; two cores).
UNMEASURED = 2**31 - 1
#: Bytes of fragments in a batch at most, and minimum and maximum bytes of a fragment. Arrow's
#: buffers double, so more than 1 GiB in a batch fail; a worker holds a batch twice.
_BATCH_BYTES, _MIN_FRAGMENT, _MAX_FRAGMENT = 1 << 28, 1 << 12, 1 << 24
#: Rows of a batch beyond which more gain little.
ENOUGH_ROWS = 16_384
#: Rows of a batch: enough, and few enough for fragments of 8 KiB.
ROWS = 32_768

#: The number of partitions of a shuffle.
_PARTITIONS = "spark.sql.shuffle.partitions"
#: Settings of how many tasks run at a time, and how many bytes of files one of them reads.
_PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")
_TASK_BYTES = "spark.sql.files.maxPartitionBytes"
#: Rows of a batch where nothing is set.
_SPARKS_ROWS = "10000"

SETTINGS = {
    ARROW_ROWS: str(ROWS),
    ARROW_BYTES: str(UNMEASURED),
}


class Conf(Protocol):
    """The settings of a session."""

    def get(self, key: str, default: str | None) -> str | None:
        """Return the value of a setting."""


@overload
def configure(session: SparkSession, *, rows: int = ROWS, gpu: int = False) -> SparkSession: ...


@overload
def configure(
    session: SparkSession.Builder, *, rows: int = ROWS, gpu: int = False
) -> SparkSession.Builder: ...


def configure(
    session: SparkSession.Builder | SparkSession, *, rows: int = ROWS, gpu: int = False
) -> SparkSession.Builder | SparkSession:
    """Give a session the settings for fast transfer of rows to and from Python workers.

    Spark then does not measure the bytes of Arrow batches: by default it does so after every row,
    and a transfer takes two to three times as long. So only the number of rows bounds a batch, in
    this package and in other Python code of the session: take fewer if they are very wide (32,768
    rows of 10 KB are 330 MB; more than 1 GB of a column fail). Many more make streams slower,
    because fragments become smaller the more of them may be in a batch.

    Where the builder names a local master, workers are run by the Python that runs this, as
    `session` has it, and on Linux the JVM reaches them by Unix domain sockets, which saves 40 ms a
    task from Spark 4.1 on (unless the builder names plugins: workers of RAPIDS know TCP alone).
    Where it names none yet, sockets are left to you: docs/operations.md.

    A session that exists gets what can still be changed. A warning names what an application reads
    only when it starts, and says how to have it.

    Parameters
    ----------
    session : pyspark.sql.SparkSession or pyspark.sql.SparkSession.Builder
        A session, or ``SparkSession.builder``. Settings of the same names that it had are replaced.
    rows : int
        Rows of a batch at most.
    gpu : bool or int
        Of a cluster whose nodes have GPUs: every executor has one, which this number of tasks share
        at a time; True: one task. False leaves GPUs to other settings. The cluster must know its
        GPUs (docs/gpus.md); ``local[...]`` assigns none.

    Returns
    -------
    pyspark.sql.SparkSession or pyspark.sql.SparkSession.Builder
        The same one.

    Raises
    ------
    QueryError
        If it is neither a session nor a builder.
    InvalidOptionError
        If ``gpu`` is not a number of tasks, or the application of a session has other settings of
        GPUs.
    WorkerPythonError
        If workers of a session on this machine run a Python without this package, which
        ``PYSPARK_PYTHON`` names.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> spark = gw.configure(
    ...     SparkSession.builder.master("local[*]")
    ... ).getOrCreate()  # doctest: +SKIP
    >>> spark = gw.configure(spark)  # doctest: +SKIP
    """
    settings, gpus = {**SETTINGS, ARROW_ROWS: str(rows)}, gpu_settings(gpu)
    if _is_session(session):
        return configure_session(session, settings, gpus)
    if not _is_builder(session):
        rule = "configure takes a SparkSession, or SparkSession.builder"
        raise QueryError(rule, value=type(session).__name__)
    use_this_python_in(session)
    sockets = {} if gpu else socket_settings(getattr(session, "_options", {}))
    return session.config(map={**settings, **gpus, **sockets})


def _is_session(session: object) -> TypeGuard[SparkSession]:
    """Return whether it is a session, also one of Spark Connect, which has a class of its own."""
    return hasattr(session, "conf") and hasattr(session, "version")


def _is_builder(session: object) -> TypeGuard[SparkSession.Builder]:
    return hasattr(session, "config")


def session(
    app_name: str = "gpu_windows",
    *,
    time_zone: str = "UTC",
    rows: int = ROWS,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session with the settings of `configure`, or give them to the existing one.

    On this machine workers are run by the Python that runs this, unless ``PYSPARK_PYTHON`` or a
    cluster's settings say otherwise. A warning names what an existing session cannot be given.

    Parameters
    ----------
    app_name : str
        Shown in Spark's user interface.
    time_zone : str
        Of the session: how TIMESTAMPs are shown; results do not depend on it.
    rows : int
        Rows of an Arrow batch at most.
    config : mapping of str to str, optional
        More settings of Spark.

    Returns
    -------
    pyspark.sql.SparkSession

    Raises
    ------
    SparkUnavailableError
        If there is no Java 17 or newer.

    Examples
    --------
    >>> spark = gw.session("clicks", config={"spark.sql.shuffle.partitions": "8"})  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    given = {"spark.sql.session.timeZone": time_zone, **(config or {})}
    if SparkSession.getActiveSession() is not None:  # perhaps of a stream, which has its own
        running = SparkSession.builder.getOrCreate()
        return configure_session(running, {**SETTINGS, ARROW_ROWS: str(rows), **given}, {})
    use_this_python(config or {})
    builder = configure(SparkSession.builder.appName(app_name), rows=rows)
    sockets = socket_settings({"spark.master": "local", **(config or {})})
    settings: dict[str, Any] = {**sockets, **given}
    return get_session(builder.config(map=settings))


def crosses_quickly(conf: Conf) -> bool:
    """Return whether Spark does not measure batches and makes them of enough rows."""
    rows = _number(conf.get(ARROW_ROWS, None))
    enough = rows is not None and (rows <= 0 or rows >= ENOUGH_ROWS)
    return enough and byte_count(conf.get(ARROW_BYTES, None)) >= UNMEASURED


def hadoop_setting(conf: Conf) -> Callable[[str], str | None]:
    """Return a function that finds a Hadoop setting in a session; it returns None if it is unset.

    Parameters
    ----------
    conf : Conf
        Of the session. Spark's own file systems are set up by the same names.
    """

    def get(name: str) -> str | None:
        return conf.get(name, None) or conf.get(f"spark.hadoop.{name}", None)

    return get


def fragment_bytes(conf: Conf) -> int:
    """Return the number of bytes of a fragment, which is a row to Spark.

    Spark sends up to `ARROW_ROWS` rows at once, whatever their size if `ARROW_BYTES` is
    `UNMEASURED`.

    Raises
    ------
    UnsupportedQueryError
        If neither bounds the size of a batch.
    """
    rows = _number(conf.get(ARROW_ROWS, _SPARKS_ROWS)) or 0
    if rows > 0 and rows * _MIN_FRAGMENT <= 2 * _BATCH_BYTES:
        return min(max(_BATCH_BYTES // rows, _MIN_FRAGMENT), _MAX_FRAGMENT)
    if 0 < byte_count(conf.get(ARROW_BYTES, None)) < UNMEASURED:
        return _MIN_FRAGMENT << 4
    max_rows = 2 * _BATCH_BYTES // _MIN_FRAGMENT
    rule = f"{ARROW_ROWS} must be in 1..{max_rows}: it bounds the rows that are sent at once"
    raise UnsupportedQueryError(rule, value=rows)


def default_shards(session: SparkSession) -> int:
    """Return how many shards a batch query has: four for each of Spark's shuffle partitions.

    Shards are small integers: with one per partition, their hashes would leave partitions empty.
    """
    return min(4 * shuffle_partitions(session), MAX_SHARDS)


def shuffle_partitions(session: SparkSession) -> int:
    """Return the number of partitions of a shuffle."""
    return int(session.conf.get(_PARTITIONS) or 200)


def tasks_at_a_time(session: SparkSession) -> int:
    """Return how many tasks that read files run at a time, as Spark takes it."""
    for name in _PARALLELISM:
        value = session.conf.get(name, None)
        if value is not None:
            return int(value)
    context = getattr(session, "sparkContext", None)  # Spark Connect has none
    return int(context.defaultParallelism) if context is not None else 200


def max_task_bytes(session: SparkSession) -> int:
    """Return how many bytes of files a task reads at most."""
    return byte_count(session.conf.get(_TASK_BYTES))


_SIZE = re.compile(r"(\d+)([bkmgtp]?)(?:i?b)?", re.IGNORECASE)


def byte_count(value: str | None) -> int:
    """Return the bytes of a size of Spark (``67108864b``, ``64MB``); 0 if it is not one."""
    found = _SIZE.fullmatch((value or "").strip())
    if found is None:
        return 0
    power = "bkmgtp".index(found[2].lower() or "b")
    return int(found[1]) << 10 * power


def _number(value: str | None) -> int | None:
    text = (value or "").strip()
    return int(text) if text.lstrip("-").isdigit() else None
