"""Raw bytes of the native CQL types: one pair of functions (encode, decode) per type.

In and out: Python values as ``binary`` describes them, raw bytes of protocol v4. A zero-length cell of a
type other than text, ascii and blob decodes to None, as drivers do. Anything else that is malformed raises
``ValueError``.
"""

from __future__ import annotations

import ipaddress
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from connector.values.big_numbers import scaled, whole_number
from connector.values.types import ByNative

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]

_DATE_OFFSET: Final = 1 << 31
NANOSECONDS_PER_DAY: Final = 86_400_000_000_000
_DURATION_LIMITS: Final = (1 << 31, 1 << 31, 1 << 63)


class Duration(NamedTuple):
    """A CQL duration: three parts that are never converted into each other."""

    months: int
    days: int
    nanoseconds: int


def malformed(type_name: str, raw: bytes) -> ValueError:
    """The error for a cell whose bytes cannot be a value of the type."""
    shown = raw[:16].hex() + ("…" if len(raw) > 16 else "")
    return ValueError(f"{len(raw)} bytes (0x{shown}) are not a CQL {type_name}")


def _fixed(name: str, layout: str) -> tuple[Encode, Decode]:
    packer = struct.Struct(layout)
    pack, unpack = packer.pack, packer.unpack

    def encode(value: Any) -> bytes:
        try:
            return pack(value)
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{value!r} is not a CQL {name}: {error}") from None

    def decode(raw: bytes) -> Any:
        try:
            return unpack(raw)[0]
        except struct.error:
            if not raw:
                return None
            raise malformed(name, raw) from None

    return encode, decode


def encode_boolean(value: Any) -> bytes:
    return b"\x01" if value else b"\x00"


def decode_boolean(raw: bytes) -> Any:
    if len(raw) == 1:
        return raw != b"\x00"
    if not raw:
        return None
    raise malformed("boolean", raw)


def encode_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a CQL text")
    return value.encode()


decode_text: Final[Decode] = bytes.decode


