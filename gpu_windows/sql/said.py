"""A value of the API with the Python that makes it, so that both are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_windows.errors import SqlError
from gpu_windows.spark_glue.columns.expressions import refuses_as_query

_INDENT = "\n    "
_LONG = 76


@dataclass(frozen=True)
class Said:
    """A value, and the Python that makes it.

    Parameters
    ----------
    value : object
    text : str
    """

    value: Any
    text: str

    def call(self, method: str, /, *arguments: Any, **named: Any) -> Said:
        """Return what a method of the value gives; arguments may be `Said`, too."""
        try:
            with refuses_as_query():
                value = getattr(self.value, method)(
                    *map(_value, arguments), **{name: _value(each) for name, each in named.items()}
                )
        except SqlError as error:  # its place is in an expression, not in the whole text
            raise SqlError(error.rule, value=error.value, column=error.column) from error
        return Said(value, f"{self.text}{_INDENT}.{method}({_listed(arguments, named)})")


def made(text: str, function: Any, /, *arguments: Any, **named: Any) -> Said:
    """Return what a function gives, which is called so in Python."""
    value = function(
        *map(_value, arguments), **{name: _value(each) for name, each in named.items()}
    )
    return Said(value, f"{text}({_listed(arguments, named)})")


def _value(each: Any) -> Any:
    if isinstance(each, Said):
        return each.value
    if isinstance(each, list):
        return [_value(one) for one in each]
    if isinstance(each, dict):
        return {name: _value(one) for name, one in each.items()}
    return each


def _text(each: Any) -> str:
    if isinstance(each, Said):
        return each.text
    if isinstance(each, list):
        return f"[{', '.join(map(_text, each))}]"
    if isinstance(each, dict):
        return f"{{{', '.join(f'{name!r}: {_text(one)}' for name, one in each.items())}}}"
    return repr(each)


def _listed(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    plain = {name: each for name, each in named.items() if name.isidentifier()}
    odd = {name: each for name, each in named.items() if name not in plain}
    parts = [*map(_text, arguments), *(f"{name}={_text(each)}" for name, each in plain.items())]
    if odd:
        parts.append(f"**{_text(odd)}")
    whole = ", ".join(parts)
    if len(whole) <= _LONG:
        return whole
    separator = f",{_INDENT}    "
    return f"{_INDENT}    {separator.join(parts)},{_INDENT}"
