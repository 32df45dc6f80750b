"""Raw bytes of CQL values of every type, in protocol v4: ``encode``, ``decode``, specialised callables.

Python values: ints, timestamp (ms), time (ns), date (days since 1970-01-01) → int; float, double → float;
decimal → Decimal; varint → int; boolean → bool; text, ascii → str; blob → bytes; uuid, timeuuid → UUID;
inet → IPv4Address or IPv6Address; duration → Duration; list, set, vector → list in serialised order; map →
list of (key, value) pairs; tuple and user type → tuple, None for null fields, padded with None where the
bytes end early. Whatever is malformed raises ``ValueError``; a zero-length cell decodes to None (text,
ascii and blob: to an empty value).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final, assert_never

from connector.values.scalars import (
    NATIVE_CODECS,
    Decode,
    Duration,
    Encode,
    decode_vint,
    encode_vint,
    malformed,
)
from connector.values.types import (
    ByNative,
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)

__all__ = [
    "Decode",
    "Duration",
    "Encode",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "fixed_size",
    "split_cells",
]

_INT32: Final = Struct(">i")
_unpack_int32 = _INT32.unpack_from
_pack_int32 = _INT32.pack
_NULL_LENGTH: Final = _pack_int32(-1)

# The sizes that the server itself counts as fixed inside a vector; smallint, tinyint, date, time and
# counter are not among them: servers write a length before each of those elements.
_FIXED_SIZES: Final[ByNative[int | None]] = {
    "ascii": None,
    "bigint": 8,
    "blob": None,
    "boolean": 1,
    "counter": None,
    "date": None,
    "decimal": None,
    "double": 8,
    "duration": None,
    "float": 4,
    "inet": None,
    "int": 4,
    "smallint": None,
    "text": None,
    "time": None,
    "timestamp": 8,
    "timeuuid": 16,
    "tinyint": None,
    "uuid": 16,
    "varint": None,
}


def encode(type_: CqlType, value: Any) -> bytes:
    """The raw cell of ``value``, which is not None."""
    return encoder(type_)(value)


def decode(type_: CqlType, raw: bytes) -> Any:
    """The value of a raw cell, which is not None."""
    return decoder(type_)(raw)


def fixed_size(type_: CqlType) -> int | None:
    """The size of every value of the type as a vector's element; None if elements carry their length."""
    if isinstance(type_, NativeType):
        return _FIXED_SIZES[type_.name]
    if isinstance(type_, VectorType):
        size = fixed_size(type_.element)
        return None if size is None else size * type_.dimensions
    if isinstance(type_, ListType | SetType | MapType | TupleType | UserType):
        return None
    assert_never(type_)


@lru_cache(maxsize=4096)
def encoder(type_: CqlType) -> Encode:
    """A callable that encodes values of the type."""
    if isinstance(type_, NativeType):
        return NATIVE_CODECS[type_.name][0]
    if isinstance(type_, ListType | SetType):
        return _sequence_encoder(type_)
    if isinstance(type_, MapType):
        return _map_encoder(type_)
    if isinstance(type_, TupleType):
        return _tuple_encoder(type_.cql(), [encoder(element) for element in type_.elements])
    if isinstance(type_, UserType):
        return _tuple_encoder(type_.cql(), [encoder(field) for _, field in type_.fields])
    if isinstance(type_, VectorType):
        return _vector_encoder(type_)
    assert_never(type_)


@lru_cache(maxsize=4096)
def decoder(type_: CqlType) -> Decode:
    """A callable that decodes raw cells of the type."""
    if isinstance(type_, NativeType):
        return NATIVE_CODECS[type_.name][1]
    if isinstance(type_, ListType | SetType):
        return _sequence_decoder(type_)
    if isinstance(type_, MapType):
        return _map_decoder(type_)
    if isinstance(type_, TupleType):
        return _tuple_decoder(type_.cql(), [decoder(element) for element in type_.elements])
    if isinstance(type_, UserType):
        return _tuple_decoder(type_.cql(), [decoder(field) for _, field in type_.fields])
    if isinstance(type_, VectorType):
        return _vector_decoder(type_)
    assert_never(type_)


def split_cells(raw: bytes, per_entry: int = 1) -> list[bytes | None]:
    """The cells of a collection: an int32 count of entries, then ``per_entry`` × (int32 length, bytes) each.

    A negative length is a null. Bytes that are missing or left over raise ``ValueError``.
    """
    end = len(raw)
    try:
        (count,) = _unpack_int32(raw, 0)
        if count < 0:
            raise malformed("collection", raw)
        cells: list[bytes | None] = []
        at = 4
        for _ in range(count * per_entry):
            (length,) = _unpack_int32(raw, at)
            at += 4
            if length < 0:
                cells.append(None)
                continue
            cells.append(raw[at : at + length])
            at += length
            if at > end:
                break
    except Exception:
        raise malformed("collection", raw) from None
    if at != end:
        raise malformed("collection", raw)
    return cells


def _cell(raw: bytes) -> bytes:
    return _pack_int32(len(raw)) + raw


