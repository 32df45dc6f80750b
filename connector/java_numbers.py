"""Floating point numbers as Java writes them: the text of ``Double.toString`` and ``Float.toString`` since JDK 19.

In: floats. Out: text; and two subclasses of float that remember that their text is not the one a JSON
library would choose.
"""

from __future__ import annotations

import math
from functools import lru_cache
from struct import Struct
from typing import Final

_FLOAT32: Final = Struct(">f")
_SMALLEST_NORMAL_FLOAT32: Final = 2.0**-126


class Float32(float):
    """A number of single precision: its shortest text has at most nine digits."""

    __slots__ = ()


class WideDouble(float):
    """A number of double precision that Java writes with an exponent or as a word."""

    __slots__ = ()


def is_plain(value: float) -> bool:
    """Whether Java writes the double without an exponent, as JSON libraries do."""
    return 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3 or value == 0.0


def java_double(value: float) -> str:
    """``Double.toString``.

    >>> java_double(1e23), java_double(0.5), java_double(5e-324)
    ('1.0E23', '0.5', '4.9E-324')
    """
    if is_plain(value):
        return repr(float(value))
    if 1e7 < abs(value) < 1e16:
        # repr has no exponent yet: the usual case.
        whole, _, fraction = repr(abs(float(value))).partition(".")
        digits = (whole + fraction).rstrip("0")
        if len(digits) > 1:
            return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:]}E{len(whole) - 1}"
    word = _word(value)
    if word:
        return word
    mantissa, _, exponent = f"{float(value)!r}".partition("e")
    digits, scale = _digits(mantissa, int(exponent or 0))
    if len(digits) == 1:
        # Java takes the nearest of the two-digit texts where one digit would do: 4.9E-324, not 5E-324.
        mantissa, _, exponent = f"{float(value):.1e}".partition("e")
        digits, scale = _digits(mantissa, int(exponent))
    return _java(value < 0, digits, scale)


def java_float(value: float) -> str:
    """``Float.toString`` of a double that holds a number of single precision.

    >>> java_float(2.7182800769805908), java_float(0.1), java_float(1e10)
    ('2.71828', '0.1', '1.0E10')
    """
    return _java_float(float(value), math.copysign(1.0, value) < 0)


@lru_cache(maxsize=4096)
def _java_float(value: float, negative: bool) -> str:
    if value == 0:
        return "-0.0" if negative else "0.0"
    word = _word(value)
    if word:
        return word
    raw = _FLOAT32.pack(value)
    # Six digits name every normal number that was written with at most six; below, fewer may do.
    first = 5 if abs(value) >= _SMALLEST_NORMAL_FLOAT32 else 1
    for precision in range(first, 9):
        mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
        text = f"{mantissa}e{exponent}"
        if abs(float(text)) <= 3.5e38 and _packed(float(text)) == raw:
            break
    digits, scale = _digits(mantissa, int(exponent))
    return _java(negative, digits, scale)


def _packed(value: float) -> bytes | None:
    try:
        return _FLOAT32.pack(value)
    except OverflowError:
        return None


def _word(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _digits(mantissa: str, exponent: int) -> tuple[str, int]:
    """Significant digits without trailing zeros, and the power of ten of the first."""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    scale = exponent + len(whole) - 1 - leading
    return digits[leading:].rstrip("0") or "0", scale


def _java(negative: bool, digits: str, scale: int) -> str:
    sign = "-" if negative else ""
    if -3 <= scale < 7:
        if scale < 0:
            return f"{sign}0.{'0' * (-scale - 1)}{digits}"
        whole = digits[: scale + 1].ljust(scale + 1, "0")
        return f"{sign}{whole}.{digits[scale + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{scale}"