def encode_ascii(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a CQL ascii")
    return value.encode("ascii")


def decode_ascii(raw: bytes) -> Any:
    return raw.decode("ascii")


def encode_blob(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise ValueError(f"{value!r} is not a CQL blob")
    return bytes(value)


def decode_blob(raw: bytes) -> Any:
    return raw


def encode_varint(value: Any) -> bytes:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is not a CQL varint")
    # Minimal two's complement, as java.math.BigInteger.toByteArray: 128 needs two bytes, -128 one.
    length = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(length, "big", signed=True)


def decode_varint(raw: bytes) -> Any:
    return int.from_bytes(raw, "big", signed=True) if raw else None


def encode_decimal(value: Any) -> bytes:
    if not isinstance(value, Decimal):
        raise ValueError(f"{value!r} is not a CQL decimal")
    if not value.is_finite():
        raise ValueError(f"{value} is not a CQL decimal")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if not -0x8000_0000 <= -exponent <= 0x7FFF_FFFF:
        raise ValueError(f"the scale of {value} does not fit 32 bits")
    unscaled = whole_number("".join(map(str, digits))) * (-1 if sign else 1)
    return (-exponent).to_bytes(4, "big", signed=True) + encode_varint(unscaled)


def decode_decimal(raw: bytes) -> Any:
    if len(raw) < 5:
        if not raw:
            return None
        raise malformed("decimal", raw)
    scale = int.from_bytes(raw[:4], "big", signed=True)
    return scaled(int.from_bytes(raw[4:], "big", signed=True), scale)


def encode_date(value: Any) -> bytes:
    if not isinstance(value, int) or not -_DATE_OFFSET <= value < _DATE_OFFSET:
        raise ValueError(f"{value!r} is not a CQL date (days since 1970-01-01)")
    return (value + _DATE_OFFSET).to_bytes(4, "big")


def decode_date(raw: bytes) -> Any:
    if len(raw) != 4:
        if not raw:
            return None
        raise malformed("date", raw)
    return int.from_bytes(raw, "big") - _DATE_OFFSET


_encode_int64, _decode_int64 = _fixed("time", ">q")


def encode_time(value: Any) -> bytes:
    if not isinstance(value, int) or not 0 <= value < NANOSECONDS_PER_DAY:
        raise ValueError(f"{value!r} is not a CQL time (nanoseconds since midnight)")
    return _encode_int64(value)


def encode_uuid(value: Any) -> bytes:
    if not isinstance(value, uuid.UUID):
        raise ValueError(f"{value!r} is not a CQL uuid")
    return value.bytes


def decode_uuid(raw: bytes) -> Any:
    if len(raw) != 16:
        if not raw:
            return None
        raise malformed("uuid", raw)
    return uuid.UUID(bytes=raw)


def encode_inet(value: Any) -> bytes:
    if not isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        raise ValueError(f"{value!r} is not a CQL inet")
    return value.packed


def decode_inet(raw: bytes) -> Any:
    if len(raw) == 4:
        return ipaddress.IPv4Address(raw)
    if len(raw) == 16:
        return ipaddress.IPv6Address(raw)
    if not raw:
        return None
    raise malformed("inet", raw)


def encode_vint(value: int) -> bytes:
    """An unsigned 64-bit number as a vint: the first byte's leading ones count the bytes that follow."""
    if value < 0x80:
        return bytes((value,))
    extra = min(8, (value.bit_length() - 1) // 7)
    if extra == 8:
        return b"\xff" + value.to_bytes(8, "big")
    body = bytearray(value.to_bytes(extra + 1, "big"))
    body[0] |= (0xFF << (8 - extra)) & 0xFF
    return bytes(body)


def decode_vint(raw: bytes, at: int) -> tuple[int, int]:
    """The unsigned vint that starts at ``at``, and the position behind it."""
    if at >= len(raw):
        raise ValueError("a vint is missing")
    first = raw[at]
    if first < 0x80:
        return first, at + 1
    extra = 8 - (first ^ 0xFF).bit_length()
    end = at + 1 + extra
    if end > len(raw):
        raise ValueError("a vint ends too early")
    high = first & (0xFF >> (extra + 1)) if extra < 8 else 0
    return high << (8 * extra) | int.from_bytes(raw[at + 1 : end], "big"), end


def encode_duration(value: Any) -> bytes:
    if not all(-limit <= part < limit for part, limit in zip(value, _DURATION_LIMITS, strict=True)):
        raise ValueError(f"{value!r} is not a CQL duration: a part is too large")
    if min(value) < 0 < max(value):
        raise ValueError(f"{value!r} is not a CQL duration: its parts have different signs")
    return b"".join(encode_vint((part << 1) ^ (part >> 63)) for part in value)


def decode_duration(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        months, at = decode_vint(raw, 0)
        days, at = decode_vint(raw, at)
        nanoseconds, at = decode_vint(raw, at)
    except ValueError:
        raise malformed("duration", raw) from None
    if at != len(raw) or months >> 32 or days >> 32:
        raise malformed("duration", raw)
    return Duration(_unzigzag(months), _unzigzag(days), _unzigzag(nanoseconds))


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


NATIVE_CODECS: Final[ByNative[tuple[Encode, Decode]]] = {
    "ascii": (encode_ascii, decode_ascii),
    "bigint": _fixed("bigint", ">q"),
    "blob": (encode_blob, decode_blob),
    "boolean": (encode_boolean, decode_boolean),
    "counter": _fixed("counter", ">q"),
    "date": (encode_date, decode_date),
    "decimal": (encode_decimal, decode_decimal),
    "double": _fixed("double", ">d"),
    "duration": (encode_duration, decode_duration),
    "float": _fixed("float", ">f"),
    "inet": (encode_inet, decode_inet),
    "int": _fixed("int", ">i"),
    "smallint": _fixed("smallint", ">h"),
    "text": (encode_text, decode_text),
    "time": (encode_time, _decode_int64),
    "timestamp": _fixed("timestamp", ">q"),
    "timeuuid": (encode_uuid, decode_uuid),
    "tinyint": _fixed("tinyint", ">b"),
    "uuid": (encode_uuid, decode_uuid),
    "varint": (encode_varint, decode_varint),
}
