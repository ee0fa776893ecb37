"""The declarations of process functions, over single rows or batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gpu_windows.errors import InvalidFunctionError
from gpu_windows.vocabulary.rich_functions import Closable, HasSideOutputs, declaration


def check_state_types(types: Any, owner: str, what: str = "state") -> None:
    """Raise `InvalidFunctionError` unless names are mapped to Arrow types.

    ``what``: the attribute of the owner that declares it.
    """
    rule = f"{owner}.{what} maps names of columns to Arrow types, such as pa.int64()"
    if not isinstance(types, Mapping):
        raise InvalidFunctionError(rule, value=repr(types))
    for name, dtype in types.items():
        if not isinstance(name, str) or not isinstance(dtype, pa.DataType):
            raise InvalidFunctionError(rule, value=f"{name!r}: {dtype!r}")


class ProcessDeclarations(Closable, HasSideOutputs):
    """The declarations of functions over rows of keys, to be overridden."""

    @declaration
    def state(self) -> Mapping[str, Any]:
        """State of each key, by name."""
        return {}

    @declaration
    def uses_processing_time(self) -> bool:
        """Whether the function sets timers of processing time."""
        return False
