"""An S3 server on loopback: moto's, with faults that tests switch on, and a count of requests."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Response

KEY, SECRET, REGION = (
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "eu-west-1",
)
_CONDITION = "HTTP_IF_NONE_MATCH"
_ERROR = "<?xml version='1.0'?><Error><Code>{0}</Code><Message>as told</Message></Error>"


@dataclass
class Faults:
    """What a server does other than S3.

    Parameters
    ----------
    delay_s : float
        Seconds by which an answer is late.
    has_conditions : bool
        Whether it heeds If-None-Match.
    status : callable
        Of method and path: the status to answer with, before anything is done; None: none.
    loses : callable
        Of method and path: whether the answer is lost: the client is told 500 after it was done.
    """

    delay_s: float = 0
    has_conditions: bool = True
    status: Callable[[str, str], int | None] = lambda _, __: None
    loses: Callable[[str, str], bool] = lambda _, __: False


@dataclass(frozen=True)
class Request:
    """A request that was answered.

    Parameters
    ----------
    method, path, query : str
    received, sent : int
        Bytes of its body, and of that of the answer.
    began, ended : float
        Seconds of a clock.
    """

    method: str
    path: str
    query: str
    received: int
    sent: int
    began: float
    ended: float

    @property
    def kind(self) -> str:
        """What is asked for: as `method`, and ``LIST`` and ``DELETE`` of several objects."""
        asked = parse_qs(self.query, keep_blank_values=True)
        if self.method == "GET" and {"list-type", "prefix"} & asked.keys():
            return "LIST"
        return "DELETE" if "delete" in asked else self.method

    @property
    def key(self) -> str:
        """The name of the object; of a list what the names begin with."""
        prefix = parse_qs(self.query).get("prefix")
        return self.path.lstrip("/").partition("/")[2] if prefix is None else prefix[0]


def s3_environment(url: str) -> dict[str, str]:
    """Return the variables by which clients without options find a server, by its URL."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }


def count_rounds(requests: Iterable[Request]) -> int:
    """Return how many requests came one after the other: those at the same time are one round."""
    rounds, free = 0, -math.inf
    for each in sorted(requests, key=lambda request: request.ended):
        if each.began >= free:
            rounds, free = rounds + 1, each.ended
    return rounds


@dataclass
class S3Server:
    """A server, which runs until `serve_s3` ends.

    Parameters
    ----------
    url : str
        Its endpoint.

    Attributes
    ----------
    requests : collections.Counter
        By method.
    answered : list of Request
    """

    url: str = ""
    faults: Faults = field(default_factory=Faults)
    requests: Counter[str] = field(default_factory=Counter)
    answered: list[Request] = field(default_factory=list)
    _app: Any = field(default_factory=lambda: DomainDispatcherApplication(create_backend_app))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""
        began = time.monotonic()
        answer = [*self._answer(environ, start_response)]
        self.answered.append(
            Request(
                method=environ["REQUEST_METHOD"],
                path=environ["PATH_INFO"],
                query=environ["QUERY_STRING"],
                received=int(environ.get("CONTENT_LENGTH") or 0),
                sent=sum(map(len, answer)),
                began=began,
                ended=time.monotonic(),
            )
        )
        return answer

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        faults = self.faults
        self.requests[method] += 1
        time.sleep(faults.delay_s)
        if not faults.has_conditions:
            environ.pop(_CONDITION, None)
        status = faults.status(method, path)
        if status is None and faults.loses(method, path):
            b"".join(self._app(environ, lambda *_, **__: None))
            status = 500
        if status is not None:
            code = "NotImplemented" if status == 501 else "InternalError"
            answer = Response(_ERROR.format(code), status, content_type="application/xml")
            return answer(environ, start_response)
        found: Iterable[bytes] = self._app(environ, start_response)
        return found

    @property
    def client(self) -> Any:
        """A client of another library."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}),
        )

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """What a store of it is opened with."""
        return (
            ("access_key_id", KEY),
            ("endpoint", self.url),
            ("region", REGION),
            ("secret_access_key", SECRET),
        )

    def make_bucket(self) -> str:
        """Return the name of a new bucket."""
        name = f"bucket-{uuid4().hex}"
        place = {"LocationConstraint": REGION}
        self.client.create_bucket(Bucket=name, CreateBucketConfiguration=place)
        return name

    def keys(self, bucket: str) -> list[str]:
        """Return the names of all objects, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]


class _Handler(MotoRequestHandler):
    def handle_expect_100(self) -> bool:
        """Leave the answer to werkzeug: clients take a second one for the last."""
        return True


@contextmanager
def serve_s3() -> Iterator[S3Server]:
    """Run a server on a free port of loopback."""
    found = S3Server()
    server: BaseWSGIServer = make_server(
        "127.0.0.1", 0, found, threaded=True, request_handler=_Handler
    )
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
