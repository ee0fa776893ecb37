"""Floats as integers: sums that no order changes, and an order that integers have.

The summands of a group become multiples of one unit, which the greatest exponent among them gives:
53 bits of the greatest ones stay, with 42 more below. Integers are added exactly, in any order, and
only the whole is rounded to a float. So a sum of n is off by n / 2**95 of its greatest summand at
most, before that rounding, where one after the other may be off by n / 2**53 of it.

Source: Kulisch, "Computer Arithmetic and Validity" (2008), for fixed-point accumulators; Demmel and
Nguyen, "Parallel Reproducible Summation" (2015), for one unit that the greatest summand gives.

Bits are those of float64 (IEEE 754), as int64.
"""

from __future__ import annotations

import math

from gpu_windows.rules.ticks import LONG_MAX

#: The biased exponent of infinities and NaN.
SPECIAL = 2047
#: Bits of a float's mantissa without the leading one; how many more there are below the greatest.
_FRACTION, _GUARD = 52, 42
#: Of 2**-1074, the least float, as biased exponent 1; and of the unit below it.
_UNIT = 1075 + _GUARD
_INFINITY = 0x7FF0_0000_0000_0000
_WORD = 0xFFFF_FFFF


def exponent_of(bits: int) -> int:
    """Return the biased exponent of a float: 1, also for 0 and subnormal numbers, to SPECIAL."""
    return max((bits >> _FRACTION) & 0x7FF, 1)


def in_units(bits: int, exponent: int) -> tuple[int, int, int]:
    """Return a float as an integer: its multiple of the unit of a greatest exponent, rounded.

    It comes in three words of 32 bits, all of the float's sign, which are added apart: so up to
    2**31 floats are added exactly. Where the exponent is SPECIAL, finite numbers are 0, +inf and
    -inf are 1 of the last word and of the one before it, NaN is both.

    Parameters
    ----------
    bits : int
        Of the float; its exponent is at most the other one.
    exponent : int
        The greatest biased exponent of all summands, at least 1.

    Returns
    -------
    high, middle, low : int
        Their magnitudes are at most 2**32.
    """
    if exponent == SPECIAL:
        size = bits & LONG_MAX
        if size < _INFINITY:
            return 0, 0, 0
        if size > _INFINITY:
            return 0, 1, 1
        return (0, 1, 0) if bits < 0 else (0, 0, 1)
    magnitude = bits & ((1 << _FRACTION) - 1)
    if (bits >> _FRACTION) & 0x7FF:
        magnitude |= 1 << _FRACTION
    left = exponent_of(bits) - exponent + _GUARD
    if left >= 32:
        upper, low = magnitude << (left - 32), 0
    elif left >= 0:
        upper, low = magnitude >> (32 - left), (magnitude << left) & _WORD
    elif left >= -_FRACTION - 1:
        rounded = (magnitude + (1 << (-left - 1))) >> -left
        upper, low = rounded >> 32, rounded & _WORD
    else:
        upper, low = 0, 0
    sign = -1 if bits < 0 else 1
    return sign * (upper >> 32), sign * (upper & _WORD), sign * low


def from_units(high: int, middle: int, low: int, exponent: int) -> float:
    """Return the float that the words of summands (`in_units`) add up to, rounded once.

    Parameters
    ----------
    high, middle, low : int
        Sums of the words, within int64.
    exponent : int
        The greatest biased exponent of the summands.
    """
    if exponent == SPECIAL:
        if middle and low:
            return math.nan
        return math.inf if low else -math.inf
    middle += low >> 32
    high += middle >> 32
    low, middle = low & _WORD, middle & _WORD
    sign = 1.0
    if high < 0:  # else the rounding of what is below would cancel it
        sign, low = -1.0, (low ^ _WORD) + 1
        middle = (middle ^ _WORD) + (low >> 32)
        high = (high ^ -1) + (middle >> 32)
        low, middle = low & _WORD, middle & _WORD
    rounded, word = float(high), 4294967296.0
    rest = float(high - int(rounded)) * word * word + (float(middle) * word + float(low))
    total = sign * (rounded * word * word + rest)
    scale = exponent - _UNIT
    half = scale // 2  # 2**scale may be no float, where the product is
    return total * math.ldexp(1.0, int(half)) * math.ldexp(1.0, int(scale - half))


def order_of(bits: int) -> int:
    """Return an integer that is less for a lesser float: -0.0 is before 0.0, any NaN the last."""
    if bits & LONG_MAX > _INFINITY:
        return LONG_MAX
    return bits if bits >= 0 else bits ^ LONG_MAX


def bits_of_order(order: int) -> int:
    """Return the bits of the float of an `order_of`; of -inf where no float has that order."""
    if order == LONG_MAX:
        return 0x7FF8_0000_0000_0000  # NaN
    lowest = -_INFINITY - 1
    clamped = max(order, lowest)
    return clamped if clamped >= 0 else clamped ^ LONG_MAX
