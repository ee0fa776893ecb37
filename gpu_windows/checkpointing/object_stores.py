"""Opens object stores by their URL: S3, Google Cloud Storage, Azure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from errno import EACCES, EEXIST, EIO, ENOENT
from functools import lru_cache
from typing import Any

from gpu_windows.errors import CheckpointError, require_extra

#: A store of the library.
ObjectStore = Any
#: Schemes of URLs of object stores.
SCHEMES = ("s3", "s3a", "gs", "abfss", "abfs", "az")
#: Names and values of a store's options, including credentials: never show them.
Options = tuple[tuple[str, str], ...]
#: Options that are not secret: the location of a store, and how it encrypts.
_PLAIN = {
    *("account_name", "endpoint", "region", "virtual_hosted_style_request", "skip_signature"),
    *("server_side_encryption", "sse_kms_key_id"),
}
_PUBLIC_AZURE = "dfs.core.windows.net"
#: Environment variables with the location of a store.
_ENDPOINTS = (
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
)
#: Seconds from the first try of a request to the last one.
_RETRY_SECONDS = 180


@dataclass(frozen=True)
class ObjectUrl:
    """The URL of a folder in an object store.

    Parameters
    ----------
    scheme : str
        One of `SCHEMES`.
    place : str
        The bucket; of Azure ``CONTAINER@ACCOUNT.dfs.core.windows.net``.
    path : str
        The folder, without slashes at its ends; it is not empty.
    """

    scheme: str
    place: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}/{self.path}"

    @property
    def store(self) -> str:
        """The scheme, the same one for URLs of one store."""
        return {"s3a": "s3", "abfs": "abfss"}.get(self.scheme, self.scheme)

    @property
    def bucket(self) -> str:
        """The bucket, or container."""
        return self.place.partition("@")[0]

    @property
    def host(self) -> str:
        """Of Azure: the host of the account."""
        return self.place.partition("@")[2]


def parse_url(text: str) -> ObjectUrl:
    """Return the parts of a URL. Characters are taken as they are, as Hadoop does.

    Raises
    ------
    CheckpointError
        If it does not name a folder in a bucket, or has credentials in it.
    """
    scheme, _, rest = text.partition("://")
    scheme, (place, _, path) = scheme.lower(), rest.partition("/")
    user, _, host = place.rpartition("@")
    if ":" in user or (user and not scheme.startswith(("abfs", "az"))):
        rule = "the URL of a checkpoint must not have credentials: give them to the session"
        raise CheckpointError(rule, value=f"{scheme}://***@{host}/{path}")
    names = [name for name in path.split("/") if name]
    if not place or not names or {".", ".."}.intersection(names):
        rule = f"the URL of a checkpoint names a folder in a bucket: {scheme}://BUCKET/FOLDER"
        raise CheckpointError(rule, value=text)
    if scheme == "az":
        scheme, place = "abfss", f"{place}@{_azure_account(text)}.{_PUBLIC_AZURE}"
    elif scheme.startswith("abfs") and not (user and host):
        rule = "the URL of a checkpoint in Azure names container and account"
        value = f"{text}; use abfss://CONTAINER@ACCOUNT.{_PUBLIC_AZURE}/FOLDER"
        raise CheckpointError(rule, value=value)
    return ObjectUrl(scheme, place, "/".join(names))


def _azure_account(text: str) -> str:
    name = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if name is None:
        rule = "az:// needs the account in AZURE_STORAGE_ACCOUNT_NAME; or use abfss://"
        raise CheckpointError(rule, value=text)
    return name


def import_obstore() -> Any:
    """Return the library.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    require_extra("obstore", "remote", "a checkpoint in a store of objects, on all nodes,")
    import obstore
    import obstore.store

    return obstore


def open_store(url: ObjectUrl, options: Options, retries: int) -> ObjectStore:
    """Return the store of a bucket, the same one for the same arguments in a process."""
    import_obstore()
    return _open_store(url.scheme, url.place, options, retries, os.getpid())


@lru_cache(maxsize=16)
def _open_store(
    scheme: str, place: str, options: Options, retries: int, process: int
) -> ObjectStore:
    del process  # connections and threads do not outlive a fork
    url, config = ObjectUrl(scheme, place, ""), dict[str, Any](options)
    with store_errors(f"{scheme}://{place}", options):
        return _make_store(url, config, _connection(config.get("endpoint"), retries))


def _connection(endpoint: str | None, retries: int) -> dict[str, Any]:
    limit = timedelta(seconds=_RETRY_SECONDS)
    arguments: dict[str, Any] = {"retry_config": {"max_retries": retries, "retry_timeout": limit}}
    endpoints = [endpoint] if endpoint else map(os.environ.get, _ENDPOINTS)
    if any(url and url.startswith("http://") for url in endpoints):
        arguments["client_options"] = {"allow_http": "true"}  # http:// was given explicitly
    return arguments


def _make_store(url: ObjectUrl, config: dict[str, Any], connection: dict[str, Any]) -> ObjectStore:
    stores = import_obstore().store
    kinds = {"s3": stores.S3Store, "gs": stores.GCSStore, "abfss": stores.AzureStore}
    if url.store == "abfss":
        account, _, domain = url.host.partition(".")
        config.setdefault("account_name", account)
        if domain != _PUBLIC_AZURE:
            endpoint = f"https://{account}.{domain.replace('dfs.', 'blob.', 1)}"
            config.setdefault("endpoint", endpoint)
    return kinds[url.store](url.bucket, config=config, **connection)


# ---- errors

#: Answers of a store that does not support conditional creation.
_NOT_IMPLEMENTED = "status code: 501"
_BODY = re.compile(r"[:\s]*<\?xml.*|[:\s]*<(?:Error|html|!DOCTYPE).*|\s*Debug source:.*", re.DOTALL)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_URL_QUERY = re.compile(r"\?[^\s)\"',]*")


@contextmanager
def store_errors(name: str, options: Options) -> Iterator[None]:
    """Raise errors of a store as `OSError`, without credentials in them.

    Parameters
    ----------
    name : str
        Of the file.
    options : Options
        Those that the store was opened with.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no such bucket.
    FileExistsError
        If there is such a file, and it was to be created.
    PermissionError
        If the store does not accept the credentials, or has none.
    CheckpointError
        If the store cannot do what is asked for.
    OSError
        If it fails otherwise, after retries.
    """
    from obstore import exceptions

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(ENOENT, _describe(error, options), name) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(EACCES, _describe(error, options), name) from None
    except exceptions.AlreadyExistsError as error:
        raise FileExistsError(EEXIST, _describe(error, options), name) from None
    except exceptions.BaseError as error:
        text = _describe(error, options)
        if isinstance(error, exceptions.NotSupportedError) or _NOT_IMPLEMENTED in text:
            rule = "the store of a checkpoint must do what S3 does, and this one cannot"
            raise CheckpointError(rule, value=f"{name}: {text}") from None
        raise OSError(EIO, text, name) from None


def _describe(error: Exception, options: Options) -> str:
    """Return the message of an error on one line, without bodies, queries of URLs and secrets."""
    text = str(error)
    code = _CODE.search(text)
    text = _URL_QUERY.sub("", " ".join(_BODY.sub("", text).split()))
    return redact(text if code is None else f"{text} ({code[1]})", options)


def redact(text: str, options: Options) -> str:
    """Return a text without the values of secret options."""
    secrets: Sequence[str] = [value for name, value in options if name not in _PLAIN and value]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
