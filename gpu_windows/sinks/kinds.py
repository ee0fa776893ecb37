"""Where the results of streaming queries go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from gpu_windows.errors import QueryError

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame


@dataclass(frozen=True)
class ParquetSink:
    """A sink that writes Parquet, of which readers see each micro-batch whole and once.

    The files of a micro-batch are never touched again, and count once a small record of it is
    there, which is written last. So read them by `gpu_windows.read_output` and
    `gpu_windows.read_output_stream`, which know the records: other files may lie beside them, of
    a micro-batch that was interrupted.

    Parameters
    ----------
    path : str or os.PathLike
        Of a folder that Spark's workers reach. It belongs to one query, and another is refused.
    takes_over : bool
        Whether a query of another checkpoint may go on where one has written: its results come
        after those that are there, which stay, and the other query is refused from then on.

    Raises
    ------
    QueryError
        If the path is none.
    """

    path: str | PathLike[str]
    takes_over: bool = False

    def __post_init__(self) -> None:
        path: Any = self.path
        takes_over: Any = self.takes_over
        text = fspath(path) if isinstance(path, str | PathLike) else None
        if not isinstance(text, str) or not text:
            raise QueryError("the path of a sink must be text, or os.PathLike", value=repr(path))
        if not isinstance(takes_over, bool):
            raise QueryError("takes_over is True or False", value=repr(takes_over))
        object.__setattr__(self, "path", text.rstrip("/") or text)


@dataclass(frozen=True)
class Upsert:
    """A sink that keeps one result for each key and window, the latest: see `upsert`."""

    merge: Callable[[DataFrame, tuple[str, ...], int], None]
    late: Callable[[DataFrame, int], None] | None = None

    def __post_init__(self) -> None:
        check_takes(self.merge, "results", "columns", "number")
        if self.late is not None:
            check_takes(self.late, "late rows", "number")


def checked_sink(sink: Any) -> Any:
    """Return a sink, a `ParquetSink` of a path.

    Raises
    ------
    QueryError
        If it is none.
    """
    if isinstance(sink, str | PathLike):
        return ParquetSink(sink)
    if not isinstance(sink, ParquetSink | Upsert):
        check_takes(sink, "results", "late rows", "number")
    return sink


def check_takes(function: Any, *arguments: str) -> None:
    """Raise `QueryError` for what cannot be called with some arguments."""
    rule = f"a sink is a path, or a function of {', '.join(arguments)}"
    if not callable(function):
        raise QueryError(rule, value=repr(function))
    try:
        takes = signature(function)
    except ValueError:  # of a builtin nobody knows
        return
    try:
        takes.bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise QueryError(rule, value=f"{name}{takes}") from error


def upsert(
    merge: Callable[[DataFrame, tuple[str, ...], int], None],
    *,
    late: Callable[[DataFrame, int], None] | None = None,
) -> Upsert:
    """Return a sink for a table in which a window's later firing replaces its earlier one.

    Of the firings of a window in a micro-batch ``merge`` is given the last one, so that it may be a
    MERGE of Delta Lake or Iceberg; written twice, after a restart, it changes nothing. A session
    that has grown is another window: what it fired before stays.

    Parameters
    ----------
    merge : callable
        Takes the results, the names of the columns that tell rows apart (the keys, which may be
        null: compare with ``<=>``, and the window's bounds), and the number of the micro-batch.
    late : callable, optional
        Takes the late and rejected rows, and the number of the micro-batch. Default: they are
        counted, not written.

    Raises
    ------
    QueryError
        If one of them cannot be called so.
    """
    return Upsert(merge, late)
