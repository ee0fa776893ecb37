"""Errors in users' functions: which function failed, at which input, and in which line."""

from __future__ import annotations

import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gpu_windows.errors import (
    FunctionFailedError,
    GpuWindowsError,
    InvalidFunctionError,
    StateError,
    did_you_mean,
)
from gpu_windows.vocabulary.windows import GlobalWindow, TimeWindow

#: Where files are that have no line of the user's: this package, Python, compiled modules, and the
#: frozen modules that Python starts with.
_PACKAGE, _PYTHON = (
    f"{Path(file).parent}{os.sep}" for file in (Path(__file__).parent, os.__file__)
)
#: What Python says where a `timedelta` is added to an integer, or compared with one.
_TIME_AND_DURATION = re.compile(
    r"'int' and '(datetime\.)?timedelta'|'(datetime\.)?timedelta' and 'int'"
)
_COMPILED, _FROZEN = (".pyx", ".pxi"), "<frozen"


def failure(
    error: Exception, where: str, function: Callable[..., Any] | None = None
) -> GpuWindowsError:
    """Return an error that says which function failed, and at which input (``where``).

    ``function``: the one that gave a wrong result, whose line is told unless a line raised it.
    """
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _is_of_user(each)]
    if isinstance(error, InvalidFunctionError):
        line = "" if function is None else line_of(function)
        if frames:
            line = _show_line(frames[-1].filename, frames[-1].lineno)
        rule = f"{error.rule} (in {where}{line})"
        return InvalidFunctionError(rule, value=error.value, column=error.column)
    cause = f"{type(error).__name__}: {error}{_hint(error)}"
    if not frames:
        return FunctionFailedError(where, cause)
    line = f"{cause}{_show_line(frames[-1].filename, frames[-1].lineno)}"
    trace = "".join(traceback.format_list(frames)).rstrip()
    return FunctionFailedError(where, line, trace=trace)


def line_of(function: Callable[..., Any]) -> str:
    """Return `` (job.py, line 7)``, where a function begins; nothing if it has no line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else _show_line(code.co_filename, code.co_firstlineno)


def _show_line(file: str, number: int | None) -> str:
    return f" ({Path(file).name}, line {number})"


def _hint(error: Exception) -> str:
    """Return what to write: for a duration added to a time, and for a name that is like another."""
    if isinstance(error, AttributeError) and error.name is not None:
        return did_you_mean(error.name, (name for name in dir(error.obj) if name[0] != "_"))
    if isinstance(error, TypeError) and _TIME_AND_DURATION.search(str(error)):
        return "; times are microseconds: context.after(duration) of a process function adds one"
    return ""


def _is_of_user(frame: traceback.FrameSummary) -> bool:
    file = frame.filename
    is_installed = "site-packages" in file or "dist-packages" in file or file.endswith(_COMPILED)
    return not is_installed and not file.startswith((_PACKAGE, _PYTHON, _FROZEN))


@contextmanager
def errors_located(
    function: str, at: Callable[[], str], called: Callable[..., Any] | None = None
) -> Iterator[None]:
    """Make errors say in which function they were raised, and at which input.

    Parameters
    ----------
    function : str
        The function and its method: ``MyFunction.process``.
    at : callable
        Returns a description of the input.
    called : callable, optional
        The method, whose line is told if its result is wrong.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        yield
    except StateError:
        raise
    except Exception as error:
        raise failure(error, f"{function}, at {at()}", called) from error


def call_user(function: Callable[..., Any], where: Callable[[], str], *arguments: Any) -> Any:
    """Call a user's function and return its result; errors of this package stay as they are.

    Parameters
    ----------
    function : callable
    where : callable
        Returns a description of the function and the input.
    *arguments
        Its arguments.

    Raises
    ------
    FunctionFailedError
    """
    try:
        return function(*arguments)
    except GpuWindowsError:
        raise
    except Exception as error:
        raise failure(error, where()) from error


def describe_pane(key: Mapping[str, Any], window: object) -> str:
    """Describe a key and its window; ``key``: as functions see it."""
    return f"{describe_key(key)}, {_describe_window(window)}"


def _describe_window(window: object) -> str:
    if isinstance(window, TimeWindow):
        return f"window {describe_time(window.start)} to {describe_time(window.end)}"
    return "the global window" if isinstance(window, GlobalWindow) else repr(window)


def describe_time(ticks: int) -> str:
    """Describe a time in ticks, in UTC; as a number if its year has not four digits."""
    try:
        return str(datetime(1970, 1, 1) + timedelta(microseconds=ticks))  # noqa: DTZ001 - or local
    except OverflowError:
        return str(ticks)


def describe_key(key: Mapping[str, Any]) -> str:
    """Describe a key: names of key columns to values."""
    return "key " + ", ".join(f"{name}={part!r}" for name, part in key.items()) if key else "no key"


def describe_row(row: Mapping[str, Any], time: int | None = None) -> str:
    """Describe a row as a function sees it, and its event time in ticks, if it has one."""
    seen = f"row {row!r}" if row else "a row of no columns: the query names none for it"
    return seen if time is None else f"{seen}, time {describe_time(time)}"
