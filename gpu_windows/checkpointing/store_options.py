"""Options of object stores from a session's Hadoop settings: credentials, endpoints, encryption."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from gpu_windows.checkpointing.object_stores import ObjectUrl, Options
from gpu_windows.errors import CheckpointError

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
#: Encryption by S3: Hadoop's names of the algorithms, the library's, and its option for the key.
_S3_ENCRYPTION = {
    "AES256": ("AES256", None),
    "SSE-KMS": ("aws:kms", "sse_kms_key_id"),
    "DSSE-KMS": ("aws:kms:dsse", "sse_kms_key_id"),
    "SSE-C": ("sse-c", "sse_customer_key_base64"),
}
#: Names of a setting, the older one last.
_S3_ALGORITHM = ("encryption.algorithm", "server-side-encryption-algorithm")
_S3_ENCRYPTION_KEY = ("encryption.key", "server-side-encryption.key")
#: Settings of encryption that the library cannot follow.
_NOT_FOLLOWED = {
    "gs": ("fs.gs.encryption.algorithm", "fs.gs.encryption.key"),
    "abfss": ("fs.azure.encryption.context.provider.type",),
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

    Raises
    ------
    CheckpointError
        If the session encrypts what it writes to the store in a way that is not followed here.
    """
    for name in _NOT_FOLLOWED.get(url.store, ()):
        if setting(name) or setting(f"{name}.{url.host}"):
            raise CheckpointError("files here cannot be encrypted as Spark's are", value=name)
    if url.scheme in ("s3", "s3a"):
        options = dict(_s3_options(url.bucket, setting))
    elif url.scheme == "gs":
        keyfile = next(filter(None, map(setting, _GCS_KEYFILES)), None)
        options = {} if keyfile is None else {"service_account": keyfile}
    else:
        options = dict(_azure_options(url.host, setting))
    return tuple(sorted(options.items()))


def _s3_options(bucket: str, setting: Setting) -> Iterator[tuple[str, str]]:
    def get(*names: str) -> str | None:
        """Return a setting by its names, that of the bucket first."""
        places = f"fs.s3a.bucket.{bucket}", "fs.s3a"
        keys = (f"{place}.{name}" for place in places for name in names)
        return next(filter(None, map(setting, keys)), None)

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
    yield from _s3_encryption(get)
    yield from ((option, value) for option, value in values.items() if value)


def _s3_encryption(get: Callable[..., str | None]) -> Iterator[tuple[str, str]]:
    algorithm = get(*_S3_ALGORITHM)
    if algorithm is None:
        return
    if algorithm not in _S3_ENCRYPTION or get("encryption.context"):
        rule = f"objects are encrypted by {', '.join(_S3_ENCRYPTION)}, without a context"
        raise CheckpointError(rule, value=f"fs.s3a.encryption.algorithm={algorithm}")
    name, key_option = _S3_ENCRYPTION[algorithm]
    key = get(*_S3_ENCRYPTION_KEY)
    if key is None and algorithm == "SSE-C":
        raise CheckpointError("SSE-C needs fs.s3a.encryption.key", value=algorithm)
    yield "server_side_encryption", name
    if key_option and key:
        yield key_option, key


def _azure_options(host: str, setting: Setting) -> Iterator[tuple[str, str]]:
    names = {
        "account.key": "account_key",
        "sas.fixed.token": "sas_key",
        "encryption.encoded.client-provided-key": "encryption_key",
    }
    for name, option in names.items():
        value = setting(f"fs.azure.{name}.{host}") or setting(f"fs.azure.{name}")
        if value:
            yield option, value
