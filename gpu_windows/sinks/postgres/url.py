"""URLs of servers of PostgreSQL, which may contain a password that nobody is shown."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import unquote

from gpu_windows.errors import QueryError

#: For how long a server that does not answer is waited for.
CONNECT_TIMEOUT_S = 30
_TIMEOUT = "connect_timeout"
# A character of a part, apart from those in brackets: %00 would end the text in the driver.
_PART = r"(?:[^{}%\s]|%(?!00)[0-9A-Fa-f]{{2}})"
_USER, _VALUE = _PART.format("@/?"), _PART.format("@&=")
_NAME, _HOST = _PART.format("@/?:"), _PART.format(r"@/?:,\[\]")
_PLACE = rf"(?:\[[0-9A-Za-z:.%]*\]|{_HOST}*)(?::\d*)?"
_OPTION = rf"[a-z_]+={_VALUE}*"
_URL = re.compile(
    rf"postgres(?:ql)?://(?:{_NAME}*(?::(?P<password>{_USER}*))?@)?{_PLACE}(?:,{_PLACE})*"
    rf"(?:/{_USER}*)?(?:\?(?P<options>{_OPTION}(?:&{_OPTION})*)?)?"
)
_SECRETS = ("password", "sslpassword")


def check_url(url: Any) -> None:
    """Raise `QueryError` for a value that is not a URL of PostgreSQL.

    The driver would raise, too, and show the part that it took for a port or a host: the end of
    a password with an ``@``.

    Raises
    ------
    QueryError
    """
    if not isinstance(url, str) or _URL.fullmatch(url) is None:
        rule = (
            "the url of a PostgresSink is postgresql://user@host:port/database; within its parts "
            "@ is %40, / is %2F, ? is %3F, : is %3A, % is %25, and a space %20"
        )
        raise QueryError(rule, value=_scheme_of(url))


def with_timeout(url: str) -> str:
    """Return a URL for the driver: it does not wait for ever for a server that does not answer."""
    if f"{_TIMEOUT}=" in url.partition("?")[2] or "PGCONNECT_TIMEOUT" in os.environ:
        return url
    joint = "" if url.endswith("?") else "&" if "?" in url else "?"
    return f"{url}{joint}{_TIMEOUT}={CONNECT_TIMEOUT_S}"


def redact(text: str, url: str) -> str:
    """Return a text of the driver's without the passwords of a URL.

    Examples
    --------
    >>> redact("no such option: s3cr%33t", "postgresql://etl:s3cr%33t@db/shop")
    'no such option: ...'
    """
    for secret in sorted(_secrets_of(url), key=len, reverse=True):
        text = text.replace(secret, "...")
    return text


def _secrets_of(url: str) -> set[str]:
    """Return the passwords of a URL, as it has them and as they are."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return {url}
    options = (each.partition("=") for each in (parts["options"] or "").split("&"))
    found = {parts["password"] or "", *(value for name, _, value in options if name in _SECRETS)}
    return {url, *found, *map(unquote, found)} - {""}


def _scheme_of(url: object) -> str:
    """Return what may be shown of a URL, which may contain a password: its scheme."""
    if not isinstance(url, str):
        return type(url).__name__
    scheme, _, rest = url.partition("://")
    return f"{scheme}://..." if rest else "text without a scheme"
