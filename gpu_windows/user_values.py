"""Values that users' functions and operators exchange: copies, or read-only arrays.

Results of a function are copied, because it may continue to use them. Arguments of a function are
copies, too, or read-only arrays. So neither side can change values of the other.
"""

from __future__ import annotations

from array import array
from collections.abc import KeysView, Mapping, Sequence, Set, ValuesView
from copy import deepcopy
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from operator import index
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.rules import LONG_MAX, LONG_MIN

Array = TypeVar("Array", bound=NDArray[Any])

#: Classes of immutable values.
_CONSTANTS = frozenset(
    {int, float, bool, str, bytes, type(None), Decimal, date, datetime, time, timedelta}
)
#: Other immutable classes, which subclasses of values may have.
_UNCHANGING = (*_CONSTANTS, np.generic, pa.Scalar)


def copy_value(value: Any) -> Any:
    """Return a value that nobody else can change: mutable parts are copied, at any depth.

    Parameters
    ----------
    value : object
        A result of a function, or a stored value that it is given.

    Returns
    -------
    object
        The value, if it is immutable. Else a copy: bytes as ``bytes``; sets, views and other
        sequences as a list.

    Examples
    --------
    >>> copy_value({"raw": bytearray(b"x"), "n": 1})
    {'raw': b'x', 'n': 1}
    """
    if value.__class__ in _CONSTANTS:
        return value
    if isinstance(value, Mapping):
        return {name: copy_value(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return value if are_immutable(value) else tuple(map(copy_value, value))
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, memoryview):
        return value.tobytes() if value.itemsize == 1 else value.tolist()
    if isinstance(value, _UNCHANGING):
        return value
    if isinstance(value, Set | KeysView | ValuesView | Sequence | array):
        return [copy_value(each) for each in value]
    try:
        return deepcopy(value)
    except TypeError:  # a generator, a lock: no value of a declared type, which is said later
        return value


def are_immutable(values: Sequence[Any]) -> bool:
    """Return whether all values are immutable; faster than `copy_value`."""
    return _CONSTANTS.issuperset(map(type, values))


def copy_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return values of a row that nobody else can change; see `copy_value`."""
    return values if are_immutable(values) else tuple(map(copy_value, values))


def copy_table(table: pa.Table) -> pa.Table:
    """Return a table that shares no buffer with others.

    Arrow tables share the NumPy arrays that they are made of, which their owner may change.
    """
    if table.num_columns == 0:
        return table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def to_tick(value: Any) -> int | None:
    """Return a time that a function returned, in ticks; None if it is not an integer of 64 bits."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        tick = index(value)
    except TypeError:  # a float, which may be NaN or have a fraction, text, None
        return None
    return tick if LONG_MIN <= tick <= LONG_MAX else None


def as_read_only(values: Array) -> Array:
    """Return a view of an array for a function: writing into it raises `ValueError`."""
    view = values.view()
    view.flags.writeable = False
    return view


def make_read_only(batch: Any) -> None:
    """Make the arrays of a frozen dataclass read only, before a function is given it."""
    for each in fields(batch):
        value = getattr(batch, each.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(batch, each.name, as_read_only(value))
