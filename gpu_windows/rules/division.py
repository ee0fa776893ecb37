"""Floor division by a number that stays the same: two multiplications in place of a division.

Source: Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994);
the multiplier is rounded down and the dividend up, as in Robison, "N-Bit Unsigned Division Via
N-Bit Multiply-Add" (ARITH 2005), so that the multiplier has 64 bits for 1 too.
"""

from __future__ import annotations

from typing import NamedTuple

_LOW = 0xFFFF_FFFF


class Reciprocal(NamedTuple):
    """A factor and a shift that replace a division; see `reciprocal`.

    Parameters
    ----------
    multiplier : int
        The 64 upper bits of 1 over the divisor, as int64 (so it may be negative).
    shift : int
        How far the product is shifted to the right, 0 to 62.
    """

    multiplier: int
    shift: int


def reciprocal(divisor: int) -> Reciprocal:
    """Return the reciprocal of a divisor, 1 to 2**63 - 1. Not compiled: it is made once a call.

    The multiplier is ``2**(64 + shift) / divisor``, rounded down and below ``2**64``, ``shift``
    the least for which ``divisor <= 2**(shift + 1)``. Rounding takes at most 1 from it; times
    ``n + 1``, at most ``2**63``, that takes at most ``2**63 / 2**(64 + shift) <= 1 / divisor``
    from the quotient. So the quotient is at least ``n / divisor`` and less than
    ``(n + 1) / divisor``. No integer lies between these: rounded down, it is ``n // divisor``.
    """
    shift = max((divisor - 1).bit_length() - 1, 0)
    multiplier = ((1 << (64 + shift)) - 1) // divisor
    return Reciprocal(multiplier - (multiplier >> 63 << 64), shift)


def multiply_high(left: int, right: int) -> int:
    """Return the upper 64 of the 128 bits of a product of unsigned numbers, given as int64.

    Every shift is followed by a mask and nothing is compared, so the bits are the same where
    64-bit numbers wrap around and in CPython, where they do not.
    """
    low = (left & _LOW) * (right & _LOW)
    middle = ((left >> 32) & _LOW) * (right & _LOW) + ((low >> 32) & _LOW)
    other = (left & _LOW) * ((right >> 32) & _LOW) + (middle & _LOW)
    high = ((left >> 32) & _LOW) * ((right >> 32) & _LOW)
    return high + ((middle >> 32) & _LOW) + ((other >> 32) & _LOW)


def floor_divided(dividend: int, by: Reciprocal) -> int:
    """Return ``dividend // divisor`` for any int64, given the reciprocal of the divisor.

    ``~n // d == ~(n // d)``, so the bits of negative numbers are flipped before and after.
    """
    sign = dividend >> 63
    magnitude = (dividend ^ sign) + 1
    return (multiply_high(magnitude, by.multiplier) >> by.shift) ^ sign
