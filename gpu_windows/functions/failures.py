"""What is told of functions of the user's that raise: which one, and where."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpu_windows.errors import (
    FunctionFailedError,
    GpuWindowsError,
    InvalidFunctionError,
    StateError,
)

#: Where this package is, and Python: neither has a line of the user's, as compiled modules have
#: none, nor what Python is started with.
_OURS, _PYTHON = (f"{Path(file).parent}{os.sep}" for file in (Path(__file__).parent, os.__file__))
_COMPILED, _FROZEN = (".pyx", ".pxi"), "<frozen"


def failure(error: Exception, where: str) -> GpuWindowsError:
    """Return what says which function failed, and at what (``where``)."""
    if isinstance(error, InvalidFunctionError):
        rule = f"{error.rule} (in {where})"
        return InvalidFunctionError(rule, value=error.value, column=error.column)
    return FunctionFailedError(f"in {where}: {type(error).__name__}: {error}{_line(error)}")


def _line(error: Exception) -> str:
    """Return the user's line that raised an error, in words: Spark leaves tracebacks out."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [each for each in frames if _is_theirs(each.filename)]
    return f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else ""


def _is_theirs(file: str) -> bool:
    is_installed = "site-packages" in file or "dist-packages" in file or file.endswith(_COMPILED)
    return not is_installed and not file.startswith((_OURS, _PYTHON, _FROZEN))


@contextmanager
def told(called: str, at: Callable[[], str]) -> Iterator[None]:
    """Have errors say in which function they are raised, and at what.

    Parameters
    ----------
    called : str
        The function and its method: ``MyFunction.process``.
    at : callable
        Returns what it was called with, in words.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        yield
    except StateError:
        raise
    except Exception as error:
        raise failure(error, f"{called}, at {at()}") from error


def call_user(function: Callable[..., Any], where: Callable[[], str], *arguments: Any) -> Any:
    """Call a function of the user's and return what it gives; errors of ours stay as they are.

    Parameters
    ----------
    function : callable
    where : callable
        Returns in words which function it is, and at what it is called.
    *arguments
        What it is called with.

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


def shown_pane(key: Mapping[str, Any], window: object) -> str:
    """Return a key and its window in words; ``key``: as functions see it."""
    return f"{shown_key(key)}, {window}"


def shown_key(key: Mapping[str, Any]) -> str:
    """Return a key in words: names of key columns to values."""
    return "key " + ", ".join(f"{name}={part!r}" for name, part in key.items()) if key else "no key"


def shown_row(row: Mapping[str, Any]) -> str:
    """Return a row in words: what a function sees of it."""
    return f"row {row!r}" if row else "a row of no columns: the query names none for it"
