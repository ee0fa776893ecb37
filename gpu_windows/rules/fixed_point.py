"""Floats as integers: sums that no order changes, and an order that integers have.

The summands of a group become multiples of one unit, which the greatest exponent among them gives:
53 bits of the greatest ones stay, with 10 more below. Integers are added exactly, in any order, and
only the whole is rounded to a float. So a sum of n is off by n / 2**64 of its greatest summand at
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
#: Of a float's mantissa, without the leading one; how many more a unit has below the greatest.
_FRACTION, _GUARD = 52, 10
#: Of 2**-1074, the least float, as biased exponent 1; and of the unit below it.
_UNIT = 1075 + _GUARD
_INFINITY = 0x7FF0_0000_0000_0000
#: What is added for +inf, -inf and NaN: the lower half of it, the upper half, both.
_PLUS, _MINUS = 1, 1 << 32


def exponent_of(bits: int) -> int:
    """Return the biased exponent of a float: 1, also for 0 and subnormal numbers, to SPECIAL."""
    return max((bits >> _FRACTION) & 0x7FF, 1)


def in_units(bits: int, exponent: int) -> int:
    """Return a float as an integer: its multiple of the unit of a greatest exponent, rounded.

    Its halves (`gpu_windows.rules.high_half`) are added apart, so that up to 2**31 of them are
    added exactly. Where the exponent is SPECIAL, finite numbers are 0.

    Parameters
    ----------
    bits : int
        Of the float; its exponent is at most the other one.
    exponent : int
        The greatest biased exponent of all summands, at least 1.
    """
    if exponent == SPECIAL:
        if bits & LONG_MAX < _INFINITY:
            return 0
        if bits & LONG_MAX > _INFINITY:
            return _PLUS + _MINUS
        return _MINUS if bits < 0 else _PLUS
    magnitude = bits & ((1 << _FRACTION) - 1)
    if (bits >> _FRACTION) & 0x7FF:
        magnitude |= 1 << _FRACTION
    right = exponent - exponent_of(bits) - _GUARD
    if right <= 0:
        magnitude <<= -right
    elif right > _FRACTION + 1:
        magnitude = 0
    else:
        magnitude = (magnitude + (1 << (right - 1))) >> right
    return -magnitude if bits < 0 else magnitude


def from_units(high: int, low: int, exponent: int) -> float:
    """Return the float that halves of summands (`in_units`) add up to, rounded once.

    Parameters
    ----------
    high, low : int
        Sums of the upper and of the lower halves; below 2**63.
    exponent : int
        The greatest biased exponent of the summands.
    """
    if exponent == SPECIAL:
        if high and low:
            return math.nan
        return math.inf if low else -math.inf
    whole = high + (low >> 32)
    rounded = float(whole)
    rest = float(whole - int(rounded)) * 4294967296.0 + float(low & 0xFFFFFFFF)
    scale = exponent - _UNIT
    half = scale // 2  # 2**scale may be no float, where the product is
    total = rounded * 4294967296.0 + rest
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
    least = -_INFINITY - 1
    known = max(order, least)
    return known if known >= 0 else known ^ LONG_MAX
