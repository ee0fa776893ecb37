"""URLs of PostgreSQL: what the driver would misread is refused, and no password is shown."""

from __future__ import annotations

import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.sinks.postgres.statements import TableName
from gpu_windows.sinks.postgres.url import check_url, redact, with_timeout
from gpu_windows.sinks.postgres.writer import PostgresWriter


@pytest.mark.parametrize(
    "rest",
    [
        "u:sec%ret@db:1/x", "u:sec@ret@db:1/x", "u:sec/ret@db:1/x", "u:sec?ret@db:1/x",
        "u:sec ret@db:1/x", "u:1/sec@ret/x", "u@db:secret/x", "u:12?secret=b@db/x", "u:s%00ret@db",
        "u@db/x?secret", "u@db/x?password=sec=ret", "u@db/x/secret",
        "u:a:b@secret@",
    ],
)  # fmt: skip
def test_what_is_no_url(rest: str) -> None:
    with pytest.raises(errors.QueryError, match="@ is %40") as error:
        gw.PostgresSink("t", f"postgresql://{rest}")
    assert str(error.value).endswith("got postgresql://...")
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    "rest",
    [
        "", "/", "db", "u@db/x", "u:p%40%2F%25@db:5432/x", "u:p:#!$[]é@db", "u:@db", "[::1]:5432/x",
        "a,b:5433,[fe80::1%25eth0]:1/x", "/x?host=/var/run&user=u", "%2Fvar%2Frun/x", "db/x?",
        "db/x?options=-c%20search_path%3Da,b&sslmode=require", "db/x y".replace(" ", "%20"),
    ],
)  # fmt: skip
def test_what_is_a_url(rest: str) -> None:
    check_url(f"postgresql://{rest}")
    check_url(f"postgres://{rest}")


def test_a_server_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    for url, wanted in {
        "postgresql://db/x": "postgresql://db/x?connect_timeout=30",
        "postgresql://db/x?": "postgresql://db/x?connect_timeout=30",
        "postgresql://db/x?a=b": "postgresql://db/x?a=b&connect_timeout=30",
        "postgresql://db/x?connect_timeout=5": "postgresql://db/x?connect_timeout=5",
    }.items():
        assert with_timeout(url) == wanted
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "5")
    assert with_timeout("postgresql://db/x") == "postgresql://db/x"


def test_no_password_is_shown() -> None:
    url = "postgresql://u:s3%40ret@db/x?sslpassword=k%65y"
    shown = redact(f"a s3@ret b s3%40ret c key d k%65y e {url} u", url)
    assert shown == "a ... b ... c ... d ... e ... u"
    writer = PostgresWriter(url, {"result": TableName("", "t")}, {}, "q", None, takes_over=False)
    assert "s3" not in repr(writer) + repr(gw.PostgresSink("t", url))
