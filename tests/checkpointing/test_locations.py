"""Where a checkpoint may be, and what a session says of its store."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpointing.object_stores import parse_url, redact, store_errors
from gpu_windows.errors import CheckpointError, MissingExtraError

AZURE = "abfss://box@account.dfs.core.windows.net/a"


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/a/b/", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        (Path("/a/b"), "/a/b"),
        ("relative", f"{Path.cwd()}/relative"),
    ],
)
def test_paths(given: str, root: str) -> None:
    found = open_checkpoint(given)
    assert isinstance(found, LocalFiles)
    assert found.root == root
    assert found.spark_url == f"file:{root}"


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("s3://bucket/a", "s3://bucket/a"),
        ("S3A://bucket/a//b/", "s3a://bucket/a/b"),
        ("gs://bucket/a b%20c?d#e", "gs://bucket/a b%20c?d#e"),
        (f"{AZURE}/b", f"{AZURE}/b"),
        ("az://box/a", AZURE),
    ],
)
def test_urls(given: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    found = open_checkpoint(given)
    assert isinstance(found, ObjectFiles)
    assert found.root == found.spark_url == root
    assert found.below("gpu_windows").root == f"{root}/gpu_windows"


REFUSED = {
    "hdfs://a/b": "HDFS has no public call .* s3a://, gs:// or abfss://, got hdfs://a/b$",
    "dbfs:/a/b": "use the URL of the underlying store: s3://, gs:// or abfss://, got dbfs:/a/b$",
    "wasbs://box@account.blob.core.windows.net/a": "use abfss://CONTAINER@ACCOUNT",
    "ftp://a/b": "take a path, or a URL that begins with s3://, s3a://, gs://",
    "s3://bucket": "a folder in a bucket: s3://BUCKET/FOLDER, got s3://bucket$",
    "s3://bucket/": "a folder in a bucket",
    "s3:///a": "a folder in a bucket",
    "s3:bucket/a": "a folder in a bucket",
    "gs://bucket/../a": "a folder in a bucket",
    "az://box/a": "az:// needs the account in AZURE_STORAGE_ACCOUNT_NAME",
    "abfss://box/a": "container and account, got .*use abfss://CONTAINER@ACCOUNT",
    "s3a://KEY:hidden@bucket/a": r"must not have credentials: .* got s3a://\*\*\*@bucket/a$",
    "s3a://hidden@bucket/a": r"must not have credentials: .* got s3a://\*\*\*@bucket/a$",
}


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(CheckpointError, match=REFUSED[given]) as raised:
        open_checkpoint(given)
    assert "hidden" not in str(raised.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gpu-windows\[remote\]'"):
        open_checkpoint("s3://bucket/a")


def options(url: str, **settings: str) -> dict[str, str]:
    pytest.importorskip("obstore")
    named = {name.replace("__", "."): value for name, value in settings.items()}
    found = open_checkpoint(url, named.get)
    assert isinstance(found, ObjectFiles)
    return dict(found.options)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_options_of_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"fs__s3a__access__key": "k", "fs__s3a__secret__key": "s"}
    named = {"access_key_id": "k", "secret_access_key": "s"}
    assert options("s3a://bucket/a") == {}
    assert options("s3a://bucket/a", **keys) == named
    own = {"fs__s3a__bucket__bucket__access__key": "own"}
    assert options("s3://bucket/a", **keys, **own) == {**named, "access_key_id": "own"}
    assert options("s3://other/a", **keys, **own) == named
    token = options("s3://bucket/a", **keys, fs__s3a__session__token="t")
    assert token == {**named, "session_token": "t"}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    assert options("s3://bucket/a") == {"access_key_id": "environment"}
    assert options("s3://bucket/a", **keys) == named


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"endpoint": "host:9000"}, {"endpoint": "https://host:9000"}),
        (
            {"endpoint": "host:9000", "connection.ssl.enabled": "false"},
            {"endpoint": "http://host:9000"},
        ),
        (
            {"endpoint": "http://host", "path.style.access": "true"},
            {"endpoint": "http://host"},
        ),
        (
            {"endpoint": "http://host", "path.style.access": "false"},
            {"endpoint": "http://bucket.host", "virtual_hosted_style_request": "true"},
        ),
        (
            {"endpoint": "s3.eu-west-1.amazonaws.com"},
            {"endpoint": "https://s3.eu-west-1.amazonaws.com", "region": "eu-west-1"},
        ),
        ({"endpoint.region": "eu-north-1"}, {"region": "eu-north-1"}),
        (
            {"aws.credentials.provider": "org.apache.AnonymousAWSCredentialsProvider"},
            {"skip_signature": "true"},
        ),
    ],
)
def test_where_s3_is(settings: dict[str, str], expected: dict[str, str]) -> None:
    named = {f"fs.s3a.{name}": value for name, value in settings.items()}
    assert options("s3a://bucket/a", **named) == expected


KMS = {"server_side_encryption": "aws:kms", "sse_kms_key_id": "arn"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"encryption.algorithm": "AES256"}, {"server_side_encryption": "AES256"}),
        (
            {"encryption.algorithm": "AES256", "encryption.key": "none"},
            {"server_side_encryption": "AES256"},
        ),
        ({"encryption.algorithm": "SSE-KMS", "encryption.key": "arn"}, KMS),
        ({"encryption.algorithm": "SSE-KMS"}, {"server_side_encryption": "aws:kms"}),
        (
            {"encryption.algorithm": "DSSE-KMS", "encryption.key": "arn"},
            {**KMS, "server_side_encryption": "aws:kms:dsse"},
        ),
        (
            {"encryption.algorithm": "SSE-C", "encryption.key": "a2V5"},
            {"server_side_encryption": "sse-c", "sse_customer_key_base64": "a2V5"},
        ),
        (
            {
                "server-side-encryption-algorithm": "SSE-KMS",
                "server-side-encryption.key": "arn",
            },
            KMS,
        ),
        (
            {
                "encryption.algorithm": "AES256",
                "bucket.bucket.encryption.algorithm": "SSE-KMS",
                "bucket.bucket.encryption.key": "arn",
            },
            KMS,
        ),
        (
            {
                "encryption.algorithm": "AES256",
                "bucket.bucket.server-side-encryption-algorithm": "SSE-KMS",
                "encryption.key": "arn of all",
                "bucket.bucket.server-side-encryption.key": "arn",
            },
            KMS,
        ),
        ({"bucket.other.encryption.algorithm": "SSE-KMS", "encryption.key": "arn"}, {}),
    ],
)
def test_how_s3_encrypts(settings: dict[str, str], expected: dict[str, str]) -> None:
    named = {f"fs.s3a.{name}": value for name, value in settings.items()}
    assert options("s3a://bucket/a", **named) == expected


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        (
            "s3a://bucket/a",
            {"fs.s3a.encryption.algorithm": "CSE-KMS", "fs.s3a.encryption.key": "hidden"},
            "encrypted by AES256, SSE-KMS, DSSE-KMS, SSE-C.*got .*algorithm=CSE-KMS",
        ),
        (
            "s3a://bucket/a",
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.context": "a=hidden"},
            "without a context",
        ),
        ("s3a://bucket/a", {"fs.s3a.encryption.algorithm": "SSE-C"}, "SSE-C needs fs.s3a"),
        ("gs://bucket/a", {"fs.gs.encryption.key": "hidden"}, "got fs.gs.encryption.key"),
        (
            AZURE,
            {"fs.azure.encryption.context.provider.type.account.dfs.core.windows.net": "hidden"},
            "cannot be encrypted as Spark's are, got fs.azure.encryption.context",
        ),
    ],
)
def test_encryption_that_is_not_followed(url: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as raised:
        options(url, **settings)
    assert "hidden" not in str(raised.value)


def test_options_of_other_stores() -> None:
    key = {"fs.azure.account.key.account.dfs.core.windows.net": "k"}
    assert options(AZURE, **key) == {"account_key": "k"}
    assert options(AZURE.replace("account", "other"), **key) == {}
    assert options(AZURE, **{"fs.azure.account.key": "k"}) == {"account_key": "k"}
    client_key = {"fs.azure.encryption.encoded.client-provided-key": "k"}
    assert options(AZURE, **client_key) == {"encryption_key": "k"}
    assert options("gs://bucket/a") == {}
    found = options("gs://bucket/a", **{"fs.gs.auth.service.account.json.keyfile": "/k.json"})
    assert found == {"service_account": "/k.json"}


def test_errors_have_no_credentials() -> None:
    exceptions = pytest.importorskip("obstore.exceptions")
    secrets = (("endpoint", "http://host"), ("sas_key", "sig%3D"), ("secret_access_key", "hid"))
    text = (
        "GET http://host/a?sig=hidden&x=1 failed: 403 with hid: <?xml?><Code>Denied</Code> hidden"
    )
    with pytest.raises(PermissionError) as raised, store_errors("commits/1", secrets):
        raise exceptions.PermissionDeniedError(text)
    assert raised.value.strerror == "GET http://host/a failed: 403 with *** (Denied)"
    assert raised.value.filename == "commits/1"
    assert redact("http://host sig%3D", secrets) == "http://host ***"
    assert str(parse_url("s3://bucket/a")) == "s3://bucket/a"
