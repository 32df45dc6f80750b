"""Numbers as Java parses, narrows and writes them.

In: values of records. Out: values of another type, as Java's casts and ``parseXxx`` give them, or ``ValueError``.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64decode
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from connector.java_numbers import Float32, WideDouble, is_plain, java_double, java_float
from smt.connect.structs import DECIMAL
from smt.record import Schema

BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_WHOLE: Final = re.compile(r"[+-]?\d+")
_FLOAT: Final = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?)")
_HEX_FLOAT: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?")
#: Of an exponent that Java takes, and of what it becomes with the digits behind the point.
_MOST_EXPONENT: Final = (1 << 31) - 1
#: What Java's trim() takes away.
_BLANKS: Final = "".join(map(chr, range(33)))


def wrapped(number: int, bits: int) -> int:
    """The lowest bits of a number, as a narrowing conversion leaves them."""
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def to_integer(number: Any, type_: str) -> int:
    """``Number.byteValue()`` and its like."""
    bits = BITS[type_]
    if isinstance(number, float):
        if math.isnan(number):
            return 0
        # A floating point number becomes an int or a long first, of which the nearest is taken.
        most = 1 << (63 if bits == 64 else 31)
        whole = most - 1 if number >= most else -most if number <= -most else int(number)
        return wrapped(whole, bits)
    return wrapped(int(number), bits)


def to_float32(number: Any) -> Float32:
    double = _double_of(number)
    if math.isnan(double) or math.isinf(double):
        return Float32(double)
    try:
        return Float32(struct.unpack(">f", struct.pack(">f", double))[0])
    except OverflowError:
        return Float32(math.copysign(math.inf, double))


def to_float64(number: Any) -> float:
    double = _double_of(number)
    return double if is_plain(double) else WideDouble(double)


def _double_of(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def parse_integer(text: str, type_: str) -> int:
    """``Long.parseLong`` and its like."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no whole number")
    number, most = int(text), 1 << (BITS[type_] - 1)
    if not -most <= number < most:
        raise ValueError(f"{text} is out of the range of {type_}")
    return number


def parse_float(text: str) -> float:
    """``Double.parseDouble``."""
    stripped = text.strip(_BLANKS)
    if found := _FLOAT.fullmatch(stripped):
        sign, word, digits = found.groups()
        return float(sign + ({"NaN": "nan", "Infinity": "inf"}[word] if word else digits))
    if found := _HEX_FLOAT.fullmatch(stripped):
        return float.fromhex(found[1])
    raise ValueError(f"{text!r} is no number")


def parse_decimal(text: str) -> Decimal:
    """``new BigDecimal(text)``."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if max(abs(int(found[1] or 0)), -int(number.as_tuple().exponent)) > _MOST_EXPONENT:
        raise ValueError(f"{text!r} has an exponent that no number of Java's has")
    return number


def decimal_of(schema: Schema | None, value: Any) -> Decimal | None:
    """The number that bytes with Connect's decimal schema mean; None for any other schema."""
    if schema is None or schema.get("name") != DECIMAL or schema.get("type") != "bytes":
        return None
    if isinstance(value, int | float | Decimal):
        return Decimal(value)
    raw = b64decode(value) if isinstance(value, str) else bytes(value)
    scale = int((schema.get("parameters") or {}).get("scale", 0))
    # As a text, since arithmetic would round to the context's precision.
    return Decimal(f"{int.from_bytes(raw, 'big', signed=True)}e{-scale}")


def java_text(value: Any, schema: Schema | None = None) -> str:
    """``toString()`` of a boolean, a number or a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Float32):
        return java_float(value)
    if isinstance(value, float):
        # What came as JSON or Avro does not say that it was of single precision; the schema does.
        single = schema is not None and schema.get("type") == "float"
        return java_float(value) if single else java_double(value)
    return str(value)
