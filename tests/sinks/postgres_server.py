"""A PostgreSQL server of one's own on loopback, with nothing in it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest


def binaries() -> Path | None:
    """Return the folder of the newest server that is installed."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    return Path(on_path).parent if on_path else found[-1].parent if found else None


def _version(initdb: Path) -> int:
    return int(initdb.parts[-3])


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server, yield its URL, and stop it; skip where PostgreSQL is not installed."""
    pytest.importorskip("adbc_driver_postgresql", reason="the driver is of the extra `postgres`")
    folder = binaries()
    if folder is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    data = Path(tempfile.mkdtemp(prefix="gpu_windows-postgres-"))
    options: dict[str, Any] = {"check": True, "capture_output": True, "cwd": data, "timeout": 120}
    if os.getuid() == 0:  # which PostgreSQL refuses
        names = {each.pw_name for each in pwd.getpwall()}
        options["user"] = "postgres" if "postgres" in names else "nobody"
        shutil.chown(data, options["user"])
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = f"-p {port} -k {data} -c listen_addresses=127.0.0.1 -c fsync=off"
    control: list[str | Path] = [folder / "pg_ctl", "-D", data / "data", "-w"]
    try:
        access = [
            "-A",
            "trust",
            "-U",
            "gw",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]
        subprocess.run([folder / "initdb", "-D", data / "data", *access], **options)
        subprocess.run(
            [*control, "-l", data / "log", "-o", settings, "start"],
            **options | {"capture_output": False, "stdout": subprocess.DEVNULL},
        )
        try:
            yield f"postgresql://gw@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **options)
    finally:
        shutil.rmtree(data)


def ask(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in one transaction; return the rows of the last one."""
    from adbc_driver_postgresql import dbapi

    with closing(dbapi.connect(url)) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
    return [*map(tuple, rows)]
