"""Numbers as the texts that Java prints, and decimals for the texts of floats."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.decimals import EXACT, round_half_up

_TEXT = pa.string()
#: Arrow's text of a float: digits before and after the point, and an exponent.
_PARTS = r"\A-?(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]+))?(?:e\+?(?P<exponent>-?[0-9]+))?\z"
#: Java prints floats from the first to below the second of these without an exponent.
_PLAIN = (1e-3, 1e7)
#: Floats below are 0 when they are rounded to `MAX_SCALE` digits.
_TINY = 1e-21
#: Digits after the point of decimals for floats.
MAX_SCALE = 20


def float_texts(values: pa.Array) -> pa.Array:
    """Return floats by their shortest digits, in Java's form.

    Examples
    --------
    >>> float_texts(pa.array([2.0, 1e7, float("nan")])).to_pylist()
    ['2.0', '1.0E7', 'NaN']
    """
    texts, size = values.cast(_TEXT), pc.abs(values)
    low, high = (pa.scalar(bound, values.type) for bound in _PLAIN)
    is_plain = pc.and_(pc.greater_equal(size, low), pc.less(size, high))
    is_plain = pc.or_(is_plain, pc.equal(size, pa.scalar(0.0, values.type)))
    has_point = pc.match_substring(texts, ".")
    plain = pc.if_else(has_point, texts, pc.binary_join_element_wise(texts, ".0", ""))
    found = pc.if_else(is_plain, plain, _with_exponents(texts))
    infinite = pc.if_else(pc.match_substring(texts, "-"), "-Infinity", "Infinity")
    found = pc.if_else(pc.is_inf(values), infinite, found)
    return pc.if_else(pc.is_nan(values), "NaN", found)


def _with_exponents(texts: pa.Array) -> pa.Array:
    """Return texts with one digit before the point, and an exponent."""
    parts = pc.extract_regex(texts, pattern=_PARTS)
    whole, fraction, exponent = (
        pc.struct_field(parts, [name]) for name in ("whole", "fraction", "exponent")
    )
    digits = pc.binary_join_element_wise(whole, fraction, "")
    without = pc.utf8_ltrim(digits, "0")
    leading = pc.subtract(pc.utf8_length(digits), pc.utf8_length(without))
    given = pc.if_else(pc.equal(exponent, ""), "0", exponent).cast(pa.int32())
    power = pc.subtract(pc.add(pc.utf8_length(whole), given), pc.add(leading, 1))
    first = pc.utf8_slice_codeunits(without, 0, 1)
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(without, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    sign = pc.if_else(pc.starts_with(texts, "-"), "-", "")
    return pc.binary_join_element_wise(sign, first, ".", rest, "E", power.cast(_TEXT), "")


def decimal_texts(values: pa.Array) -> pa.Array:
    """Return decimals with all their digits, without an exponent.

    Examples
    --------
    >>> from decimal import Decimal
    >>> decimal_texts(pa.array([Decimal("-0.00000005")])).to_pylist()
    ['-0.00000005']
    """
    scale = values.type.scale
    if scale == 0:
        return values.cast(_TEXT)
    buffers = values.buffers()
    unscaled = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(values), buffers, offset=values.offset
    ).cast(_TEXT)
    sign = pc.if_else(pc.starts_with(unscaled, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, whole, ".", fraction, "")


def float_decimals(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Return floats as decimals: their shortest digits, rounded half up; null for NaN.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a number does not fit the type.
    """
    doubles = values.cast(pa.float64())
    plain = pc.if_else(pc.less(pc.abs(doubles), _TINY), 0.0, doubles)
    texts = pc.if_else(pc.is_finite(doubles), plain.cast(_TEXT), pa.scalar(None, _TEXT))
    return round_half_up(texts.cast(EXACT), digits=to.scale).cast(to)


def number_texts(values: pa.Array) -> pa.Array:
    """Return floats or decimals as texts."""
    return float_texts(values) if types.is_floating(values.type) else decimal_texts(values)
