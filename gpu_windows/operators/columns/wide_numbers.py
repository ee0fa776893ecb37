"""Sums and means of decimals of up to 38 digits, whose values are two words.

A sum is stored as four limbs of 32 bits with their carries, lowest first. Here it is a sign and
digits to base ``2**32``, so that everything fits int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.errors import ArithmeticOverflowError
from gpu_windows.operators.columns.numeric import decimal_array

Ints = NDArray[np.int64]
_BITS, _MASK = 32, (1 << 32) - 1
#: Has more digits than any sum.
_ALL_DIGITS = Context(prec=80)


def sum_of(bound: BoundAggregate, states: Sequence[Sequence[Any]]) -> pa.Array:
    """Return sums as decimals.

    Parameters
    ----------
    bound : BoundAggregate
    states : sequence of sequence
        The limbs, highest first, and the number of values.

    Raises
    ------
    ArithmeticOverflowError
        If a sum has more digits than its type.
    """
    negative, digits, counts = _read(states)
    return _decimals(bound, negative, digits, counts > 0, "sum")


def mean_of(bound: BoundAggregate, states: Sequence[Sequence[Any]]) -> pa.Array:
    """Return means, rounded half away from zero.

    Parameters
    ----------
    bound, states
        See `sum_of`; there are less than ``2**31`` values.

    Raises
    ------
    ArithmeticOverflowError
        If a mean has more digits than its type.
    """
    negative, digits, counts = _read(states)
    some, count = counts > 0, np.maximum(counts, 1)
    more = 10 ** (bound.result_type.scale - bound.argument_type.scale)
    digits = _carry([each * more for each in digits])
    quotient: list[Ints] = []
    rest = np.zeros_like(counts)
    for each in reversed(digits):
        found, rest = np.divmod((rest << _BITS) | each, count)
        quotient.insert(0, found)
    quotient[0] = quotient[0] + (2 * rest >= count)
    return _decimals(bound, negative, _carry(quotient), some, "mean")


def _read(states: Sequence[Sequence[Any]]) -> tuple[NDArray[np.bool_], list[Ints], Ints]:
    """Return which sums are negative, the digits of their absolute values, and counts."""
    *limbs, counts = (np.asarray(state[0], np.int64) for state in states)
    digits = _carry(limbs[::-1])
    negative = digits[-1] < 0
    return negative, _carry([np.where(negative, -each, each) for each in digits]), counts


def _carry(limbs: Sequence[Ints]) -> list[Ints]:
    """Return digits of 32 bits, and a last one with the sign."""
    digits: list[Ints] = []
    carry: Ints = np.zeros_like(limbs[0])
    for limb in limbs:
        here = limb + carry
        digits.append(here & _MASK)
        carry = here >> _BITS
    return [*digits, carry]


def _decimals(
    bound: BoundAggregate,
    negative: NDArray[np.bool_],
    digits: Sequence[Ints],
    some: NDArray[np.bool_],
    what: str,
) -> pa.Array:
    dtype: pa.DataType = bound.result_type
    over = _at_least(digits, 10**dtype.precision) & some
    if over.any():
        at = int(np.argmax(over))
        total = sum(int(each[at]) << (_BITS * place) for place, each in enumerate(digits))
        rule = f"a {what} of decimals must fit {dtype}"
        unscaled = Decimal(-total if negative[at] else total)
        value = unscaled.scaleb(-dtype.scale, _ALL_DIGITS)
        raise ArithmeticOverflowError(rule, value=value, column=str(bound.aggregate.column))
    low, high = (digits[0] | digits[1] << _BITS), (digits[2] | digits[3] << _BITS)
    high = np.where(negative, ~high + (low == 0), high)
    return decimal_array(high, np.where(negative, -low, low), pa.array(some), dtype)


def _at_least(digits: Sequence[Ints], bound: int) -> NDArray[np.bool_]:
    """Whether numbers are at least a bound."""
    at_least: NDArray[np.bool_] = np.ones(len(digits[0]), np.bool_)
    for place, digit in enumerate(digits):
        part = bound >> (_BITS * place) & _MASK
        at_least = (digit > part) | ((digit == part) & at_least)
    return at_least
