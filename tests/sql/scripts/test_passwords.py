"""Passwords among the options of a table: no text of an error or of a script has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError

SCRIPT = """
CREATE TABLE a (k STRING);
CREATE TABLE o (k STRING) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'o', {more});
INSERT INTO o SELECT k FROM a
"""
URL = "jdbc:postgresql://db/x"
USER = "'username' = 'u'"


def script(more: str, url: str = URL) -> gw.typing.SqlScript:
    rows = gw.stream(pa.table({"k": ["a"]}))
    return gw.sql_script(SCRIPT.format(url=url, more=more), a=rows)


@pytest.mark.parametrize(
    ("more", "url", "rule"),
    [
        (f"{USER}, 'passwd' = 's3cr3t'", URL, "did you mean password, got passwd"),
        (f"{USER}, 'password' 's3cr3t'", URL, "= is missing here, got password"),
        (f"{USER}, 'password' = s3cr3t", URL, "single quotes, got password"),
        (f"{USER}, 'password' = 'a' 's3cr3t'", URL, "is missing here, got password"),
        ("'password' = 's3cr3t'", URL, "'password' needs 'username'"),
        (USER, "jdbc:postgresql://u:a@s3cr3t@db/x", "@ is %40"),
        (USER, "jdbc:mysql://u:s3cr3t@db/x", "got mysql"),
    ],
)
def test_errors_have_no_password(more: str, url: str, rule: str) -> None:
    with pytest.raises(SqlError, match=rule) as error:
        script(more, url).write_stream("not made")
    assert "s3cr3t" not in str(error.value)


def test_a_script_does_not_show_its_text() -> None:
    assert "s3cr3t" not in repr(script(f"{USER}, 'password' = 's3cr3t'"))
