"""Primitive partials: ``combine(left, right)``, left being the earlier."""

from __future__ import annotations

import math

from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN

ADD = 0
MIN = 1
MAX = 2

#: After so many values about one of them it is asked whether that one `is_far`.
BLOCK = 8


#: What changes nothing when folded: (how, dtype) to value.
IDENTITIES = {
    (ADD, "int64"): 0,
    (ADD, "float64"): 0.0,
    (MIN, "int64"): LONG_MAX,
    (MIN, "float64"): float("nan"),
    (MAX, "int64"): LONG_MIN,
    (MAX, "float64"): float("-inf"),
}


def fold(how: int, left: float, right: float) -> float:
    """Combine two partials of one kind: ADD, MIN or MAX; int64 or float64.

    NaN is larger than any number, as in Spark SQL.
    """
    if how == ADD:
        return left + right
    if how == MIN:
        if left != left:  # noqa: PLR0124 - NaN
            return right
        return right if right < left else left
    if left != left:  # noqa: PLR0124 - NaN
        return left
    return left if right <= left else right


def high_half(value: int) -> int:
    """Return the upper 32 bits of an int64, signed: with `low_half` a sum of many is exact."""
    return value >> 32


def low_half(value: int) -> int:
    """Return the lower 32 bits of an int64, at least 0."""
    return value & 0xFFFFFFFF


def difference(value: int, other: int) -> float:
    """Return ``value - other`` of two int64 as a float, rounded once; 0 where they are equal."""
    apart = value - other
    if (value ^ other) & (value ^ apart) >= 0:  # else it does not fit 64 bits
        return float(apart)
    upper = float(high_half(value) - high_half(other)) * 4294967296.0
    return upper + float(low_half(value) - low_half(other))


def two_sum(left: float, right: float) -> tuple[float, float]:
    """Return ``left + right`` in two words: the float next to it, and what that is off by.

    Source: Knuth, "The Art of Computer Programming", volume 2 (1997), 4.2.2, theorem B. There are
    no products in it, so a compiler that contracts ``a * b + c`` does not touch it.
    """
    high = left + right
    back = high - left
    return high, (left - (high - back)) + (right - back)


def words_of(value: int) -> tuple[float, float]:
    """Return an int64 in two words, exactly: the float next to it, and what that is off by."""
    return two_sum(float(high_half(value)) * 4294967296.0, float(low_half(value)))


def moments(
    n_left: int, mean_left: float, m2_left: float, n_right: int, mean_right: float, m2_right: float
) -> tuple[int, float, float]:
    """Combine two (count, mean, sum of squared deviations), both means less the same shift.

    Where the shift is one of the values, or a mean of some, the means are as small as deviations
    are, and so is what is rounded away of them.

    Source: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
    Sample Variances" (1979).
    """
    if n_left == 0:
        return n_right, mean_right, m2_right
    if n_right == 0:
        return n_left, mean_left, m2_left
    total = n_left + n_right
    delta = mean_right - mean_left
    mean = mean_left + delta * (n_right / total)
    m2 = m2_left + m2_right + delta * delta * (n_left * (n_right / total))
    return total, mean, m2


def wide_moments(
    n_left: int, high_left: float, low_left: float, m2_left: float,
    n_right: int, high_right: float, low_right: float, m2_right: float,
) -> tuple[int, float, float, float]:  # fmt: skip
    """Combine two (count, mean, sum of squared deviations), the means in two words each.

    A mean is the sum of its words; of no value, all is 0. The shift is the left one's high word.
    """
    if n_left == 0:
        return n_right, high_right, low_right, m2_right
    if n_right == 0:
        return n_left, high_left, low_left, m2_left
    apart = (high_right - high_left) + low_right
    total, mean, m2 = moments(n_left, low_left, m2_left, n_right, apart, m2_right)
    high, low = two_sum(high_left, mean)
    return total, high, low, m2


def is_far(count: int, total: float, squares: float) -> bool:
    """Whether a shift is so far from the mean that most of the squares cancels.

    See `shifted_moments`, which another shift serves better then.
    """
    return total * total > 0.75 * count * squares


def shifted_moments(count: int, total: float, squares: float) -> tuple[float, float]:
    """Return mean, less a shift, and sum of squared deviations, of some values.

    Where the shift is one of the values, the squares are at most ``count`` times the deviations':
    what cancels is not more than that.

    Parameters
    ----------
    count : int
        One at least.
    total, squares : float
        Sums of the values less the shift, and of their squares.
    """
    mean = total / count
    if squares < math.inf:
        return mean, squares - total * mean
    return mean, squares  # which are beyond all floats, or not finite


def better(left: int, left_rank: int, right: int, right_rank: int) -> int:
    """Return which of two candidates has the lesser rank, ``left`` if equal."""
    return right if right_rank < left_rank else left
