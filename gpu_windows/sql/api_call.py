"""An API value paired with the Python code that produces it, which `explain` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_windows.errors import SqlError
from gpu_windows.spark_glue.columns.expressions import spark_errors_as_query_errors

_INDENT = "\n    "
_MAX_LINE = 76


@dataclass(frozen=True)
class ApiCall:
    """A value, and the Python code that produces it.

    Parameters
    ----------
    value : object
    code : str
    """

    value: Any
    code: str

    def call(self, method: str, /, *arguments: Any, **keywords: Any) -> ApiCall:
        """Call a method of the value; arguments may contain `ApiCall`."""
        try:
            with spark_errors_as_query_errors():
                value = getattr(self.value, method)(
                    *map(_value, arguments),
                    **{name: _value(each) for name, each in keywords.items()},
                )
        except SqlError as error:  # its position is within an expression, not the statement
            raise SqlError(error.rule, value=error.value, column=error.column) from error
        return ApiCall(
            value, f"{self.code}{_INDENT}.{method}({_format_arguments(arguments, keywords)})"
        )

    def on_one_line(self) -> ApiCall:
        """Return the same with its code on one line."""
        return ApiCall(self.value, "".join(part.strip() for part in self.code.splitlines()))


def call_api(function_name: str, function: Any, /, *arguments: Any, **keywords: Any) -> ApiCall:
    """Call a function by its public name; arguments may contain `ApiCall`."""
    value = function(
        *map(_value, arguments), **{name: _value(each) for name, each in keywords.items()}
    )
    return ApiCall(value, f"{function_name}({_format_arguments(arguments, keywords)})")


def _value(each: Any) -> Any:
    if isinstance(each, ApiCall):
        return each.value
    if isinstance(each, list):
        return [_value(one) for one in each]
    if isinstance(each, dict):
        return {name: _value(one) for name, one in each.items()}
    return each


def _format(each: Any) -> str:
    if isinstance(each, ApiCall):
        return each.code
    if isinstance(each, list):
        return f"[{', '.join(map(_format, each))}]"
    if isinstance(each, dict):
        return f"{{{', '.join(f'{name!r}: {_format(one)}' for name, one in each.items())}}}"
    return repr(each)


def _format_arguments(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    plain = {name: each for name, each in keywords.items() if name.isidentifier()}
    odd = {name: each for name, each in keywords.items() if name not in plain}
    parts = [*map(_format, arguments), *(f"{name}={_format(each)}" for name, each in plain.items())]
    if odd:
        parts.append(f"**{_format(odd)}")
    whole = ", ".join(parts)
    if len(whole) <= _MAX_LINE:
        return whole
    separator = f",{_INDENT}    "
    return f"{_INDENT}    {separator.join(parts)},{_INDENT}"
