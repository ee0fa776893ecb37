"""Primitive partials: ``combine(left, right)``, left being the earlier."""

from __future__ import annotations

from gpu_windows.rules.ticks import LONG_MAX, LONG_MIN

ADD = 0
LEAST = 1
GREATEST = 2


#: What changes nothing when folded: (how, dtype) to value.
IDENTITIES = {
    (ADD, "int64"): 0,
    (ADD, "float64"): 0.0,
    (LEAST, "int64"): LONG_MAX,
    (LEAST, "float64"): float("nan"),
    (GREATEST, "int64"): LONG_MIN,
    (GREATEST, "float64"): float("-inf"),
}


def fold(how: int, left: float, right: float) -> float:
    """Combine two partials of one kind: ADD, LEAST or GREATEST; int64 or float64.

    NaN is larger than any number, as in Spark SQL.
    """
    if how == ADD:
        return left + right
    if how == LEAST:
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


def moments(
    n_left: int, mean_left: float, m2_left: float, n_right: int, mean_right: float, m2_right: float
) -> tuple[int, float, float]:
    """Combine two (count, mean, sum of squared deviations).

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


def better(left: int, left_rank: int, right: int, right_rank: int) -> int:
    """Return which of two candidates has the lesser rank, ``left`` if equal."""
    return right if right_rank < left_rank else left
