"""A standalone cluster on loopback, out of the PySpark that is installed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import psutil
import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
#: What the main program of an executor is called.
_EXECUTOR = "CoarseGrainedExecutorBackend"
#: Seconds in which the master and a worker must be there, and how long one that ends may take.
_READY, _GONE = 60.0, 10.0
#: JVMs of some seconds: the best code is not worth its compilation.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def free_port() -> int:
    """Return a port of loopback that nobody has."""
    with socket.socket() as asked:
        asked.bind((HOST, 0))
        port: int = asked.getsockname()[1]
        return port


@dataclass(frozen=True)
class Daemon:
    """The master or a worker: the first process of a session, which its executors stay in."""

    process: psutil.Popen
    log: Path
    web_port: int

    def members(self) -> Iterator[psutil.Process]:
        """Yield the processes of its session, also those that outlived it."""
        for process in psutil.process_iter():
            with suppress(OSError):
                if os.getsid(process.pid) == self.process.pid and _is_alive(process):
                    yield process

    def executors(self) -> list[psutil.Process]:
        """Return the executors that it has started and that run, the eldest first."""
        return [process for process in self.members() if _is_executor(process)]


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(_EXECUTOR in word for word in process.cmdline())
    return False


class Cluster:
    """A master and workers, which are there when the block begins, and gone when it ends.

    Parameters
    ----------
    folder : Path
        For logs and what executors write; made if it was missing, and kept.
    workers : int
        How many there are at first.
    cores : int
        Of a worker: as many tasks run on it at a time.
    memory : str
        Of a worker for its executors.
    environment : mapping of str to str, optional
        Variables of daemons, and so of executors.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 3,
        cores: int = 1,
        memory: str = "1g",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._first, self._cores, self._memory = workers, cores, memory
        # workers see this checkout only where an application says so
        ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._environment = {**ours, **_SPARK, **(environment or {})}
        self._port = free_port()
        self._master: Daemon | None = None
        self._started: list[Daemon] = []
        self._workers: list[Daemon] = []

    @property
    def url(self) -> str:
        """``spark://...``, for ``spark.master``."""
        return f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        """Start the master, then the workers, and wait until it knows them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._master = self._start("master.Master", ("--port", str(self._port)))
            wait(self._is_up, "the master is not up", self._logs)
            for _ in range(self._first):
                self._add_worker()
            self.wait_for_workers()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process that was started here, by its number."""
        self._end()

    def add_worker(self) -> None:
        """Start one more worker, and wait until the master knows it."""
        self._add_worker()
        self.wait_for_workers()

    def wait_for_workers(self) -> None:
        """Wait until the master knows as many workers as there are."""
        wait(lambda: self.registered() == len(self._workers), "a worker is missing", self._logs)

    def registered(self) -> int:
        """Return how many workers the master takes for alive."""
        return sum(worker["state"] == "ALIVE" for worker in self._page()["workers"])

    def executors(self) -> list[psutil.Process]:
        """Return the executors that run."""
        return [process for worker in self._workers for process in worker.executors()]

    def kill_executor(self, rng: random.Random) -> bool:
        """Kill an executor; return whether there was one. Its worker starts another."""
        found = self.executors()
        if found:
            rng.choice(found).kill()
        return bool(found)

    def kill_worker(self, rng: random.Random) -> bool:
        """Kill a worker that has an executor, which then ends too, and start another worker."""
        found = [worker for worker in self._workers if worker.executors()]
        if found:
            victim = rng.choice(found)
            self._workers.remove(victim)
            victim.process.kill()
            victim.process.wait()
            self._add_worker()
        return bool(found)

    def _add_worker(self) -> None:
        work = self._folder / f"work-{len(self._started)}"
        work.mkdir()
        size = ("--cores", str(self._cores), "--memory", self._memory, "--work-dir", str(work))
        # of a host of its own: Spark runs no task twice at a time on one
        host = f"127.0.0.{1 + len(self._started)}"
        self._workers.append(self._start("worker.Worker", (*size, self.url), host))

    def _start(self, name: str, arguments: tuple[str, ...], host: str = HOST) -> Daemon:
        web_port = free_port()
        log = self._folder / f"{len(self._started)}-{name.partition('.')[0]}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        shared = ("--host", host, "--webui-port", str(web_port))
        with log.open("ab") as file:
            process = psutil.Popen(
                [*command, *shared, *arguments],
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                env=self._environment | {"SPARK_LOCAL_IP": host},
                cwd=self._folder,
                start_new_session=True,
            )
        self._started.append(Daemon(process, log, web_port))
        return self._started[-1]

    def _is_up(self) -> bool:
        with suppress(OSError, ValueError):  # its first pages are no JSON
            return bool(self._page()["status"] == "ALIVE")
        return False

    def _page(self) -> dict[str, Any]:
        assert self._master is not None
        with urlopen(f"http://{HOST}:{self._master.web_port}/json/", timeout=10) as page:
            found: dict[str, Any] = json.load(page)
            return found

    def _logs(self) -> str:
        return "\n".join(each.log.read_text(errors="replace")[-2_000:] for each in self._started)

    def _end(self) -> None:
        end(self._started)


def end(daemons: Sequence[Daemon]) -> None:
    """End every process of their sessions, by its number; kill what does not listen."""
    last = time.monotonic() + _GONE
    for number in (signal.SIGTERM, signal.SIGKILL):
        while found := [process for each in daemons for process in each.members()]:
            for process in found:
                with suppress(psutil.Error):
                    process.send_signal(number)
            _, alive = psutil.wait_procs(found, 1.0)
            if number == signal.SIGTERM and (not alive or time.monotonic() > last):
                break


_SPARK = {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_DAEMON_MEMORY": "512m",
    "SPARK_DAEMON_JAVA_OPTS": JAVA,
    # executors that are killed again and again are no reason to end an application
    "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
}


def wait(until: Callable[[], bool], what: str, logs: Callable[[], str]) -> None:
    """Wait until something is so; ``what``: what is wrong if it is not so in time."""
    end = time.monotonic() + _READY
    while not until():
        if time.monotonic() > end:
            raise AssertionError(f"{what} after {_READY} s:\n{logs()}")
        time.sleep(0.1)
