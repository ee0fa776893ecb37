"""Options of object stores from a session's Hadoop settings: credentials and endpoints."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from gpu_windows.checkpointing.object_stores import ObjectUrl, Options

#: Returns the value of a Hadoop setting; None if it is not set.
Setting = Callable[[str], str | None]

_S3 = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
#: Environment variables of the driver that Spark also gives to its own file systems.
_S3_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
}
_REGION_OF_HOST = re.compile(r"s3[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_GCS_KEYFILES = (
    "fs.gs.auth.service.account.json.keyfile",
    "google.cloud.auth.service.account.json.keyfile",
)


def find_options(url: ObjectUrl, setting: Setting) -> Options:
    """Return the options of a session for the store of a URL.

    Each process takes missing options from its environment or its machine.

    Parameters
    ----------
    url : ObjectUrl
    setting : callable
        Of the session.
    """
    if url.scheme in ("s3", "s3a"):
        options = dict(_s3_options(url.bucket, setting))
    elif url.scheme == "gs":
        keyfile = next(filter(None, map(setting, _GCS_KEYFILES)), None)
        options = {} if keyfile is None else {"service_account": keyfile}
    else:
        options = dict(_azure_options(url.host, setting))
    return tuple(sorted(options.items()))


def _s3_options(bucket: str, setting: Setting) -> Iterator[tuple[str, str]]:
    def get(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    values = {option: get(name) for name, option in _S3.items()}
    if not (values["access_key_id"] and values["secret_access_key"]):
        # Those of the driver, which executors may not have in their environment.
        values |= {option: os.environ.get(name) for name, option in _S3_ENVIRONMENT.items()}
    endpoint = get("endpoint")
    if endpoint and "://" not in endpoint:
        scheme = "http" if get("connection.ssl.enabled") == "false" else "https"
        endpoint = f"{scheme}://{endpoint}"
    if endpoint and (region := _REGION_OF_HOST.search(endpoint)):
        values["region"] = values["region"] or region[1]
    if endpoint and get("path.style.access") == "false":
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{bucket}.{host}"
        yield "virtual_hosted_style_request", "true"
    if endpoint:
        yield "endpoint", endpoint
    if _ANONYMOUS in (get("aws.credentials.provider") or ""):
        yield "skip_signature", "true"
    yield from ((option, value) for option, value in values.items() if value)


def _azure_options(host: str, setting: Setting) -> Iterator[tuple[str, str]]:
    names = {"account.key": "account_key", "sas.fixed.token": "sas_key"}
    for name, option in names.items():
        value = setting(f"fs.azure.{name}.{host}") or setting(f"fs.azure.{name}")
        if value:
            yield option, value
