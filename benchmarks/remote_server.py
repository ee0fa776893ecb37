"""moto's S3 in a process of its own, whose answers are late: clients do not share its time."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tests.checkpointing.s3_server import Faults, Request, S3Server, serve_s3


class RemoteServer:
    """A server that `run_server` runs.

    Parameters
    ----------
    pipe : multiprocessing.connection.Connection
        To its process.
    url, bucket : str
        Its endpoint, and a bucket of it.
    """

    def __init__(self, pipe: Connection, url: str, bucket: str) -> None:
        self._pipe, self.url, self.bucket = pipe, url, bucket

    def set_delay(self, seconds: float) -> None:
        """Have answers be late."""
        self._pipe.send(seconds)
        self._pipe.recv()

    def take_requests(self) -> list[Request]:
        """Return the requests that were answered since it was asked before."""
        self._pipe.send(None)
        requests: list[Request] = self._pipe.recv()
        return requests

    def count_bytes(self, folder: str) -> int:
        """Return the bytes of the objects below a folder of the bucket."""
        self._pipe.send((self.bucket, folder))
        size: int = self._pipe.recv()
        return size


@contextmanager
def run_server() -> Iterator[RemoteServer]:
    """Run a server on a free port of loopback."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,))
    process.start()
    try:
        url, bucket = ours.recv()
        yield RemoteServer(ours, url, bucket)
    finally:
        process.kill()
        process.join()


def _serve(pipe: Connection) -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with serve_s3() as server:
        pipe.send((server.url, server.make_bucket()))
        while True:
            _obey(server, pipe)


def _obey(server: S3Server, pipe: Connection) -> None:
    asked = pipe.recv()
    if asked is None:
        answered, server.answered = server.answered, []
        pipe.send(answered)
    elif isinstance(asked, tuple):
        bucket, folder = asked
        pages = server.client.get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=bucket, Prefix=f"{folder}/")
        pipe.send(sum(each["Size"] for page in found for each in page.get("Contents", [])))
    else:
        server.faults = Faults(delay_s=asked)
        pipe.send(None)
