"""Encrypted files are refused, those of which only columns are when such a column is read."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import ScanError
from gpu_windows.scans.listing import scan_folders
from gpu_windows.scans.splits import Split

encryption: Any = pytest.importorskip("pyarrow.parquet.encryption")
KEYS = {"footer": "0" * 16, "column": "1" * 16}


class Keys(encryption.KmsClient):  # type: ignore[misc]
    """Puts the master key before a key, and takes it off."""

    def __init__(self, _: Any) -> None:
        encryption.KmsClient.__init__(self)

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(KEYS[name].encode() + key)

    def unwrap_key(self, wrapped: bytes, name: str) -> bytes:
        return base64.b64decode(wrapped)[len(KEYS[name]) :]


def _write(path: Path, *, plaintext_footer: bool) -> None:
    how = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["v"]}, plaintext_footer=plaintext_footer
    )
    connection = encryption.KmsConnectionConfig(custom_kms_conf=KEYS)
    factory = encryption.CryptoFactory(Keys)
    properties = factory.file_encryption_properties(connection, how)
    table = pa.table({"k": [1, 2], "v": [3, 4]})
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


def test_a_file_without_a_readable_footer(tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", plaintext_footer=False)
    with pytest.raises(ScanError, match=r"encrypt.*a\.parquet"):
        gw.scan(tmp_path)


def test_a_column_that_is_encrypted(tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", plaintext_footer=True)
    scan = scan_folders([str(tmp_path)])
    whole = Split(scan.files[0], 0, scan.files[0].length)
    assert [batch.to_pydict() for batch in scan.read(whole, ["k"])] == [{"k": [1, 2]}]
    with pytest.raises(ScanError, match=r"encrypt.*a\.parquet"):
        next(scan.read(whole, ["v"]))
