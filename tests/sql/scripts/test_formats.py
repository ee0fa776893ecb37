"""Characters of CSV are Flink's, or are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gpu_windows.errors import QueryError
from gpu_windows.sql.scripts.arrow_files import read_files
from gpu_windows.sql.scripts.formats import Format, read_format


def _csv(**options: str) -> Format:
    named = {f"csv.{name.replace('_', '-')}": value for name, value in options.items()}
    return read_format({"format": "csv", **named})


@pytest.mark.parametrize(
    ("written", "delimiter"),
    [
        ("§", "§"),
        (r"\u00A7", "§"),
        (r"\uu00a7", "§"),
        (r"\t", "\t"),
        (r"\001", "\x01"),
        (r"\\", "\\"),
        (r"\|", "|"),
        (";", ";"),
    ],
)
def test_a_delimiter_may_be_an_escape(written: str, delimiter: str) -> None:
    assert _csv(field_delimiter=written).delimiter == delimiter


@pytest.mark.parametrize("written", ["", "||", "§x", r"\u00A7x", "\U0001f600", r"\t\t"])
def test_a_delimiter_is_one_character(written: str) -> None:
    with pytest.raises(QueryError, match="field-delimiter is one character"):
        _csv(field_delimiter=written)


def test_a_quote_is_another_character() -> None:
    with pytest.raises(QueryError, match="quote-character is one character"):
        _csv(quote_character="''")
    with pytest.raises(QueryError, match="are two characters"):
        _csv(quote_character=",")
    assert _csv(quote_character=",", disable_quote_character="true").quote is None


def test_arrow_reads_delimiters_of_ascii(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1\t 2\n")
    schema = pa.schema({"a": pa.int32(), "b": pa.string()})
    found = read_files(str(path), _csv(field_delimiter=r"\t"), schema)
    assert found.to_pylist() == [{"a": 1, "b": " 2"}]
    with pytest.raises(QueryError, match="read it on Spark"):
        read_files(str(path), _csv(field_delimiter="§"), schema)
