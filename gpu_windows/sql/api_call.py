"""An API value paired with the Python code that produces it, which `explain` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
                code = f"{self.code}{_INDENT}.{method}"
                return _call(getattr(self.value, method), code, arguments, keywords)
        except SqlError as error:  # its position is within an expression, not the statement
            raise SqlError(error.rule, value=error.value, column=error.column) from error

    def on_one_line(self) -> ApiCall:
        """Return the same with its code on one line."""
        return ApiCall(self.value, "".join(part.strip() for part in self.code.splitlines()))


def call_api(function: Any, /, *arguments: Any, **keywords: Any) -> ApiCall:
    """Call a public function, class or class method; arguments may contain `ApiCall`."""
    public_name = f"gw.{function.__qualname__.rstrip('_')}"
    return _call(function, public_name, arguments, keywords)


def _call(
    function: Any, code: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> ApiCall:
    positional = [*map(_with_code, arguments)]
    by_name = {name: _with_code(each) for name, each in keywords.items()}
    value = function(
        *(each.value for each in positional), **{name: each.value for name, each in by_name.items()}
    )
    return ApiCall(value, f"{code}({_format_arguments(positional, by_name)})")


def _with_code(each: Any) -> ApiCall:
    """Return an argument, which may contain `ApiCall`, with its code."""
    if isinstance(each, ApiCall):
        return each
    if isinstance(each, list):
        items = [*map(_with_code, each)]
        return ApiCall([one.value for one in items], f"[{', '.join(one.code for one in items)}]")
    if isinstance(each, dict):
        by_name = {name: _with_code(one) for name, one in each.items()}
        code = ", ".join(f"{name!r}: {one.code}" for name, one in by_name.items())
        return ApiCall({name: one.value for name, one in by_name.items()}, f"{{{code}}}")
    return ApiCall(each, repr(each))


def _format_arguments(arguments: Sequence[ApiCall], keywords: Mapping[str, ApiCall]) -> str:
    plain = {name: each for name, each in keywords.items() if name.isidentifier()}
    odd = {name: each for name, each in keywords.items() if name not in plain}
    parts = [each.code for each in arguments]
    parts += [f"{name}={each.code}" for name, each in plain.items()]
    if odd:
        parts.append(f"**{_with_code(odd).code}")
    whole = ", ".join(parts)
    if len(whole) <= _MAX_LINE:
        return whole
    separator = f",{_INDENT}    "
    return f"{_INDENT}    {separator.join(parts)},{_INDENT}"
