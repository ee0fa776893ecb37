"""Formats of rows: Parquet, CSV, JSON and raw, with Flink's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_windows.errors import QueryError, did_you_mean

_FORMATS = ("parquet", "csv", "json", "raw")
_OPTIONS = {
    "csv": ("field-delimiter", "null-literal", "ignore-parse-errors", "disable-quote-character",
            "quote-character"),
    "json": ("ignore-parse-errors", "fail-on-missing-field", "timestamp-format.standard",
             "map-null-key.mode", "map-null-key.literal", "encode.decimal-as-plain-number"),
}  # fmt: skip


@dataclass(frozen=True)
class Format:
    """How rows are written in files or records.

    Parameters
    ----------
    name : {"parquet", "csv", "json", "raw"}
    options : mapping of str to str
        Flink's, without the name of the format.
    """

    name: str
    options: Mapping[str, str]

    @property
    def skips_errors(self) -> bool:
        """Whether fields that cannot be read are null, and records without any are dropped."""
        return self.options.get("ignore-parse-errors", "false").lower() == "true"

    @property
    def has_iso_times(self) -> bool:
        """Whether times have a ``T`` between day and hour."""
        return self.options.get("timestamp-format.standard", "SQL").upper() == "ISO-8601"


def read_format(options: Mapping[str, str]) -> Format:
    """Return the format that options of a table name.

    Raises
    ------
    QueryError
        If there is none, or it is another one, or has an option that is not covered.
    """
    name = options.get("format", options.get("value.format"))
    if name not in _FORMATS:
        rule = f"a format is one of {', '.join(_FORMATS)}{did_you_mean(str(name), _FORMATS)}"
        raise QueryError(rule, value="'format' is missing" if name is None else name)
    own: dict[str, str] = {}
    for key, value in options.items():
        for prefix in (f"{name}.", f"value.{name}."):
            if key.startswith(prefix):
                own[key.removeprefix(prefix)] = value
    unknown = [key for key in own if key not in _OPTIONS.get(name, ())]
    if unknown:
        near = did_you_mean(unknown[0], _OPTIONS.get(name, ()))
        rule = f"this option of a format is not covered{near}"
        raise QueryError(rule, value=f"{name}.{unknown[0]}")
    if own.get("fail-on-missing-field", "false").lower() == "true":
        rule = "a field that a record lacks is null: leave the option out"
        raise QueryError(rule, value=f"{name}.fail-on-missing-field")
    return Format(name, own)
