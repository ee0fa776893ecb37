"""Errors in users' functions: which function failed, at which input, and in which line."""

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

#: Where files are that have no line of the user's: this package, Python, compiled modules, and the
#: frozen modules that Python starts with.
_PACKAGE, _PYTHON = (
    f"{Path(file).parent}{os.sep}" for file in (Path(__file__).parent, os.__file__)
)
_COMPILED, _FROZEN = (".pyx", ".pxi"), "<frozen"


def failure(error: Exception, where: str) -> GpuWindowsError:
    """Return an error that says which function failed, and at which input (``where``)."""
    if isinstance(error, InvalidFunctionError):
        rule = f"{error.rule} (in {where})"
        return InvalidFunctionError(rule, value=error.value, column=error.column)
    return FunctionFailedError(f"in {where}: {type(error).__name__}: {error}{_line(error)}")


def _line(error: Exception) -> str:
    """Describe the user's line that raised an error: Spark leaves tracebacks out."""
    frames = traceback.extract_tb(error.__traceback__)
    of_user = [each for each in frames if _is_of_user(each.filename)]
    return f" ({Path(of_user[-1].filename).name}, line {of_user[-1].lineno})" if of_user else ""


def _is_of_user(file: str) -> bool:
    is_installed = "site-packages" in file or "dist-packages" in file or file.endswith(_COMPILED)
    return not is_installed and not file.startswith((_PACKAGE, _PYTHON, _FROZEN))


@contextmanager
def errors_located(function: str, at: Callable[[], str]) -> Iterator[None]:
    """Make errors say in which function they were raised, and at which input.

    Parameters
    ----------
    function : str
        The function and its method: ``MyFunction.process``.
    at : callable
        Returns a description of the input.

    Raises
    ------
    FunctionFailedError, InvalidFunctionError
    """
    try:
        yield
    except StateError:
        raise
    except Exception as error:
        raise failure(error, f"{function}, at {at()}") from error


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
    return f"{describe_key(key)}, {window}"


def describe_key(key: Mapping[str, Any]) -> str:
    """Describe a key: names of key columns to values."""
    return "key " + ", ".join(f"{name}={part!r}" for name, part in key.items()) if key else "no key"


def describe_row(row: Mapping[str, Any]) -> str:
    """Describe a row as a function sees it."""
    return f"row {row!r}" if row else "a row of no columns: the query names none for it"