def _sequence_encoder(type_: ListType | SetType) -> Encode:
    encode_element, spelled = encoder(type_.element), type_.cql()

    def encode_sequence(value: Any) -> bytes:
        parts = [_pack_int32(len(value))]
        for element in value:
            if element is None:
                raise ValueError(f"null inside a {spelled}")
            parts.append(_cell(encode_element(element)))
        return b"".join(parts)

    return encode_sequence


def _sequence_decoder(type_: ListType | SetType) -> Decode:
    decode_element = decoder(type_.element)

    def decode_sequence(raw: bytes) -> Any:
        if not raw:
            return None
        return [None if cell is None else decode_element(cell) for cell in split_cells(raw)]

    return decode_sequence


def _map_encoder(type_: MapType) -> Encode:
    encode_key, encode_value, spelled = encoder(type_.key), encoder(type_.value), type_.cql()

    def encode_map(value: Any) -> bytes:
        pairs: Sequence[tuple[Any, Any]] = list(value.items()) if isinstance(value, dict) else value
        parts = [_pack_int32(len(pairs))]
        for key, element in pairs:
            if key is None or element is None:
                raise ValueError(f"null inside a {spelled}")
            parts.append(_cell(encode_key(key)))
            parts.append(_cell(encode_value(element)))
        return b"".join(parts)

    return encode_map


def _map_decoder(type_: MapType) -> Decode:
    decode_key, decode_value = decoder(type_.key), decoder(type_.value)

    def decode_map(raw: bytes) -> Any:
        if not raw:
            return None
        cells = split_cells(raw, 2)
        return [
            (
                None if key is None else decode_key(key),
                None if value is None else decode_value(value),
            )
            for key, value in zip(cells[::2], cells[1::2], strict=True)
        ]

    return decode_map


def _tuple_encoder(spelled: str, encoders: list[Encode]) -> Encode:
    def encode_tuple(value: Any) -> bytes:
        if len(value) > len(encoders):
            raise ValueError(f"{len(value)} fields are too many for a {spelled}")
        return b"".join(
            _NULL_LENGTH if field is None else _cell(encode_field(field))
            for field, encode_field in zip(value, encoders, strict=False)
        )

    return encode_tuple


def split_fields(raw: bytes, count: int, spelled: str) -> list[bytes | None]:
    """The ``count`` fields of a tuple or user type; those that the bytes do not reach are None."""
    cells: list[bytes | None] = []
    at, end = 0, len(raw)
    while at < end and len(cells) < count:
        if at + 4 > end:
            raise malformed(spelled, raw)
        (length,) = _unpack_int32(raw, at)
        at += 4
        if length < 0:
            cells.append(None)
        else:
            cells.append(raw[at : at + length])
            at += length
    if at != end:
        raise malformed(spelled, raw)
    cells.extend([None] * (count - len(cells)))
    return cells


def _tuple_decoder(spelled: str, decoders: list[Decode]) -> Decode:
    count = len(decoders)

    def decode_tuple(raw: bytes) -> Any:
        if not raw:
            return None
        return tuple(
            None if cell is None else decode_field(cell)
            for cell, decode_field in zip(split_fields(raw, count, spelled), decoders, strict=True)
        )

    return decode_tuple


def split_vector(raw: bytes, type_: VectorType) -> list[bytes]:
    """The raw elements of a vector: side by side if of fixed size, else each behind its length as a vint."""
    size = fixed_size(type_.element)
    if size is not None:
        if len(raw) != size * type_.dimensions:
            raise malformed(type_.cql(), raw)
        return [raw[at : at + size] for at in range(0, len(raw), size)]
    elements, at = [], 0
    try:
        for _ in range(type_.dimensions):
            length, at = decode_vint(raw, at)
            elements.append(raw[at : at + length])
            at += length
    except ValueError:
        raise malformed(type_.cql(), raw) from None
    if at != len(raw):
        raise malformed(type_.cql(), raw)
    return elements


def _vector_encoder(type_: VectorType) -> Encode:
    encode_element, dimensions, spelled = encoder(type_.element), type_.dimensions, type_.cql()
    fixed = fixed_size(type_.element) is not None

    def encode_vector(value: Any) -> bytes:
        if len(value) != dimensions or any(element is None for element in value):
            raise ValueError(f"{value!r} is not a {spelled}")
        cells = [encode_element(element) for element in value]
        if fixed:
            return b"".join(cells)
        return b"".join(encode_vint(len(cell)) + cell for cell in cells)

    return encode_vector


def _vector_decoder(type_: VectorType) -> Decode:
    decode_element = decoder(type_.element)
    spelled = type_.cql()
    layouts = {"float": "f", "double": "d", "int": "i", "bigint": "q", "timestamp": "q"}
    if isinstance(type_.element, NativeType) and type_.element.name in layouts:
        unpack = Struct(f">{type_.dimensions}{layouts[type_.element.name]}")

        def decode_numbers(raw: bytes) -> Any:
            if len(raw) != unpack.size:
                if not raw:
                    return None
                raise malformed(spelled, raw)
            return list(unpack.unpack(raw))

        return decode_numbers

    def decode_vector(raw: bytes) -> Any:
        if not raw:
            return None
        return [decode_element(element) for element in split_vector(raw, type_)]

    return decode_vector
