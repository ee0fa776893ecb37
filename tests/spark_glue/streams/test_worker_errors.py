"""What a worker raised is found in what Spark says."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException

from gpu_windows import errors
from gpu_windows.spark_glue.streams.worker_errors import find_worker_error

HEAD = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n x\n"
FAILED = errors.FunctionFailedError(
    "F.process, at key k=1", "KeyError: 'v'", trace="  File y\n    z"
)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"{HEAD}gpu_windows.errors.FunctionFailedError: {FAILED}\n", type(FAILED), str(FAILED)),
        (
            f"{HEAD}gpu_windows.errors.FunctionFailedError: {FAILED}\n SQLSTATE: 38000",
            type(FAILED),
            str(FAILED),
        ),
        (
            f"{HEAD}gpu_windows.errors.ExpressionError: two\nlines\n\n\tat org.apache.x(y)\n",
            errors.ExpressionError,
            "two\nlines",
        ),
    ],
)
def test_the_error_is_found(text: str, kind: type[Exception], message: str) -> None:
    found = find_worker_error(PythonException(text))
    assert type(found) is kind
    assert str(found) == message
    assert found.__traceback__ is None


@pytest.mark.parametrize(
    "error",
    [
        PythonException(f"{HEAD}ValueError: gpu_windows.errors.ExpressionError: no"),
        PythonException(f"{HEAD}gpu_windows.errors.annotations: no"),
        PythonException(f"{HEAD}gpu_windows.errors.Unknown: no"),
        errors.QueryError("a rule"),
    ],
)
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    assert find_worker_error(error) is None
