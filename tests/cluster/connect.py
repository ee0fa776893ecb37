"""A server of Spark Connect whose executors are those of a cluster."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.cluster.applications import SHARED, settings
from tests.cluster.shipping import JOB, told_by
from tests.cluster.standalone import HOST, SPARK_HOME, Cluster, Daemon, end, free_port, wait


@contextmanager
def served(cluster: Cluster, folder: Path) -> Iterator[str]:
    """Run a server as ``start-connect-server.sh`` does; give the address for clients."""
    port = free_port()
    made = settings(cluster, folder / "events", SHARED)
    made |= {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [str(SPARK_HOME / "sbin" / "start-connect-server.sh")]
    for name, value in made.items():
        command += ["--conf", f"{name}={value}"]
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # for functions of micro-batches
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOG_DIR": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_PID_DIR": str(folder),
    }
    log = folder / "server.log"
    with log.open("wb") as file:
        process = psutil.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    try:
        wait(lambda: _listens(port), "the server is not up", lambda: log.read_text()[-4_000:])
        yield f"sc://{HOST}:{port}"
    finally:
        end([Daemon(process, log, port)])


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((HOST, port)) == 0


def run_job(remote: str) -> dict[str, Any]:
    """Run `tests.cluster.job` as a client; return what it has printed."""
    environment = {"SPARK_REMOTE": remote, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, str(JOB)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return told_by(run)
