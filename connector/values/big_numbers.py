"""Whole numbers of any length between ``int`` and decimal digits, in far less than quadratic time.

In: an int, or digits. Out: a ``Decimal``, or an int. Python's own conversions take the square of the length (a second
for 100 kB) and refuse texts of more than 4300 digits; here numbers are halved until they are short.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact
from typing import Final

#: Below these the built-in conversions are the quicker ones, and allowed.
_FEW_BITS: Final = 4096
_FEW_DIGITS: Final = 2048
#: Multiplies and adds without rounding, however many digits there are.
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def decimal_of(value: int) -> Decimal:
    """The number as a ``Decimal``, whose text Python writes in one pass."""
    if value.bit_length() <= _FEW_BITS:
        return Decimal(value)
    found = _decimal(abs(value), value.bit_length(), {})
    return found.copy_negate() if value < 0 else found


def _decimal(value: int, bits: int, powers: dict[int, Decimal]) -> Decimal:
    if bits <= _FEW_BITS:
        return Decimal(value)
    # Lower halves are a power of two times the least width, so that few powers are needed.
    width = _FEW_BITS
    while width * 2 < bits:
        width *= 2
    upper, lower = value >> width, value & ((1 << width) - 1)
    if width not in powers:
        powers[width] = _EXACT.power(Decimal(2), width)
    high = _EXACT.multiply(_decimal(upper, upper.bit_length(), powers), powers[width])
    return _EXACT.add(high, _decimal(lower, width, powers))


def whole_number(text: str) -> int:
    """The int that a text of ASCII digits means; ``ValueError`` for any other text."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a whole number")
    if len(text) <= _FEW_DIGITS:
        return int(text)
    value = _whole(text.lstrip("+-"), {})
    return -value if text.startswith("-") else value


def scaled(unscaled: int, scale: int) -> Decimal:
    """``unscaled`` times ten to the power of minus ``scale``, with all of its digits."""
    return _EXACT.scaleb(decimal_of(unscaled), -scale) if scale else decimal_of(unscaled)


def _whole(digits: str, powers: dict[int, int]) -> int:
    if len(digits) <= _FEW_DIGITS:
        return int(digits)
    width = _FEW_DIGITS
    while width * 2 < len(digits):
        width *= 2
    if width not in powers:
        powers[width] = 10**width
    return _whole(digits[:-width], powers) * powers[width] + _whole(digits[-width:], powers)
