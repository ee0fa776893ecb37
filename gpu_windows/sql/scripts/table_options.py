"""The options of a table, and errors that name the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gpu_windows.errors import QueryError, SqlError, did_you_mean
from gpu_windows.expressions.sql_text import error_at
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.formats import Format, read_format

_N = TypeVar("_N", int, float)
#: Options that are followed, or that change how Flink runs a table and not its rows; those that
#: end in a dot or a dash are beginnings. Options of formats: `gpu_windows.sql.scripts.formats`.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "filesystem": (
        "path", "source.monitor-interval", "sink.rolling-policy.", "sink.partition-commit.",
        "auto-compaction", "compaction.",
    ),
    "kafka": (
        "topic", "topic-pattern", "properties.", "scan.startup.mode",
        "scan.startup.timestamp-millis", "scan.topic-partition-discovery.interval",
        "sink.partitioner", "sink.transactional-id-prefix",
    ),
    "jdbc": (
        "url", "table-name", "username", "password", "driver", "connection.max-retry-timeout",
        "sink.buffer-flush.", "sink.max-retries", "scan.", "lookup.",
    ),
    "datagen": ("rows-per-second", "number-of-rows"),
    "print": ("print-identifier",),
    "blackhole": (),
}  # fmt: skip
_GUARANTEE = "sink.delivery-guarantee"
_OF_ALL = ("connector", "property-version", "scan.parallelism", "sink.parallelism")
_OF_FORMATS = ("format", "value.format")
_OF_FIELDS = ("kind", "min", "max", "length", "start", "end", "max-past")


@dataclass(frozen=True)
class TableOptions:
    """Reads the options of a table.

    Parameters
    ----------
    table : TableDefinition
    """

    table: TableDefinition

    @property
    def format(self) -> Format:
        """The format of its rows.

        Raises
        ------
        SqlError
            If it is not one that is read.
        """
        try:
            return read_format(self.table.options)
        except QueryError as error:
            raise self.error(error.rule, str(error.value)) from error

    @property
    def path(self) -> str:
        """The path of its files."""
        return self.require("path").removeprefix("file://")

    @property
    def kafka(self) -> dict[str, str]:
        """The options of Spark's connector for ``properties.*`` of Flink's."""
        self.require("properties.bootstrap.servers")
        prefix, own = "properties.", ("properties.group.id",)
        return {
            f"kafka.{name.removeprefix(prefix)}": value
            for name, value in self.table.options.items()
            if name.startswith(prefix) and name not in own
        }

    def check(self) -> None:
        """Raise `SqlError` for an option that is neither followed nor without effect."""
        for name, value in self.table.options.items():
            if not self._is_covered(name, value):  # the value may be a password
                near = did_you_mean(name, [each for each in self._names if each[-1] != "."])
                option = f"{name} = {value}" if name == _GUARANTEE else name
                raise self.error(f"this option is not covered{near}", option, name)

    @property
    def _names(self) -> list[str]:
        """The names of options that it may have; those that end in a dot are beginnings."""
        kind = str(self.table.connector)
        names = [*_OF_ALL, *_OPTIONS[kind]]
        if kind in ("filesystem", "kafka"):
            names += _OF_FORMATS
        if kind == "kafka":
            names += ["properties.bootstrap.servers", "properties.group.id"]
        if kind == "datagen":
            names += [f"fields.{c.name}.{each}" for c in self.table.columns for each in _OF_FIELDS]
        return names

    def _is_covered(self, name: str, value: str) -> bool:
        names, kind = self._names, self.table.connector
        if name in names or any(name.startswith(each) for each in names if each[-1] == "."):
            return True
        if kind == "kafka" and name == _GUARANTEE:
            return value != "exactly-once"
        own = self.get("format", self.get("value.format"))
        is_of_format = bool(own) and name.removeprefix("value.").startswith(f"{own}.")
        return is_of_format and kind != "datagen"

    def number(self, name: str, default: _N, make: Callable[[str], _N]) -> _N:
        """Return an option that is a number.

        Raises
        ------
        SqlError
            If it is another text.
        """
        text = self.table.options.get(name)
        try:
            return default if text is None else make(text)
        except ValueError:
            raise self.error("this option is a number", f"{name} = {text}") from None

    def get(self, name: str, default: str = "") -> str:
        """Return an option, or a default."""
        return self.table.options.get(name, default)

    def require(self, name: str) -> str:
        """Return an option.

        Raises
        ------
        SqlError
            If it is missing.
        """
        if name not in self.table.options:
            raise self.error("WITH lacks an option", name)
        return self.table.options[name]

    def error(self, rule: str, value: str, option: str | None = None) -> SqlError:
        """Return an error at an option, if it is in the text, else at the name of the table."""
        script, place = self.table.place.script, self.table.place.start
        if option is not None:
            texts = (each.replace("'", "''") for each in (option, self.get(option)))
            written = r"\s*=\s*".join(f"'{re.escape(each)}'" for each in texts)
            places = [found.start() for found in re.finditer(written, script)]
            place = next((each for each in places if each > place), (*places, place)[0])
        return error_at(script, place, f"table {self.table.name}: {rule}", value)


@dataclass(frozen=True)
class SparkOptions(TableOptions):
    """Reads the options of a table whose rows Spark may read.

    Parameters
    ----------
    table : TableDefinition
    session : SparkSession, optional
    is_streaming : bool
    """

    session: Any
    is_streaming: bool

    @property
    def reader(self) -> Any:
        """The reader of its rows: of a stream, or of all rows."""
        return self.session.readStream if self.is_streaming else self.session.read
