"""Typed errors: each states the rule that was broken, the offending value and the column."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec


class GpuWindowsError(Exception):
    """Base class of every error that this package raises on purpose.

    Parameters
    ----------
    rule : str
        The rule that was broken, as a sentence fragment ("slide must be positive").
    value : object, optional
        The offending value.
    column : str, optional
        The column that the value comes from.
    """

    def __init__(self, rule: str, *, value: object = None, column: str | None = None) -> None:
        self.rule = rule
        self.value = value
        self.column = column
        where = "" if column is None else f" (column {column!r})"
        got = "" if value is None else f", got {value}"
        super().__init__(f"{rule}{got}{where}")


class QueryError(GpuWindowsError):
    """A query without a meaning; raised on the driver while the query is built."""


class MissingArgumentError(QueryError, TypeError):
    """A call without an argument that it needs."""


class UnknownArgumentError(QueryError, TypeError):
    """A call with an argument that it does not take, with what it takes."""


class MissingStepError(QueryError, AttributeError):
    """A step that needs an earlier one, which is missing: ``aggregate`` before ``window``."""


class InvalidDurationError(QueryError):
    """A duration that cannot be parsed, or is not a whole number of ticks."""


class InvalidWindowError(QueryError):
    """A window assigner whose size, slide, step or offset breaks Flink's rules."""


class InvalidTriggerError(QueryError):
    """A trigger with a parameter out of range, or one the assigner cannot work with."""


class InvalidEvictorError(QueryError):
    """An evictor with a parameter out of range."""


class InvalidFrameError(QueryError):
    """A frame of an OVER aggregate that ends before it begins, or with a bound out of range."""


class InvalidPatternError(QueryError):
    """A pattern that cannot be parsed, or that no automaton of Flink's matches."""


class InvalidFunctionError(QueryError):
    """A window function that the window cannot work with, or that breaks its own declaration."""


class InvalidOptionError(QueryError):
    """An option with a value that it does not take."""


class ColumnNotFoundError(QueryError):
    """A column that the input does not have."""


class ColumnTypeError(QueryError):
    """A column whose type does not fit its use (event time, key, aggregate argument)."""


class PrecisionError(QueryError):
    """A time or duration finer than a microsecond where it would have to be rounded."""


class ColumnNameError(QueryError):
    """A column whose name PySpark cannot send to Python."""


class NameClashError(QueryError):
    """Two columns of the result would have the same name."""


class UnsupportedAggregateError(QueryError):
    """An aggregate that the type of its argument does not support."""


class UnsupportedQueryError(QueryError):
    """A query that is meaningful but refused by the planner, with the reason."""


class MissingExtraError(QueryError, ImportError):
    """A library is missing that an extra of this package installs; the message has the command."""


def require_extra(library: str, extra: str, use: str) -> None:
    """Raise `MissingExtraError` if a library is not installed.

    Parameters
    ----------
    library : str
        Its module.
    extra : str
        The extra of this package that installs it.
    use : str
        What needs it.
    """
    if find_spec(library) is None:
        rule = f"{use} needs {library}, which is missing: pip install 'gpu-windows[{extra}]'"
        error = MissingExtraError(rule)
        error.name = library  # as of an ImportError
        raise error


class SparkUnavailableError(GpuWindowsError):
    """Spark did not start on this machine."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``": did you mean X"`` for a name that is like one of others, in any case, or ""."""
    by_lower = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), by_lower, 1, 0.7)
    return f": did you mean {by_lower[near[0]]}" if near else ""


class ReadTwiceError(QueryError):
    """A second reading of an input that can be read once, such as a `pyarrow.RecordBatchReader`."""


class SqlError(QueryError):
    """SQL that cannot be parsed, or is not supported; it says where in the text.

    Parameters
    ----------
    rule, value
        See `GpuWindowsError`.
    line, position : int, optional
        Line in the text, and position in the line, from 1.
    """

    def __init__(
        self,
        rule: str,
        *,
        value: object = None,
        column: str | None = None,
        line: int | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(rule, value=value, column=column)
        self.line, self.position = line, position
        if line is not None:
            self.args = (f"{self.args[0]} (line {line}, position {position} of the SQL)",)


class SkipError(InvalidPatternError):
    """A match after which the search cannot continue as AFTER MATCH says; raised at the match."""


class ExpressionError(GpuWindowsError):
    """An expression that has no value for a row, as Spark says in ANSI mode: a division by zero."""


class GapError(GpuWindowsError):
    """A key has more windows without rows between two with rows than gap filling makes."""


class DeviceUnavailableError(GpuWindowsError):
    """``device="cuda"`` was asked for where no usable CUDA device or package is present."""


class DeviceMemoryError(GpuWindowsError):
    """A batch does not fit into the memory of the CUDA device; a smaller one may."""


class DeviceFailedError(GpuWindowsError):
    """The CUDA device failed, and no later call of this process can succeed; end it.

    Spark ends the Python worker of a task that raises, and runs the task again in another one. With
    ``device="auto"`` a process of your own continues on the CPU.
    """


class WorkerPythonError(GpuWindowsError):
    """The Python of Spark's workers lacks this package, or a module that a function needs.

    Raised on the driver if workers are on this machine, else by the worker.
    """


class FunctionFailedError(GpuWindowsError):
    """A user's function raised an error.

    The first line has function, key, row or timer, the error and its place in the user's code; the
    lines below are the user's part of the traceback.

    Parameters
    ----------
    function : str
        The function and its input: ``MyFunction.process, at key k='a'``.
    cause : str
        The error and its place: ``KeyError: 'v' (job.py, line 7)``.
    trace : str
        Lines of a traceback.
    """

    def __init__(self, function: str, cause: str, *, trace: str = "") -> None:
        self.function, self.cause, self.trace = function, cause, trace
        super().__init__(f"in {function}: {cause}")
        if trace:
            self.args = (f"{self.args[0]}\n{trace}",)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by parameters."""
        return partial(type(self), trace=self.trace), (self.function, self.cause)

    def at_place(self, place: str) -> FunctionFailedError:
        """Return the error with a description of the input added."""
        return FunctionFailedError(f"{self.function}, at {place}", self.cause, trace=self.trace)


class OperatorFailedError(GpuWindowsError):
    """An operator is used again after a call of it has failed, or was not drained."""


class LatePartialError(GpuWindowsError):
    """Late rows were aggregated as if on time, so they can no longer be rejected."""


class StateError(GpuWindowsError):
    """State from which no query can resume; base class of the following.

    If it ends a running query, Spark raises a ``StreamingQueryException`` whose text names it.
    """


class StateCorruptedError(StateError):
    """State that differs from what was written."""


class StateVersionError(StateError):
    """State in the format of another version."""


class StateMismatchError(StateError):
    """State of a query other than the one that is started on it."""


class ConcurrentQueryError(StateError):
    """Two drivers run a query on one checkpoint: this one has ended, and its files are ignored."""


class CheckpointError(StateError):
    """A path without a checkpoint of a query of this package, or one that cannot be read."""


class ScanError(GpuWindowsError):
    """Files of a scan that are gone, have changed, or cannot be read exactly; it names the file."""


class OutputError(GpuWindowsError):
    """A path of results that belongs to another query, or has no results."""


class ArrayOverflowError(GpuWindowsError):
    """Strings, binary or lists above the limit of an Arrow array, 2 GiB."""


class ArithmeticOverflowError(GpuWindowsError):
    """An exact result does not fit its SQL type (Spark's ARITHMETIC_OVERFLOW)."""
