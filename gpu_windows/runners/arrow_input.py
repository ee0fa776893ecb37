"""Tables of other libraries as Arrow tables: pandas, Polars, DuckDB, and whatever gives Arrow."""

from __future__ import annotations

import re
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard
from weakref import ref

import pyarrow as pa

from gpu_windows.errors import NameClashError, QueryError, ReadTwiceError
from gpu_windows.runners.row_stream import READ_TWICE

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame

#: What pandas calls the columns of an index without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
#: Where Arrow names the column of pandas whose values it cannot convert.
_COLUMN = re.compile(r"Conversion failed for column (.*) with type")
#: Streams that gave rows, by their ids, while they live.
_has_given: dict[int, ref[object]] = {}
_LOCK = RLock()


class GivesArrow(Protocol):
    """A table of another library, which gives its rows by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with a stream of batches."""


def gives_arrow(source: object) -> TypeGuard[GivesArrow]:
    """Whether something gives its rows by Arrow's PyCapsule interface."""
    return hasattr(source, "__arrow_c_stream__")


def is_data_frame(source: object) -> TypeGuard[DataFrame]:
    """Whether something is a DataFrame of Spark, classic or Connect."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def arrow_table(source: Any) -> pa.Table:
    """Return the rows of an object with Arrow's PyCapsule interface as a table.

    An index of pandas is a column if it has a name.

    Raises
    ------
    QueryError
        If it is not a table, or a column has values of several types.
    NameClashError
        If two columns have one name.
    ReadTwiceError
        If it is a stream that was read before, and has no rows now.
    """
    try:
        table = pa.table(source)
    except ValueError as error:  # of pandas; also an error of Arrow
        raise _error_of_values(error, type(source).__name__) from error
    except (TypeError, pa.ArrowException) as error:
        rule = "stream takes tables: an object with __arrow_c_stream__ must have columns"
        raise QueryError(rule, value=f"{type(source).__name__}: {error}") from error
    _check_first_reading(source, len(table))
    unnamed = [name for name in table.column_names if _UNNAMED_INDEX.fullmatch(name)]
    return table.drop_columns(unnamed).replace_schema_metadata(None)


def _error_of_values(error: ValueError, kind: str) -> QueryError:
    """Return the error for a table of pandas that Arrow refuses."""
    text = " ".join(map(str, error.args))
    if text.startswith("Duplicate column names"):
        return NameClashError("a table has several columns of one name: rename one", value=text)
    column = _COLUMN.search(text)
    if column is None:
        return QueryError("stream takes tables that Arrow can convert", value=f"{kind}: {text}")
    rule = "a column has values of one type: convert it first, such as by astype(str)"
    return QueryError(rule, value=str(error.args[0]), column=column[1])


def _check_first_reading(source: object, rows: int) -> None:
    """Raise `ReadTwiceError` for a stream that was read before; unless it has a length."""
    if hasattr(source, "__len__"):
        return
    number = id(source)
    with _LOCK:
        if rows:
            with suppress(TypeError):  # which nothing can refer to weakly
                _has_given[number] = ref(source, lambda _: _has_given.pop(number, None))
        elif number in _has_given:
            value = f"a {type(source).__name__} that gave rows before and gives none now"
            raise ReadTwiceError(READ_TWICE, value=value)
