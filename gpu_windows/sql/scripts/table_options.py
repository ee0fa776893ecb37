"""The options of a table, and errors that name the table."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.errors import QueryError, SqlError
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.formats import Format, read_format
from gpu_windows.sql.scripts.lexer import error_at


@dataclass(frozen=True)
class TableOptions:
    """Reads the options of a table.

    Parameters
    ----------
    script : str
        The whole text, for positions.
    table : TableDefinition
    """

    script: str
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

    def error(self, rule: str, value: str) -> SqlError:
        """Return an error at the name of the table."""
        place = self.table.place
        return error_at(self.script, place.start, f"table {self.table.name}: {rule}", value)
