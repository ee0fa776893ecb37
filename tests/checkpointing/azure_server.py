"""An Azure store on loopback: Microsoft's Azurite, which npm fetches."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.request import Request, urlopen

PACKAGE = "azurite@3.35.0"
#: The account of Azurite, and its key, which its documentation has.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-08-06"
_LIMIT = 60


def install(folder: Path) -> Path:
    """Return the program, which is fetched into a folder.

    Raises
    ------
    RuntimeError
        If npm is not there, or cannot fetch it.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(f"npm fetches {PACKAGE}: install it (apt-get install npm)")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"npm cannot fetch {PACKAGE}: {done.stderr[-500:]}")
    return folder / "node_modules" / ".bin" / "azurite-blob"


@contextmanager
def serve_azure(program: Path, folder: Path) -> Iterator[str]:
    """Run a server on a free port of loopback; give its endpoint."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
    command = [str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent",
               "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]  # fmt: skip
    process = subprocess.Popen(command, cwd=folder)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.terminate()
        process.wait(_LIMIT)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _LIMIT
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("Azurite does not answer")


def make_container(endpoint: str, name: str) -> None:
    """Make a container, for which the library has no call."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
    signed = "\n".join(f"{key}:{value}" for key, value in headers.items())
    resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"{signed}\n{resource}"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    request = Request(f"{endpoint}/{name}?restype=container", method="PUT", headers=headers)
    with urlopen(request, timeout=_LIMIT) as answer:
        assert answer.status == 201
